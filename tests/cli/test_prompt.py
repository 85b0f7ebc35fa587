"""The prompt of `perdure run` on a real terminal: nothing typed before a question was shown answers it."""

import asyncio
import contextlib
import os
import pty
import select
import sys
import tty
from collections.abc import Iterator
from typing import Any

import pytest

from perdure.app.events import TaskEvent
from perdure.cli.following import what_became
from perdure.cli.questions import Question
from perdure.cli.terminal_lines import TerminalLines
from perdure.core.log import LogKind
from tests.cli.desk import Desk


@contextlib.contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TerminalLines, int]]:
    """Standard input at a terminal, and the end of it at which a person types."""
    person, ours = pty.openpty()
    with os.fdopen(ours) as file:
        monkeypatch.setattr(sys, "stdin", file)
        try:
            yield TerminalLines(), person
        finally:
            os.close(person)


def typed(lines: TerminalLines, person: int, data: bytes) -> None:
    os.write(person, data)
    readable, _, _ = select.select([lines.fileno()], [], [], 10)
    assert readable


async def test_what_was_typed_early_is_dropped_whole_lines_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as (lines, person):
        assert lines.interactive
        assert not lines.drop_early()
        typed(lines, person, b"y\ny\nhal")
        assert lines.drop_early()
        os.write(person, b"n why\n")
        assert await asyncio.wait_for(lines.next(), 10) == "n why"


async def test_lines_that_were_read_with_an_answer_are_dropped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as (lines, person):
        tty.setraw(lines.fileno())  # a terminal that hands over several lines at once
        typed(lines, person, b"y\ny\nhal")
        assert await asyncio.wait_for(lines.next(), 10) == "y"
        assert lines.drop_early()
        os.write(person, b"n\n")
        assert await asyncio.wait_for(lines.next(), 10) == "n"


async def test_of_a_pipe_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, script = os.pipe()
    with os.fdopen(ours) as file:
        monkeypatch.setattr(sys, "stdin", file)
        lines = TerminalLines()
        os.write(script, b"one\ntwo\n")
        os.close(script)
        assert not lines.drop_early()
        assert await lines.next() == "one"
        assert not lines.drop_early()
        assert [await lines.next(), await lines.next()] == ["two", None]


@pytest.mark.slow
def test_b22_a_line_typed_early_does_not_approve_the_next_call(desk: Desk) -> None:
    person, ours = pty.openpty()
    try:
        with desk.started("run", "helpdesk:agent", "pay twice", stdin=ours) as running:
            running.until(lambda: running.err.count("Your answer:") == 1, "the first question")
            os.write(person, b"y\ny\n")
            running.until(lambda: running.err.count("Your answer:") == 2, "the second question")
            assert "what was typed before the question below was shown does not answer it" in running.err
            os.write(person, b"n not that one\n")
            done = running.ended()
    finally:
        os.close(ours)
        os.close(person)
    assert done.code == 0, done.err
    assert "not that one. It was not begun." in done.out.splitlines()[-1]
    assert desk.world_lines("paid") == [["150", f"{done.task_id}/1/0"]]


ASKED = Question("t/1/0", "May it run?", choices=("approve", "decline"), digest="d")
CHOSEN = Question("t/1/0", "Which?", choices=("red", "blue"))


def closing(kind: LogKind, **data: Any) -> TaskEvent:
    return TaskEvent(number=7, kind=kind, at_ms=1_500, run=1, turn=1, data={"help_id": "t/1/0", **data})


@pytest.mark.parametrize(
    ("question", "given", "event", "told"),
    [
        (ASKED, '{"approve":true}', closing("help.answered", by="me", text='{"approve":true}'), "was taken"),
        (CHOSEN, "Red", closing("help.answered", by="me", text="red"), "was taken"),
        (
            ASKED,
            '{"approve":true}',
            closing("help.answered", by="bob", text="decline: fraud"),
            "was not taken: bob had answered 'decline: fraud'",
        ),
        (CHOSEN, "red", closing("help.answered", by="me", text="blue"), "was not taken: me had answered 'blue'"),
        (CHOSEN, "red", closing("help.answered", text="red"), "was not taken: somebody had answered 'red'"),
        (ASKED, '{"approve":true}', closing("help.closed", reason="expired"), "was not taken: expired"),
        (ASKED, '{"approve":true}', closing("help.closed"), "was not taken: its run ended"),
    ],
)
def test_what_became_of_an_answer_is_what_the_log_says(
    question: Question, given: str, event: TaskEvent, told: str
) -> None:
    assert what_became(question, given, "me", event) == (told == "was taken", f"your answer to t/1/0 {told}")
