"""What a task's own records must show, whatever was killed: the promises, read from its log and its ledger.

Records can prove that a promise was broken. That it was kept takes the outside as well: whether an effect happened
twice (P3) or was guessed (P4) is known only to the system that the tool changes, and is judged there.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from perdure.app.events import TaskEvent
from perdure.core.content import ModelEntry, ToolEntry
from perdure.core.ports import EffectRow
from perdure.core.state import TERMINAL


def broken_promises(events: Sequence[TaskEvent], effects: Sequence[EffectRow]) -> tuple[str, ...]:
    """Return what the whole log of a task and its ledger show to be broken, each with its promise's number."""
    judges = (_numbers, _ends, _messages, _answers, _approvals, _results)
    return (*(words for judge in judges for words in judge(events)), *_ledger(effects))


def _numbers(events: Sequence[TaskEvent]) -> Iterator[str]:
    numbers = [event.number for event in events]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"P6: the events are numbered {numbers}"


def _ends(events: Sequence[TaskEvent]) -> Iterator[str]:
    started = [event.run for event in events if event.kind == "run.started"]
    ended = [event.run for event in events if event.kind == "run.ended"]
    if started != list(range(1, len(started) + 1)) or ended not in (started, started[:-1]):
        yield f"P5: runs {started} began, and {ended} ended"
    terminal = [event for event in events if event.kind == "task.status" and event.data["state"] in TERMINAL]
    if len(terminal) > 1 or (terminal and terminal[0] is not events[-1]):
        yield f"P5: terminal states at {[event.number for event in terminal]}, the last event is {events[-1].number}"
    if terminal and ended != started:
        yield f"P5: the task is {terminal[0].data['state']}, and run {started[-1]} has no end"


def _messages(events: Sequence[TaskEvent]) -> Iterator[str]:
    """P1: each admitted message is promoted once, withdrawn, or still waiting; a terminal event lists what waited."""
    became, terminal = fates(events), any(map(_is_end, events))
    admitted = Counter(str(event.data["message_id"]) for event in events if event.kind == "message.admitted")
    for message_id in sorted({*admitted, *became}):
        counts = admitted[message_id], became[message_id]
        if counts != (1, 1) and (terminal or counts != (1, 0)):
            yield f"P1: message {message_id} was admitted {counts[0]} times and acted on {counts[1]} times"


def fates(events: Sequence[TaskEvent]) -> Counter[str]:
    """Return how often each message met its fate: acted on, withdrawn, or listed by the task's end.

    One that was promoted and that no reply came after was not acted on when the task ends; its end lists it, or counts
    it among those that were too many to name.
    """
    found = Counter(str(event.data["message_id"]) for event in events if event.kind == "message.withdrawn")
    replied = max((event.number for event in events if event.kind == "model.answered"), default=0)
    end = next(filter(_is_end, events), None)
    listed = [] if end is None else end.data.get("unprocessed")
    named = Counter(map(str, listed if isinstance(listed, list) else ()))
    uncounted = 0 if end is None else int(str(end.data.get("unprocessed_before", 0)))
    before: set[str] = set()
    for event in events:
        if event.kind != "message.promoted":
            continue
        name = str(event.data["message_id"])
        if end is None or event.number < replied or name in before:
            found[name] += 1
        elif name not in named and uncounted > 0:
            found[name], uncounted = found[name] + 1, uncounted - 1
        before.add(name)
    return found + named


def _is_end(event: TaskEvent) -> bool:
    return event.kind == "task.status" and event.data["state"] in TERMINAL


def _answers(events: Sequence[TaskEvent]) -> Iterator[str]:
    answered = Counter(event.turn for event in events if event.kind == "model.answered")
    for turn, count in answered.items():
        if count > 1:
            yield f"P2: turn {turn} has {count} answers"


def _approvals(events: Sequence[TaskEvent]) -> Iterator[str]:
    """P3: a call that was to wait for a person begins after they approved it, and one that a rule denies never does."""
    waits: dict[tuple[int, int], str] = {}
    for event in events:
        calls = event.data.get("calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and isinstance(ruling := call.get("ruling"), dict):
                waits[event.turn, int(str(call["index"]))] = str(ruling.get("rule"))
        at = event.turn, int(str(event.data.get("index", -1)))
        if event.kind == "help.answered" and event.data.get("verdict") == "approved":
            waits.pop(at, None)
        elif event.kind == "tool.started" and at in waits:
            yield f"P3: event {event.number} begins call {at[0]}/{at[1]}, and nobody approved it ({waits[at]})"


def _results(events: Sequence[TaskEvent]) -> Iterator[str]:
    owed: list[str] = []
    for event in events:
        for entry in () if event.kind == "message.admitted" else event.entries:
            if isinstance(entry, ModelEntry):
                if owed:
                    yield f"R14: turn {event.turn} was asked before the results of {owed}"
                owed = [call.call_id for call in entry.reply.calls]
            elif isinstance(entry, ToolEntry):
                expected = owed.pop(0) if owed else "none"
                if entry.result.call_id != expected:
                    yield f"R14: event {event.number} has the result of {entry.result.call_id}, {expected} was due"


def _ledger(effects: Sequence[EffectRow]) -> Iterator[str]:
    for row in effects:
        if row.effect == "once" and len(row.open_ended) > 1:
            yield f"P3: {row.key} ({row.tool}) was begun {len(row.open_ended)} times"
