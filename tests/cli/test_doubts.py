"""What `perdure show` says of outcomes that nobody could tell."""

from typing import Any

import pytest

from perdure.cli.tables import Doubts, effect_outcome
from perdure.core.log import LogEvent
from perdure.core.ports import EffectRow

FOUND = LogEvent(number=1, kind="tool.in_doubt", at_ms=1, data={"key": "t/1/0"})
UNKNOWN = LogEvent(number=2, kind="tool.finished", at_ms=1, data={"key": "t/1/0", "status": "unknown"})
KNOWN = LogEvent(number=2, kind="tool.finished", at_ms=1, data={"key": "t/1/0", "status": "ok"})
NEVER_BEGUN = LogEvent(number=3, kind="tool.finished", at_ms=1, data={"index": 1, "status": "not_begun"})


def effect(outcome: str, status: str | None = None, *, late: bool = False) -> EffectRow:
    fields: dict[str, Any] = {"key": "t/1/0", "task_id": "t", "turn": 1, "index": 0, "tool": "pay", "effect": "once"}
    fields |= {"outcome": outcome, "status": status, "begun": (), "late": late, "done_at_ms": None}
    return EffectRow.model_validate(fields)


@pytest.mark.parametrize(
    ("rows", "row", "words"),
    [
        ((), effect("open"), "open"),
        ((FOUND,), effect("open"), "in doubt"),
        ((FOUND, UNKNOWN), effect("open"), "in doubt"),
        ((FOUND, UNKNOWN), effect("done", "ok"), "done: ok (its result came late)"),
        ((FOUND, KNOWN), effect("done", "ok"), "done: ok"),
        ((FOUND, NEVER_BEGUN), effect("closed"), "closed"),
        ((FOUND,), effect("closed", late=True), "closed (its result came late)"),
        ((), effect("done", "error"), "done: error"),
    ],
)
def test_an_effect_says_what_became_of_it(rows: tuple[LogEvent, ...], row: EffectRow, words: str) -> None:
    assert effect_outcome(row, Doubts.of(rows)) == words
