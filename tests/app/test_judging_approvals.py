"""What records prove of approvals: a call that began without the one that it needed is found."""

from typing import Any

from perdure.app.events import TaskEvent
from perdure.app.judging import broken_promises
from perdure.core.log import LogKind


def log(*rows: tuple[LogKind, dict[str, Any]]) -> list[TaskEvent]:
    return [TaskEvent(number, kind, 0, 1, 1, data) for number, (kind, data) in enumerate(rows, 1)]


def answered(then: str) -> tuple[LogKind, dict[str, Any]]:
    return "model.answered", {"calls": [{"index": 0, "tool": "pay", "ruling": {"then": then, "rule": f"{then} pay"}}]}


RUN: tuple[LogKind, dict[str, Any]] = ("run.started", {})
BEGINS: tuple[LogKind, dict[str, Any]] = ("tool.started", {"index": 0})
APPROVED: tuple[LogKind, dict[str, Any]] = ("help.answered", {"index": 0, "verdict": "approved"})
ANSWERED: tuple[LogKind, dict[str, Any]] = ("help.answered", {"index": 0})


def test_a_call_that_was_approved_may_begin_as_often_as_it_takes() -> None:
    assert broken_promises(log(RUN, answered("ask"), APPROVED, BEGINS, BEGINS), ()) == ()


def test_a_call_that_nobody_approved_must_not_begin() -> None:
    for rows in ((BEGINS,), (ANSWERED, BEGINS), (BEGINS, APPROVED)):
        (found,) = broken_promises(log(RUN, answered("ask"), *rows), ())
        assert found.endswith("begins call 1/0, and nobody approved it (ask pay)")


def test_a_call_that_a_rule_denies_must_not_begin() -> None:
    assert len(broken_promises(log(RUN, answered("deny"), BEGINS), ())) == 1
