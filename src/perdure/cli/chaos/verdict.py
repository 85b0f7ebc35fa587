"""The verdict on each promise: held, broken, or not judged, and why.

Nothing counts as held for lack of a witness. What the records show to be broken is broken (`app/judging.py`); P3 and P4
are about the outside world, and are held only where a world probe has said so. P7, P8, P10 and P11 take other tools: a
long life, a quiet wait, a stopwatch on each death, a replay.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from perdure.app.judging import broken_promises
from perdure.cli.chaos.evidence import Evidence
from perdure.core.ports import EffectRow
from perdure.core.state import TERMINAL

Word = Literal["held", "broken", "not judged"]

WITHOUT_PROBE: Final = "no world probe: what the outside saw is unknown (--probe module:function)"


@dataclass(frozen=True)
class Judgement:
    """What became of one promise in one run. `promise` is its number, or `end` for how the task ended."""

    promise: str
    word: Word
    found: str


def judge(undisturbed: Evidence, evidence: Evidence) -> tuple[Judgement, ...]:
    """Judge a disturbed run, in the order of the promises."""
    records = broken_promises(evidence.events, evidence.effects)

    def of(promise: str) -> list[str]:
        return [words.partition(": ")[2] for words in records if words.startswith(f"{promise}:")]

    known = undisturbed.covered | evidence.covered
    judged = [
        _word("P1", [*of("P1"), *_not_admitted(evidence)], f"{len(evidence.acknowledged)} acknowledged messages"),
        _word("P2", [*of("P2"), *_asked_again(evidence)], f"{len(evidence.of('model.answered'))} answers, one a turn"),
        _effects("P3", [*of("P3"), *_repeated(evidence)], evidence, known),
        _effects("P4", list(_guessed(undisturbed, evidence)), evidence, known),
        _word(
            "P5", [*of("P5"), *of("R14"), *_no_rest(evidence)], f"{len(evidence.of('run.ended'))} runs, one end each"
        ),
        _word("P6", [*of("P6"), *_followed(evidence)], f"{len(evidence.events)} events, stored and as followed live"),
        _stopped(evidence),
        _same_end(undisturbed, evidence),
    ]
    if evidence.plan and not evidence.kills:
        return tuple(_unless_broken(judgement) for judgement in judged)
    return tuple(judged)


def _unless_broken(judgement: Judgement) -> Judgement:
    """Take back what a run held that no kill reached: it has shown nothing."""
    if judgement.word != "held":
        return judgement
    return replace(judgement, word="not judged", found="the task had ended before the first kill; shorten --every")


def _word(promise: str, problems: list[str], found: str) -> Judgement:
    return Judgement(promise, "broken" if problems else "held", "; ".join(problems) or found)


# --- the records ------------------------------------------------------------------------------------------------


def _not_admitted(evidence: Evidence) -> Iterator[str]:
    admitted = Counter(str(event.data["message_id"]) for event in evidence.of("message.admitted"))
    for message_id in evidence.acknowledged:
        if admitted[message_id] != 1:
            yield f"message {message_id} was acknowledged, and admitted {admitted[message_id]} times"


def _asked_again(evidence: Evidence) -> Iterator[str]:
    """A model call that began after its turn's answer stood; two completions in Temporal's own history."""
    answered = {event.turn: event.at_ms for event in evidence.of("model.answered")}
    for call in evidence.model_calls:
        if call.turn in answered and call.begun_at_ms > answered[call.turn]:
            yield f"turn {call.turn} was asked again (attempt {call.attempt}) after its answer was recorded"
    completed = Counter(
        row.turn for row in evidence.history if row.activity == "invoke_llm" and row.outcome == "completed"
    )
    for turn, count in completed.items():
        if count > 1:
            yield f"turn {turn} has {count} completed model calls in Temporal's history"


def _no_rest(evidence: Evidence) -> Iterator[str]:
    open_runs = len(evidence.of("run.started")) - len(evidence.of("run.ended"))
    if open_runs or not (evidence.state in TERMINAL or evidence.state == "input_required"):
        yield f"the task is {evidence.state} with {open_runs} runs open"


def _followed(evidence: Evidence) -> Iterator[str]:
    for numbers in evidence.followed:
        if list(numbers) != list(range(1, len(numbers) + 1)):
            yield f"a client that followed the task got the events {list(numbers)}"


def _stopped(evidence: Evidence) -> Judgement:
    stops = evidence.of("run.stop_requested")
    if not stops:
        return Judgement("P9", "not judged", "nothing was stopped")
    late = [
        f"{event.kind} {event.number} of run {event.run} came after its stop {stop.number}"
        for stop in stops
        for event in evidence.of("model.started", "tool.started")
        if event.run == stop.run and event.number > stop.number
    ]
    return _word("P9", late, f"{len(stops)} stops, and nothing of their runs began afterwards")


def _same_end(undisturbed: Evidence, evidence: Evidence) -> Judgement:
    ends = [(run.state, run.reason) for run in (undisturbed, evidence)]
    found = " ".join(filter(None, ends[1]))
    problems = [] if ends[0] == ends[1] else [f"it ended {found}, and {' '.join(filter(None, ends[0]))} undisturbed"]
    return _word("end", problems, f"{found}, as undisturbed")


# --- the outside world ------------------------------------------------------------------------------------------


def _effects(promise: str, problems: list[str], evidence: Evidence, known: frozenset[str]) -> Judgement:
    """Give the word on a promise about effects: broken if anything shows it, held only if the world was asked."""
    if problems:
        return Judgement(promise, "broken", "; ".join(problems))
    if evidence.world is None:
        return Judgement(promise, "not judged", WITHOUT_PROBE)
    if evidence.strangers:
        found = f"the probe lists {evidence.strangers} effects under keys of no call: nobody can say whose they are"
        return Judgement(promise, "not judged", found)
    rows = _changing(evidence)
    if not rows:
        return Judgement(promise, "not judged", "the agent called nothing that changes anything")
    unlisted = {row.tool for row in rows} - known
    # An idempotent call that only looks has no effect to list; one that is not safe to repeat must have a witness.
    missing = {row.tool for row in rows if row.effect == "once"} & unlisted
    if missing or unlisted == {row.tool for row in rows}:
        tools = ", ".join(sorted(missing or unlisted))
        return Judgement(promise, "not judged", f"the probe lists no effect of {tools}, so nobody knows of them")
    beside = f"; none of {', '.join(sorted(unlisted))}, which is idempotent" if unlisted else ""
    return Judgement(promise, "held", f"{len(rows)} keys, {len(evidence.world)} effects in the world{beside}")


def _changing(evidence: Evidence) -> list[EffectRow]:
    return [row for row in evidence.effects if row.effect != "read"]


def _repeated(evidence: Evidence) -> Iterator[str]:
    """A call whose effect came more than once, under one key or under its keys together."""
    calls: dict[tuple[int, int], list[EffectRow]] = {}
    for row in _changing(evidence):
        calls.setdefault((row.turn, row.index), []).append(row)
    for (turn, index), rows in calls.items():
        applied = sum(evidence.seen(row.key) or 0 for row in rows)
        if applied > 1:
            keys = ", ".join(row.key for row in rows)
            yield f"the effect of {rows[0].tool} (turn {turn}, call {index}) came {applied} times ({keys})"


def _guessed(undisturbed: Evidence, evidence: Evidence) -> Iterator[str]:
    """A call of which the harness says one thing and the world another, and one of which it says nothing."""
    told_unknown = {str(event.data["key"]) for event in evidence.of("tool.in_doubt")}
    always = {row.tool for row in _ok(undisturbed)} - {
        row.tool for row in _ok(undisturbed) if not _seen(undisturbed, row)
    }
    for row in _changing(evidence):
        if row.outcome == "open" and row.key not in told_unknown:
            yield f"{row.key} ({row.tool}) was begun, and nothing was said of its outcome"
        if evidence.world is None:
            continue
        if row.outcome == "closed" and _seen(evidence, row):
            yield f"{row.key} ({row.tool}) was closed as not happened, and the world has its effect"
        if row.status == "error" and _seen(evidence, row):
            yield f"{row.key} ({row.tool}) was told to the model as not happened, and the world has its effect"
        if row.status == "ok" and row.tool in always and not _seen(evidence, row):
            yield f"{row.key} ({row.tool}) was told to the model as done, and the world has no effect of it"


def _ok(evidence: Evidence) -> list[EffectRow]:
    return [row for row in _changing(evidence) if row.status == "ok"]


def _seen(evidence: Evidence, row: EffectRow) -> bool:
    return bool(evidence.seen(row.key))
