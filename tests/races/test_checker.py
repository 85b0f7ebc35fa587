"""The soak's checker can find what it looks for: each made-up break is found, and only it."""

from typing import Any

import pytest

from tests.races.checker import Verdict, judge
from tests.races.known import TOLD_WITHIN_S, owed
from tests.races.notes import Note

KEYS = {"a": "t/1/0", "b": "t/2/0", "c": "t/3/0"}
LATER = 200.0
"""Long after everything else, in seconds: what was told only then was told too late."""


def sent(name: str, at: float, lane: str = "queue", outcome: str = "ok") -> Note:
    return {"op": "send", "task": "t", "name": name, "lane": lane, "outcome": outcome, "sent": at, "acked": at + 0.1}


def asked(op: str, name: str, at: float, outcome: str = "ok") -> Note:
    return {"op": op, "task": "t", "name": name, "outcome": outcome, "sent": at, "acked": at + 0.1}


def event(number: int, kind: str, run: int = 1, at: float = 8.0, **how: str) -> Note:
    return {"op": "event", "task": "t", "number": number, "kind": kind, "run": run, "at": at, **how}


def ended(number: int, run: int = 1, end: str = "answered", reason: str = "", at: float = 8.0) -> Note:
    return event(number, "run.ended", run, at, end=end, reason=reason)


def killed(at: float) -> Note:
    return {"op": "kill", "kind": "worker", "at": at}


def streamed(*numbers: int, kind: str = "update") -> list[Note]:
    return [{"op": "stream", "task": "t", "kind": kind, "number": number} for number in numbers]


def answer(text: str, outcome: str) -> Note:
    return {"op": "answer", "task": "t", "help": "h", "text": text, "outcome": outcome, "sent": 2.0, "acked": 2.1}


def decided(name: str, who: str, *, agrees: bool, outcome: str = "ok") -> Note:
    given = {"agrees": agrees, "outcome": outcome, "sent": 2.0, "acked": 2.1}
    return {"op": "decide", "task": "t", "help": "h", "name": name, "by": who, **given}


def model(*said: str, at: float = 5.0, answers: tuple[str, ...] = (), results: dict[str, str] | None = None) -> Note:
    """A request to the model; without `results` it is told that everything is done."""
    told = dict.fromkeys(said, "ok") if results is None else results
    what = {"said": list(said), "answers": list(answers), "results": [list(each) for each in told.items()]}
    return {"what": "model", "task": "t", "turn": 1, "at": at, **what}


def called(name: str = "a", at: float = 5.0, key: str = "") -> list[Note]:
    """A call that arrived and ended."""
    about = {"task": "t", "name": name, "key": key or KEYS[name], "at": at}
    return [{"what": what, **about} for what in ("call", "end")]


EVENTS = [event(1, "task.created"), event(2, "run.started", at=0.1), ended(3)]
FOUND = [sent("a", 0.0), sent("b", 1.0), *EVENTS]
BEGUN = [model("a", results={}), *called("a"), model("a", "b", results={"a": "ok"}), *called("b")]
SEEN = [*BEGUN, model("a", "b")]
ACTED = [("a", KEYS["a"]), ("b", KEYS["b"])]
C = [*ACTED, ("c", KEYS["c"])]


def verdict(clients: list[Note], outside: list[Note], effects: Any = ACTED) -> Verdict:
    return judge(clients, outside, effects)


def test_what_is_whole_is_called_whole() -> None:
    told = verdict([*FOUND, asked("withdraw", "c", 2.0), asked("stop", "", 6.0)], SEEN)
    assert told.broken == []
    assert told.counts["messages"] == 2
    assert told.counts["stops that could be judged"] == 1


Break = tuple[list[Note], list[Note], list[tuple[str, str]], str]
"""What clients noted, what the outside did, its effects, and what is found."""

MESSAGES: dict[str, Break] = {
    "lost": ([*FOUND, sent("c", 2.0)], SEEN, ACTED, "P1: c was lost"),
    "doubled": (FOUND, [*SEEN, model("a", "b", "b")], ACTED, "P1: b was told 2 times"),
    "out of order": (
        FOUND,
        [*called("a"), *called("b"), model("b", "a")],
        ACTED,
        "P1: a came to the queue lane before b, and was told after it",
    ),
    "a moved one out of order": (
        [*FOUND, sent("s", 3.0, "steer"), asked("steer", "b", 2.0)],
        [model("a", "s", "b")],
        [*ACTED, ("s", "t/4/0")],
        "P1: b came to the steer lane before s, and was told after it",
    ),
    "a steer that the queue overtook": (
        [*FOUND, sent("s", 1.5), asked("steer", "s", 2.0), sent("c", 3.0)],
        [model("a", "b", "c", "s")],
        [*C, ("s", "t/4/0")],
        "R4: s was in the steer lane before c was queued, and was told after it",
    ),
    "one sent as a steer that the queue overtook": (
        [*FOUND, sent("s", 2.0, "steer"), sent("c", 3.0)],
        [model("a", "b", "c", "s")],
        [*C, ("s", "t/4/0")],
        "R4: s was in the steer lane before c was queued, and was told after it",
    ),
    "rewritten": (FOUND, [model("b"), *SEEN], ACTED, "P1: the model was told ['b'], and otherwise"),
    "taken back and told": ([*FOUND, asked("withdraw", "b", 2.0)], SEEN, ACTED, "R6: b was taken back, and told"),
    "refused to give back and lost": (
        [*FOUND, sent("c", 2.0), asked("withdraw", "c", 3.0, "refused")],
        SEEN,
        ACTED,
        "P1: c was lost",
    ),
    "refused": ([*FOUND, sent("c", 2.0, outcome="refused")], SEEN, ACTED, "P1: c was refused"),
    "refused and told": (
        [*FOUND, sent("c", 2.0, outcome="refused")],
        [*SEEN, model("a", "b", "c")],
        C,
        "P1: c was refused, and told",
    ),
    "refused after a loss and told twice": (
        [*FOUND, sent("c", 2.0, outcome="unknown")],
        [*SEEN, model("a", "b", "c", "c")],
        C,
        "P1: c was told 2 times",
    ),
    "told, and sent by nobody": (
        FOUND,
        [*SEEN, model("a", "b", "c")],
        C,
        "P1: c was told, and nobody sent it",
    ),
    "woken only by the last message": (
        [sent("a", 0.0), sent("b", LATER), *EVENTS],
        [model("a", "b", at=LATER + 1), *called("a"), *called("b")],
        ACTED,
        "R7: a stood for 201 s before the model was told, and nobody stopped it",
    ),
    "parked behind a stop that was long over": (
        [sent("a", 0.0), asked("stop", "", 2.0), sent("b", 10.0), sent("c", LATER), *EVENTS],
        [model("b", at=10.5), model("b", "a", "c", at=LATER + 1)],
        C,
        "R7: a stood for 191 s before the model was told, and nobody stopped it",
    ),
    "moved, and not woken": (
        [sent("a", 0.0), asked("stop", "", 2.0), asked("steer", "a", 10.0), sent("b", LATER), *EVENTS],
        [model("a", "b", at=LATER + 1)],
        ACTED,
        "R7: a stood for 191 s before the model was told, and nobody stopped it",
    ),
    "an answer that nobody heard": (
        [*FOUND, answer("x", "ok")],
        SEEN,
        ACTED,
        "P1: the answer x was taken and told 0",
    ),
    "two answers": (
        [*FOUND, answer("x", "ok"), answer("y", "ok")],
        [*SEEN, model("a", "b", answers=("x", "y"))],
        ACTED,
        "question h took ['x', 'y']",
    ),
    "a refused answer that was heard": (
        [*FOUND, answer("x", "refused")],
        [*SEEN, model("a", "b", answers=("x",))],
        ACTED,
        "the answer x was refused, and told",
    ),
}
EFFECTS: dict[str, Break] = {
    "a second one": (FOUND, SEEN, [*ACTED, ("a", "t/2/1")], "P3: a had 2 effects"),
    "begun twice": (FOUND, [*SEEN, *called()], ACTED, "P3: t/1/0 was begun 2 times"),
    "none": (FOUND, [model("a", "b", results={"a": "not_begun", "b": "ok"})], ACTED[1:], "P3: a was told, nobody"),
    "none of any": (
        FOUND,
        [model("a", "b", results={"a": "not_begun", "b": "not_begun"})],
        [],
        "was told, nobody stopped the task after it, and it has no effect",
    ),
    "none of an approved one": (
        [*FOUND, sent("c!", 2.0), decided("c!", "yes", agrees=True)],
        [*SEEN, model("a", "b", "c!", results={"a": "ok", "b": "ok", "c!": "not_begun"})],
        ACTED,
        "P3: c! was told, nobody stopped the task after it, and it has no effect",
    ),
    "told as done, and there is none": (
        [*FOUND, asked("stop", "", 2.0)],
        SEEN,
        ACTED[1:],
        "P4: the model was told that a is done, and the outside does not have it",
    ),
    "told as not done, and there is one": (
        FOUND,
        [*BEGUN, model("a", "b", results={"a": "ok", "b": "not_begun"})],
        ACTED,
        "P4: the model was told that b is not done (['not_begun']), and the outside has it",
    ),
    "unknown, and not cut": (
        FOUND,
        [*BEGUN, model("a", "b", results={"a": "ok", "b": "unknown"})],
        ACTED,
        "P4: the model was told that the outcome of b is unknown, and its call was not cut",
    ),
    "told as two things": (
        FOUND,
        [*SEEN, *called("b", key="t/9/0")[:1], model("a", "b", results={"a": "ok", "b": "unknown"})],
        ACTED,
        "R14: of b the model was told ['ok', 'unknown']",
    ),
    "never told": (FOUND, BEGUN, ACTED, "R14: the model was never told what became of b"),
    "nobody approved it": (
        [*FOUND, sent("c!", 2.0), decided("c!", "no", agrees=True, outcome="refused")],
        [*SEEN, model("a", "b", "c!")],
        [*ACTED, ("c!", "t/3/0")],
        "B10: c! had an effect that nobody approved",
    ),
    "declined": (
        [
            *(*FOUND, sent("c!", 2.0), decided("c!", "yes", agrees=True, outcome="unknown")),
            decided("c!", "no", agrees=False),
        ],
        [*SEEN, model("a", "b", "c!")],
        [*ACTED, ("c!", "t/3/0")],
        "B10: c! was declined, and had an effect",
    ),
    "two words for one call": (
        [*FOUND, sent("c!", 2.0), decided("c!", "yes", agrees=True), decided("c!", "no", agrees=False)],
        [*SEEN, model("a", "b", "c!", results={"a": "ok", "b": "ok", "c!": "not_begun"})],
        ACTED,
        "B22: the approval of c! took 2 words",
    ),
}
THREE = [event(4, "run.started", 2, at=9.0), ended(5, 2, "failed", "crash_loop", at=12.0)]
REST: dict[str, Break] = {
    "after a stop": ([*FOUND, asked("stop", "", 3.0)], SEEN, ACTED, "P9: a model reached the outside 1.90 s"),
    "a call after a stop": (
        [*FOUND, asked("stop", "", 5.5)],
        [*SEEN, *called("a", 7.0, "t/1/1")],
        ACTED,
        "P9: a call reached the outside 1.40 s",
    ),
    "a call long after a stop": (
        [*FOUND, asked("stop", "", 5.5)],
        [*SEEN, *called("a", 11.0, "t/1/1")],
        ACTED,
        "P9: a call reached the outside 5.40 s",
    ),
    "a stop that was refused": (
        [*FOUND, asked("stop", "", 30.0, "refused")],
        SEEN,
        ACTED,
        "R11: a stop was refused",
    ),
    "a gap": ([*FOUND, event(5, "task.status")], SEEN, ACTED, "P6: event 5 came after 3"),
    "two ends": ([*FOUND, ended(4)], SEEN, ACTED, "P5: runs [1] began, and [1, 1] ended"),
    "no end": ([*FOUND, event(4, "run.started", 2)], SEEN, ACTED, "P5: runs [1, 2] began, and [1] ended"),
    "failed without a reason": (
        [*FOUND[:-1], ended(3, end="failed", reason="model")],
        SEEN,
        ACTED,
        "R10: run 1 ended failed (model), and nobody gave it a reason to",
    ),
    "a crash loop without its deaths": (
        [*FOUND, *THREE, killed(10.0), killed(11.0)],
        SEEN,
        ACTED,
        "R10: run 2 ended failed (crash_loop), and nobody gave it a reason to",
    ),
    "stopped by nobody": (
        [*FOUND[:-1], ended(3, end="stopped", reason="stopped")],
        SEEN,
        ACTED,
        "R10: run 1 ended stopped (stopped), and nobody gave it a reason to",
    ),
    "a stream's gap": ([*FOUND, *streamed(1, 3)], SEEN, ACTED, "P6: a stream's event 3 came after 1"),
    "a stream's second": ([*FOUND, *streamed(1, 2, 2, 3)], SEEN, ACTED, "P6: a stream's event 2 came after 2"),
    "a stream that went on elsewhere": (
        [*FOUND, *streamed(1, 2), *streamed(1, kind="begun"), *streamed(3)],
        SEEN,
        ACTED,
        "P6: a stream went on as of 1 for who had seen [2]",
    ),
    "a stream that stayed behind": (
        [*FOUND, *streamed(1, 2)],
        SEEN,
        ACTED,
        "P6: the stream ended with [2], and the task's last run with 3",
    ),
}
BREAKS = {
    f"{kind}: {name}": each
    for kind, breaks in {"messages": MESSAGES, "effects": EFFECTS, "the rest": REST}.items()
    for name, each in breaks.items()
}


@pytest.mark.parametrize("name", BREAKS)
def test_every_break_is_found(name: str) -> None:
    clients, outside, effects, words = BREAKS[name]
    broken = verdict(clients, outside, effects).broken
    assert broken
    assert all(words in each for each in broken[:1]), broken


UNKNOWN: dict[str, tuple[list[Note], list[Note]]] = {
    "a withdrawal": ([*FOUND, sent("c", 2.0), asked("withdraw", "c", 3.0, "unknown")], SEEN),
    "a sending that was not told": ([*FOUND, sent("c", 2.0, outcome="unknown")], SEEN),
    "which of two that were sent at once came first": (
        [sent("a", 0.0), sent("b", 0.05), *EVENTS],
        [*called("a"), *called("b"), model("b", "a")],
    ),
    "where a message is whose move was lost": (
        [sent("b", 0.0), asked("steer", "b", 1.0, "unknown"), sent("a", 2.0, "steer"), *EVENTS],
        [*called("a"), *called("b"), model("a", "b")],
    ),
    "when a message was parked by a stop": (
        [sent("a", 0.0), asked("stop", "", 2.0), sent("b", LATER), *EVENTS],
        [model("a", "b", at=LATER + 1), *called("a", LATER + 2), *called("b", LATER + 2)],
    ),
    "what a call came to that was cut": (FOUND, [*BEGUN[:-1], model("a", "b", results={"a": "ok", "b": "unknown"})]),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_is_not_known_is_held_against_nobody(what: str) -> None:
    assert verdict(*UNKNOWN[what]).broken == []


def test_new_work_that_was_given_while_a_stop_was_on_its_way_may_begin_after_it() -> None:
    given = [*FOUND, asked("stop", "", 3.0), sent("c", 3.05)]
    assert verdict(given, [*SEEN, *called("c"), model("a", "b", "c")], C).broken == []


def test_one_that_was_refused_after_a_loss_may_be_told_once() -> None:
    told = verdict([*FOUND, sent("c", 2.0, outcome="unknown")], [*SEEN, *called("c"), model("a", "b", "c")], C)
    assert told.broken == []


def test_a_crash_loop_of_which_the_deaths_are_known_is_an_end_with_a_reason() -> None:
    deaths = [killed(9.5), killed(10.0), killed(11.0)]
    assert verdict([*FOUND, *THREE, *deaths], SEEN).broken == []


def test_a_stream_that_went_on_where_it_broke_off_is_whole() -> None:
    streams = [*streamed(0, kind="begun"), *streamed(1, 2), *streamed(2, kind="begun"), *streamed(3)]
    told = verdict([*FOUND, *streams], SEEN)
    assert told.broken == []
    assert told.counts["streams begun again"] == 1


def test_who_waits_for_rest_learns_what_is_owed_and_for_how_long() -> None:
    """A stopped task owes nothing, and neither does one that was told everything."""
    assert owed([sent("a", 0.0)], []) == {"a": pytest.approx(0.1 + TOLD_WITHIN_S)}
    assert owed([sent("a", 0.0), asked("stop", "", 2.0)], []) == {}
    assert owed(FOUND, SEEN) == {}
