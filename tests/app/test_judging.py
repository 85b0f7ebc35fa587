"""What records prove to be broken: each judge passes a sound log and finds its own fault in a wrong one."""

from collections.abc import Callable

import pytest
from pydantic import JsonValue

from perdure.app.events import TaskEvent
from perdure.app.judging import broken_promises
from perdure.core.content import ModelEntry, ModelReply, ToolCall, ToolEntry, ToolResult
from perdure.core.log import LogKind
from perdure.core.ports import EffectAttemptRow, EffectRow

Events = list[TaskEvent]


def event(number: int, kind: LogKind, *entries: ModelEntry | ToolEntry, run: int = 1, turn: int = 0) -> TaskEvent:
    return TaskEvent(number, kind, 0, run, turn, {"message_id": "m-1", "state": "completed"}, entries)


ASKED = ModelEntry(reply=ModelReply(text="", calls=(ToolCall(call_id="c-1", tool="refund", arguments={}),)))
SAID = ModelEntry(reply=ModelReply(text="done"))
RESULT = ToolEntry(result=ToolResult(call_id="c-1", tool="refund", status="ok", text="ok"))


def sound() -> Events:
    return [
        event(1, "message.admitted"),
        event(2, "run.started"),
        event(3, "message.promoted"),
        event(4, "model.answered", ASKED, turn=1),
        event(5, "tool.finished", RESULT, turn=1),
        event(6, "model.answered", SAID, turn=2),
        event(7, "run.ended"),
        event(8, "task.status"),
    ]


def effect(begun: int) -> EffectRow:
    return EffectRow(
        key="t-1/1/0",
        task_id="t-1",
        turn=1,
        index=0,
        tool="refund",
        effect="once",
        outcome="done",
        status="ok",
        begun=tuple(EffectAttemptRow(attempt=n + 1, worker="w", begun_at_ms=0) for n in range(begun)),
        late=False,
        done_at_ms=0,
    )


def numbered(events: Events) -> Events:
    return [
        TaskEvent(number, each.kind, 0, each.run, each.turn, each.data, each.entries)
        for number, each in enumerate(events, 1)
    ]


def without(place: int) -> Callable[[Events], Events]:
    return lambda events: numbered(events[:place] + events[place + 1 :])


def twice(place: int) -> Callable[[Events], Events]:
    return lambda events: numbered(events[: place + 1] + events[place:])


def test_a_sound_log_breaks_nothing() -> None:
    assert broken_promises(sound(), [effect(1)]) == ()
    assert broken_promises([], []) == ()


def test_a_task_on_its_way_breaks_nothing() -> None:
    for length in range(len(sound())):
        assert broken_promises(sound()[:length], []) == (), length


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda events: events[:3] + events[4:], "P6: the events are numbered"),
        (without(6), "P5: the task is completed, and run 1 has no end"),
        (twice(6), "P5: runs [1] began, and [1, 1] ended"),
        (twice(7), "P5: terminal states at [8, 9]"),
        (without(2), "P1: message m-1 was admitted 1 times and acted on 0 times"),
        (twice(2), "P1: message m-1 was admitted 1 times and acted on 2 times"),
        (without(0), "P1: message m-1 was admitted 0 times and acted on 1 times"),
        (twice(5), "P2: turn 2 has 2 answers"),
        (without(4), "R14: turn 2 was asked before the results of ['c-1']"),
        (twice(4), "R14: event 6 has the result of c-1, none was due"),
    ],
)
def test_each_fault_is_named(wrong: Callable[[Events], Events], words: str) -> None:
    found = broken_promises(wrong(sound()), [])
    assert any(each.startswith(words) for each in found), found


def ended_with(*left: str, answered: bool, before: int = 0) -> Events:
    """Return a log whose task was canceled, and whose end lists these messages."""
    data: dict[str, JsonValue] = {"state": "canceled", "unprocessed": list(left)}
    data |= {"unprocessed_before": before} if before else {}
    end = TaskEvent(0, "task.status", 0, 1, 0, data, ())
    begun = sound()[: 4 if answered else 3]
    return numbered([*begun, event(0, "run.ended"), end])


@pytest.mark.parametrize(
    ("events", "times"),
    [
        (ended_with("m-1", answered=False), 1),
        (ended_with(answered=False, before=1), 1),
        (ended_with(answered=False), 0),
        (ended_with(answered=True), 1),
        (ended_with("m-1", answered=True), 2),
    ],
)
def test_a_message_that_no_reply_came_after_is_listed_at_the_end_and_no_other(events: Events, times: int) -> None:
    found = [each for each in broken_promises(events, []) if each.startswith("P1")]
    wrong = [f"P1: message m-1 was admitted 1 times and acted on {times} times"]
    assert found == ([] if times == 1 else wrong)


def test_a_once_call_that_was_begun_twice_is_named() -> None:
    assert broken_promises(sound(), [effect(2)]) == ("P3: t-1/1/0 (refund) was begun 2 times",)
