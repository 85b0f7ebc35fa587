"""What is read as a wait in Temporal's history, and that each thing that may not happen in one is counted."""

from collections.abc import Iterable

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from perdure.cli.demo.evidence import waiting
from perdure.cli.demo.waits import Wait, waits, waits_in
from perdure.testing import call, say
from tests.temporal.bench import Bench, event, until

ASKED = 4
"""The number of the event that schedules the question's write in each of these histories."""

BEFORE = "wf.scheduled wf.started wf.completed"
WRITTEN = f"{BEFORE} scheduled started completed:4"
TAKEN_IN = "wf.scheduled wf.started wf.completed"
ANSWER = "wf.scheduled wf.started wf.completed accepted"


def history(words: str) -> list[HistoryEvent]:
    """Return events of these kinds, a second apart; `:n` names the event that one ends."""
    kinds = {
        "wf.scheduled": EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        "wf.started": EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
        "wf.completed": EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        "wf.timed_out": EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
        "scheduled": EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        "started": EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED,
        "completed": EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
        "failed": EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED,
        "timer": EventType.EVENT_TYPE_TIMER_STARTED,
        "fired": EventType.EVENT_TYPE_TIMER_FIRED,
        "accepted": EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
    }
    events = []
    for number, word in enumerate(words.split(), 1):
        name, _, of = word.partition(":")
        event = HistoryEvent(event_id=number, event_type=kinds[name])
        event.event_time.FromMilliseconds(number * 1_000)
        if name == "completed":
            event.activity_task_completed_event_attributes.scheduled_event_id = int(of)
        elif name == "failed":
            event.activity_task_failed_event_attributes.scheduled_event_id = int(of)
        elif name == "fired":
            event.timer_fired_event_attributes.started_event_id = int(of)
        events.append(event)
    return events


def counted(found: Iterable[Wait]) -> list[tuple[int, int, int]]:
    return [(wait.activities, wait.timers, wait.workflow_tasks) for wait in found]


def test_a_wait_is_from_the_write_that_was_taken_in_to_the_answer() -> None:
    (wait,) = waits_in(history(f"{WRITTEN} {TAKEN_IN} {ANSWER}"), {ASKED})
    assert wait == Wait(began_ms=9_000, ended_ms=10_000)
    assert wait.quiet


def test_an_answer_that_was_to_go_to_a_dead_worker_first_came_when_it_came() -> None:
    late = f"{WRITTEN} {TAKEN_IN} wf.scheduled wf.timed_out wf.scheduled wf.started wf.timed_out {ANSWER}"
    (wait,) = waits_in(history(late), {ASKED})
    assert (wait.ended_ms, wait.quiet) == (10_000, True)


@pytest.mark.parametrize(
    ("before", "meanwhile", "expected"),
    [
        ("", "scheduled", (1, 0, 0)),
        ("", "scheduled started completed:10", (1, 0, 0)),
        ("", "timer", (0, 1, 0)),
        ("", "wf.scheduled wf.started wf.completed", (0, 0, 1)),
        ("", "timer fired:10 wf.scheduled wf.started wf.completed", (0, 1, 1)),
        ("scheduled", "", (1, 0, 0)),
        ("scheduled started failed:5", "", (0, 0, 0)),
        ("timer", "", (0, 1, 0)),
        ("timer fired:5", "", (0, 0, 0)),
    ],
)
def test_what_is_open_or_begun_in_a_wait_is_counted(
    before: str, meanwhile: str, expected: tuple[int, int, int]
) -> None:
    words = f"{BEFORE} scheduled {before} started completed:4 {TAKEN_IN} {meanwhile} {ANSWER}"
    assert counted(waits_in(history(words), {ASKED})) == [expected]


def test_a_question_that_has_no_answer_yet_and_an_answer_to_none_are_no_waits() -> None:
    assert waits_in(history(f"{WRITTEN} {TAKEN_IN}"), {ASKED}) == ()
    assert waits_in(history(f"{WRITTEN} {TAKEN_IN} {ANSWER}"), ()) == ()
    at_once = f"{WRITTEN} wf.scheduled wf.started wf.completed accepted"
    assert waits_in(history(at_once), {ASKED}) == ()


async def rests(bench: Bench, task_id: str) -> bool:
    now = await waiting(bench.client, task_id)
    return not (now.activities or now.workflow_task)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_by_a_real_history_an_expiry_is_a_timer_and_a_question_without_one_is_quiet(bench: Bench) -> None:
    agent = bench.agent(
        call("ask_participant", {"question": "Which?", "expires_in_s": 3600}),
        call("ask_participant", {"question": "And where to?"}),
        say("done"),
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        for number in (1, 2):
            asked = await event(task, "help.requested", count=number)
            await until(lambda: rests(bench, task.id))  # what is shown may be on its way back to the workflow
            await task.answer(asked.help_id, "here")
        assert await task.result() == "done"
    found = await waits(bench.client, task.id)
    assert counted(found) == [(0, 1, 0), (0, 0, 0)]
    assert all(wait.ended_ms > wait.began_ms for wait in found)
