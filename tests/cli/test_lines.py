"""Lines of the timeline, and of standard input."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.app.events import TaskEvent
from perdure.cli.terminal_lines import TerminalLines
from perdure.cli.timeline import elapsed, one_line, printable, timeline_line
from perdure.core import limits
from perdure.core.errors import InvalidInput
from perdure.core.log import LogKind


def event(kind: LogKind, **data: Any) -> TaskEvent:
    return TaskEvent(number=1, kind=kind, at_ms=1_500, run=1, turn=2, data=data)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (event("task.status", state="failed", reason="model", message="no"), "task         is FAILED (model: no)"),
        (event("run.ended", end="answered", reason="", message=""), "run          1 ended: answered"),
        (event("model.started", attempt=3), "model        turn 2, attempt 3 begins"),
        (
            event("model.started", attempt=1, model="openai:gpt-5", fallback=0),
            "model        turn 2, attempt 1 begins · openai:gpt-5",
        ),
        (
            event("model.answered", calls=[], finish="stop", text="Yes.", model="xai:grok-4", fallback=1),
            "model        Yes. · xai:grok-4, fallback 1",
        ),
        (
            event("model.answered", calls=[{"tool": "ship", "arguments": '{"to":"x"}', "index": 0}], finish="stop"),
            'model        calls ship(to="x")',
        ),
        (
            event("model.answered", calls=[{"tool": "ship", "arguments": None, "index": 0}], finish="stop"),
            "model        calls ship(…)",
        ),
        (event("model.answered", calls=[], finish="length"), "model        an empty reply (length)"),
        (
            event("tool.failed", tool="ship", attempt=1, failure="timeout", message="late\x1b[2J\nvery"),
            "ship         attempt 1 failed (timeout): late\ufffd[2J very",
        ),
        (
            event("tool.in_doubt", tool="ship", key="t/1/0", reason="why"),
            "ship         outcome unknown, key t/1/0: why",
        ),
        (event("tool.late", key="t/1/0", status="ok", text="receipt"), "late         ok, key t/1/0: receipt"),
        (event("help.requested", help_id="h", text="which?"), "question     which?"),
        (event("help.closed", help_id="h", reason="stopped"), "question     closed without an answer (stopped)"),
        (event("child.done", child_id="c", status="completed"), "child        c is completed"),
    ],
)
def test_a_line_says_when_who_and_what(shown: TaskEvent, words: str) -> None:
    assert timeline_line(shown, 1_000) == f"   +0.50s  {words}"


def test_spans_get_coarser() -> None:
    spans = [0, 59_990, 60_000, 3_599_000, 3_600_000, 90_000_000]
    assert [elapsed(span) for span in spans] == ["+0.00s", "+59.99s", "+1m00s", "+59m59s", "+1h00m", "+25h00m"]


def test_what_is_shown_cannot_drive_a_terminal() -> None:
    assert printable("a\tb\nc\x1b[31m\x07\x9b\x00") == "a\tb\nc\ufffd[31m\ufffd\ufffd\ufffd"
    assert one_line("x" * 500, 10) == "x" * 9 + "…"


async def lines_of(monkeypatch: pytest.MonkeyPatch, fd: int) -> list[str]:
    with os.fdopen(fd) as file:
        monkeypatch.setattr(sys, "stdin", file)
        lines, read = TerminalLines(), []
        assert not lines.interactive
        while (line := await lines.next()) is not None:
            read.append(line)
        assert await lines.next() is None
    return read


async def test_lines_come_from_files_and_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").write_text("one\n\ntwo")
    assert await lines_of(monkeypatch, os.open(tmp_path / "in", os.O_RDONLY)) == ["one", "", "two"]
    assert await lines_of(monkeypatch, os.open(os.devnull, os.O_RDONLY)) == []
    read_fd, write_fd = os.pipe()
    reading = asyncio.create_task(lines_of(monkeypatch, read_fd))
    for piece in ("ä".encode()[:1], "ä".encode()[1:] + b"\nla", b"ter\n"):
        await asyncio.sleep(0)
        os.write(write_fd, piece)
    os.close(write_fd)
    assert await reading == ["ä", "later"]


async def test_a_line_that_is_no_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").write_text("x" * (limits.ANSWER_BYTES_MAX + 1))
    with pytest.raises(InvalidInput, match=r"^answer: is longer than"):
        await lines_of(monkeypatch, os.open(tmp_path / "in", os.O_RDONLY))
