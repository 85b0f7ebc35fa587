"""The soak's checker can find what it looks for: each made-up break is found, and only it."""

from typing import Any

import pytest

from tests.races.checker import Verdict, judge
from tests.races.notes import Note

KEY = "t/1/0"


def sent(name: str, at: float, lane: str = "queue") -> Note:
    return {"op": "send", "task": "t", "name": name, "lane": lane, "outcome": "ok", "sent": at, "acked": at + 0.1}


def asked(op: str, name: str, at: float, outcome: str = "ok") -> Note:
    return {"op": op, "task": "t", "name": name, "outcome": outcome, "sent": at, "acked": at + 0.1}


def event(number: int, kind: str, run: int = 1) -> Note:
    return {"op": "event", "task": "t", "number": number, "kind": kind, "run": run}


def answer(text: str, outcome: str) -> Note:
    return {"op": "answer", "task": "t", "help": "h", "text": text, "outcome": outcome, "sent": 2.0, "acked": 2.1}


def decided(name: str, who: str, *, agrees: bool, outcome: str = "ok") -> Note:
    given = {"agrees": agrees, "outcome": outcome, "sent": 2.0, "acked": 2.1}
    return {"op": "decide", "task": "t", "help": "h", "name": name, "by": who, **given}


def model(*said: str, at: float = 5.0, answers: tuple[str, ...] = ()) -> Note:
    return {"what": "model", "task": "t", "turn": 1, "said": list(said), "answers": list(answers), "at": at}


def called(key: str = KEY, at: float = 5.0) -> Note:
    return {"what": "call", "task": "t", "name": "a", "key": key, "at": at}


EVENTS = [event(1, "task.created"), event(2, "run.started"), event(3, "run.ended")]
FOUND = [sent("a", 0.0), sent("b", 1.0), *EVENTS]
SEEN = [model("a"), model("a", "b"), called()]
EFFECTS = [("a", KEY)]


def verdict(clients: list[Note], outside: list[Note], effects: Any = EFFECTS) -> Verdict:
    return judge(clients, outside, effects)


def test_what_is_whole_is_called_whole() -> None:
    told = verdict([*FOUND, asked("withdraw", "c", 2.0), asked("stop", "", 6.0)], SEEN)
    assert told.broken == []
    assert told.counts["messages"] == 2
    assert told.counts["stops that could be judged"] == 1


BREAKS: dict[str, tuple[list[Note], list[Note], list[tuple[str, str]], str]] = {
    "lost": ([*FOUND, sent("c", 2.0)], SEEN, EFFECTS, "P1: c was lost"),
    "doubled": (FOUND, [model("a", "b", "b")], EFFECTS, "P1: b was told 2 times"),
    "out of order": (FOUND, [model("b", "a")], EFFECTS, "P1: a came to the queue lane before b, and was told after it"),
    "a moved one out of order": (
        [*FOUND, sent("s", 3.0, "steer"), asked("steer", "b", 2.0)],
        [model("a", "s", "b")],
        EFFECTS,
        "P1: b came to the steer lane before s, and was told after it",
    ),
    "rewritten": (FOUND, [model("b"), model("a", "b")], EFFECTS, "P1: the model was told ['b'], and otherwise"),
    "taken back and told": ([*FOUND, asked("withdraw", "b", 2.0)], SEEN, EFFECTS, "R6: b was taken back, and told"),
    "refused to give back and lost": (
        [*FOUND, sent("c", 2.0), asked("withdraw", "c", 3.0, "refused")],
        SEEN,
        EFFECTS,
        "P1: c was lost",
    ),
    "a second effect": (FOUND, SEEN, [*EFFECTS, ("a", "t/2/0")], "P3: a had 2 effects"),
    "begun twice": (FOUND, [*SEEN, called()], EFFECTS, f"P3: {KEY} was begun 2 times"),
    "after a stop": ([*FOUND, asked("stop", "", 3.0)], SEEN, EFFECTS, "P9: a model reached the outside 1.90 s"),
    "a call after a stop": (
        [*FOUND, asked("stop", "", 5.5)],
        [*SEEN, called("t/1/1", at=7.0)],
        EFFECTS,
        "P9: a call reached the outside 1.40 s",
    ),
    "a gap": ([*FOUND, event(5, "task.status")], SEEN, EFFECTS, "P6: event 5 came after 3"),
    "two ends": ([*FOUND, event(4, "run.ended")], SEEN, EFFECTS, "P5: runs [1] began, and [1, 1] ended"),
    "no end": ([*FOUND, event(4, "run.started", 2)], SEEN, EFFECTS, "P5: runs [1, 2] began, and [1] ended"),
    "two answers": (
        [*FOUND, answer("x", "ok"), answer("y", "ok")],
        [model("a", "b", answers=("x", "y")), called()],
        EFFECTS,
        "question h took ['x', 'y']",
    ),
    "an effect that nobody approved": (
        [*FOUND, decided("c!", "no", agrees=True, outcome="refused")],
        SEEN,
        [*EFFECTS, ("c!", "t/2/0")],
        "B10: c! had an effect that nobody approved",
    ),
    "a declined one that ran": (
        [*FOUND, decided("c!", "yes", agrees=True, outcome="unknown"), decided("c!", "no", agrees=False)],
        SEEN,
        [*EFFECTS, ("c!", "t/2/0")],
        "B10: c! was declined, and had an effect",
    ),
    "two words for one call": (
        [*FOUND, decided("c!", "yes", agrees=True), decided("c!", "no", agrees=False)],
        SEEN,
        EFFECTS,
        "B22: the approval of c! took 2 words",
    ),
    "an answer that nobody heard": (
        [*FOUND, answer("x", "ok")],
        SEEN,
        EFFECTS,
        "P1: the answer x was taken and told 0",
    ),
    "a refused answer that was heard": (
        [*FOUND, answer("x", "refused")],
        [model("a", "b", answers=("x",)), called()],
        EFFECTS,
        "the answer x was refused, and told",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_every_break_is_found(name: str) -> None:
    clients, outside, effects, words = BREAKS[name]
    broken = verdict(clients, outside, effects).broken
    assert broken
    assert all(words in each for each in broken[:1]), broken


def test_what_is_not_known_is_held_against_nobody() -> None:
    unknown = [*FOUND, sent("c", 2.0), asked("withdraw", "c", 3.0, "unknown")]
    assert verdict(unknown, SEEN).broken == []
    together = [sent("a", 0.0), sent("b", 0.05), *EVENTS]
    assert verdict(together, [model("b", "a"), called()]).broken == []
    # New work that was given while the stop was on its way may begin after it.
    given = [*FOUND, asked("stop", "", 3.0), sent("c", 3.05)]
    assert verdict(given, [model("a", "b", "c"), called()]).broken == []
