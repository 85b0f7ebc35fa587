"""Judges of what happened outside: once, as the model was told, and not without leave (P3, P4, B10, B22)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.races.known import Known
from tests.races.notes import Note
from tests.races.soaking import ASKS, PAYS

Effects = Sequence[tuple[str, str]]
"""The outside's own: name and key of each."""


def judge_effects(task: Known, seen: Sequence[Note], effects: Effects) -> Iterator[str]:
    """P3, P4: one effect of each message, no key arrives twice, and the model knows what happened."""
    acted = Counter(name for name, _ in effects)
    for name, count in acted.items():
        if count > 1:
            yield f"P3: {name} had {count} effects"
    for key, count in Counter(note["key"] for note in seen if note["what"] == "call").items():
        if count > 1:
            yield f"P3: {key} was begun {count} times"
    yield from _missing(task, seen, set(acted))
    yield from _guessed(seen, set(acted))
    yield from _untold(task, seen)


def _missing(task: Known, seen: Sequence[Note], acted: set[str]) -> Iterator[str]:
    """What the model was told has its effect, where nothing ended a run after it was sent and nobody declined it."""
    words = [note for note in task.of("decide") if note["outcome"] == "ok"]
    agreed = {note["name"] for note in words if note["agrees"]} - {note["name"] for note in words if not note["agrees"]}
    told = {name for note in seen if note["what"] == "model" for name in note["said"]}
    for name in sorted(told - acted):
        message = task.messages.get(name)
        free = ASKS not in name and (PAYS not in name or name in agreed)
        if message is not None and free and not task.halted(message.sent):
            yield f"P3: {name} was told, nobody stopped the task after it, and it has no effect"


def _guessed(seen: Sequence[Note], acted: set[str]) -> Iterator[str]:
    """P4: `ok` means that it happened, `error` and `not_begun` that it did not; `unknown` is only for what was cut."""
    ended = {note["key"] for note in seen if note["what"] == "end"}
    cut = {note["name"] for note in seen if note["what"] == "call" and note["key"] not in ended}
    for name, told in _results(seen).items():
        if len(told) > 1:
            yield f"R14: of {name} the model was told {sorted(told)}"
        if "ok" in told and name not in acted:
            yield f"P4: the model was told that {name} is done, and the outside does not have it"
        if told & {"error", "not_begun"} and name in acted:
            yield f"P4: the model was told that {name} is not done ({sorted(told)}), and the outside has it"
        if "unknown" in told and name not in cut:
            yield f"P4: the model was told that the outcome of {name} is unknown, and its call was not cut"


def _untold(task: Known, seen: Sequence[Note]) -> Iterator[str]:
    """R14: once a task has answered, its model knows what became of every call."""
    asked, results = [note for note in seen if note["what"] == "model"], _results(seen)
    if asked and task.ends and task.ends[-1]["end"] == "answered":
        for name in asked[-1]["said"]:
            if ASKS not in name and name not in results:
                yield f"R14: the model was never told what became of {name}"


def _results(seen: Sequence[Note]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for note in seen:
        if note["what"] == "model":
            for name, status in note["results"]:
                found[name].add(status)
    return found


def judge_approvals(task: Known, effects: Effects) -> Iterator[str]:
    """B10, B22: what needs an approval has an effect only where somebody gave one, and one word of two counts."""
    acted = {name for name, _ in effects}
    words: dict[str, list[Note]] = defaultdict(list)
    for note in task.of("decide"):
        words[note["name"]].append(note)
    for name, said in words.items():
        taken = [note for note in said if note["outcome"] == "ok"]
        if len(taken) > 1:
            yield f"B22: the approval of {name} took {len(taken)} words"
        if name in acted and any(not note["agrees"] for note in taken):
            yield f"B10: {name} was declined, and had an effect"
    for name in sorted(each for each in acted if PAYS in each):
        if not any(note["agrees"] and note["outcome"] != "refused" for note in words[name]):
            yield f"B10: {name} had an effect that nobody approved"
