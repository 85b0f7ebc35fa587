"""The verdict over a soak, from what its clients noted and what the outside saw.

Of what Perdure says itself only that is read which the promises are about: the numbers of its events, and how runs end.
What the clients know of a task is `known.py`; judges of what the model was told stand in `told.py`, of what happened
outside in `acted.py`, and of stops, ends, streams and answers here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.races.acted import Effects, judge_approvals, judge_effects
from tests.races.known import Known, known
from tests.races.notes import Note
from tests.races.told import judge_messages

GRACE_S = 1.0
"""How long after an acknowledged stop a call that was on its way may still reach the outside."""

LONG_S = 4.0
"""A stop after which nobody came for so long shows that nothing goes on by itself later either."""


@dataclass
class Verdict:
    """What is broken, in words, and how much there was to break."""

    broken: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def judge(clients: Sequence[Note], outside: Sequence[Note], effects: Effects) -> Verdict:
    """Judge all tasks. `effects` are the outside's own: name and key of each."""
    verdict = Verdict()
    for name, task in known(clients).items():
        seen = [note for note in outside if note["task"] == name]
        happened = [each for each in effects if each[1].startswith(f"{name}/")]
        verdict.counts["tasks"] += 1
        verdict.counts["messages"] += len(task.messages)
        verdict.counts.update(f"{note['op']}s {note['outcome']}" for note in task.own if "outcome" in note)
        verdict.counts.update(f"runs {note['end']}" for note in task.ends)
        judges: tuple[Iterable[str], ...] = (
            judge_messages(task, seen),
            judge_effects(task, seen, happened),
            judge_approvals(task, happened),
            _stops(task, seen, verdict.counts),
            _ends(task),
            _streams(task, verdict.counts),
            _answers(task, [list(note["answers"]) for note in seen if note["what"] == "model"]),
        )
        verdict.broken += [f"{name}: {words}" for found in judges for words in found]
    return verdict


def _stops(task: Known, seen: Sequence[Note], counts: Counter[str]) -> Iterator[str]:
    """P9: nothing reaches the outside later than a moment after a stop, until somebody gives new work."""
    given = [*task.asked("send"), *task.asked("steer")]
    for stop in task.of("stop"):
        if stop["outcome"] == "refused":
            yield "R11: a stop was refused"
        if stop["outcome"] != "ok":
            continue
        # What was acknowledged before the stop was asked for cannot start anything after it.
        until = min((note["sent"] for note in given if note["acked"] > stop["sent"]), default=float("inf"))
        after = stop["acked"] + GRACE_S
        counts["stops that could be judged"] += until > after
        counts["stops judged for long"] += until > stop["acked"] + LONG_S
        for note in seen:
            if note["what"] != "end" and after < note["at"] < until:
                late_s = note["at"] - stop["acked"]
                yield f"P9: a {note['what']} reached the outside {late_s:.2f} s after a stop: {note}"


def _ends(task: Known) -> Iterator[str]:
    """P5, P6, R10: a client that followed saw every number once, one end of each run, and each end has its reason."""
    events = task.of("event")
    yield from _gaps([note["number"] for note in events], "event")
    started = [note["run"] for note in events if note["kind"] == "run.started"]
    ended = [note["run"] for note in task.ends]
    if started != list(range(1, len(started) + 1)) or ended != started:
        yield f"P5: runs {started} began, and {ended} ended"
    for end in task.ends:
        if not _has_reason(task, end):
            yield f"R10: run {end['run']} ended {end['end']} ({end['reason']}), and nobody gave it a reason to"


def _has_reason(task: Known, end: Note) -> bool:
    match end["end"], end["reason"]:
        case "answered", _:
            return True
        case "stopped", "stopped":
            return any(note["sent"] <= end["at"] for note in task.asked("stop"))
        case "stopped", "withdrawn":
            return any(note["sent"] <= end["at"] for note in task.asked("withdraw"))
        case _:
            return task.crash_looped(end)


def _gaps(numbers: Sequence[int], what: str) -> Iterator[str]:
    for before, number in pairwise([0, *numbers]):
        if number != before + 1:
            yield f"P6: {what} {number} came after {before}"


def _streams(task: Known, counts: Counter[str]) -> Iterator[str]:
    """P6: who follows over the wire, and comes back with the last number that it saw, sees every number once."""
    streamed = task.of("stream")
    if not streamed:
        return
    counts["streams"] += 1
    numbers: list[int] = []
    for note in streamed:
        if note["kind"] == "update":
            numbers.append(note["number"])
            continue
        counts["streams begun again"] += bool(numbers)
        if note["number"] != (numbers[-1] if numbers else 0):
            yield f"P6: a stream went on as of {note['number']} for who had seen {numbers[-1:]}"
    yield from _gaps(numbers, "a stream's event")
    last = max((note["number"] for note in task.ends), default=0)
    if not numbers or numbers[-1] < last:
        yield f"P6: the stream ended with {numbers[-1:]}, and the task's last run with {last}"


def _answers(task: Known, told: Sequence[list[str]]) -> Iterator[str]:
    """A question takes one answer, which the model is told once; no other is told at all."""
    most: list[str] = max(told, key=len, default=[])
    heard = Counter(most)
    asked: dict[str, list[Note]] = defaultdict(list)
    for note in task.of("answer"):
        asked[note["help"]].append(note)
    for help_id, answers in asked.items():
        taken = [note["text"] for note in answers if note["outcome"] == "ok"]
        if len(taken) > 1:
            yield f"question {help_id} took {taken}"
        for note in answers:
            if note["outcome"] == "ok" and heard[note["text"]] != 1:
                yield f"P1: the answer {note['text']} was taken and told {heard[note['text']]} times"
            if note["outcome"] == "refused" and heard[note["text"]]:
                yield f"the answer {note['text']} was refused, and told"
