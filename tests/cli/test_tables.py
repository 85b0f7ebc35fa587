"""The tables of `perdure show`, heading by heading and row by row; and how two witnesses' attempts become one list."""

import re
from typing import Any

import pytest

from perdure.cli.tables import FROM_HISTORY, FROM_LOG, Doubts, counts, print_attempts, print_effects
from perdure.core.attempts import AttemptRow, joined
from perdure.core.ports import EffectAttemptRow, EffectRow

FIRST, SECOND, THIRD = "11@host#a", "12@host#b", "13@host#c"


def tried(activity: str, at_ms: int, **fields: Any) -> AttemptRow:
    return AttemptRow(activity=activity, scheduled_at_ms=at_ms, **fields)


def shipped(attempt: int, at_ms: int, **fields: Any) -> AttemptRow:
    return tried("invoke_tool", at_ms, turn=1, index=0, tool="ship", key="t/1/0", attempt=attempt, **fields)


HISTORY = (
    tried("intake", 0, ended_at_ms=30, outcome="completed", worker=FIRST),
    tried("invoke_llm", 40, turn=1, ended_at_ms=90, outcome="completed", worker=FIRST),
    shipped(1, 100, ended_at_ms=1_100, outcome="timed_out", worker=FIRST, problem="activity Heartbeat timeout"),
    shipped(2, 1_200, ended_at_ms=1_700, outcome="failed", worker=SECOND, problem="its worker died"),
    shipped(3, 1_800, ended_at_ms=2_050, outcome="completed", worker=THIRD),
    shipped(4, 2_100, ended_at_ms=2_200, outcome="cancelled", worker=THIRD),
    tried("persist", 2_300),
)

ATTEMPTS = """
activity      call          attempt   outcome     took    worker      why
intake        -             -         completed   0.03s   11@host#a
invoke_llm    turn 1        1         completed   0.05s   11@host#a
invoke_tool   turn 1/0 ship   1       timed_out   1.00s   11@host#a   activity Heartbeat timeout
invoke_tool   turn 1/0 ship   2       failed      0.50s   12@host#b   its worker died
invoke_tool   turn 1/0 ship   3       completed   0.25s   13@host#c
invoke_tool   turn 1/0 ship   4       cancelled   0.10s   13@host#c
persist       -             -         open        -       -
"""

PER_ACTIVITY = """
activity      scheduled   completed   timed out   failed   cancelled   open   workers
intake        1           1           0           0        0           0      1 by 11@host#a
invoke_llm    1           1           0           0        0           0      1 by 11@host#a
invoke_tool   4           1           1           1        1           0      1 by 11@host#a, 1 by 12@host#b, \
2 by 13@host#c
persist       1           0           0           0        0           1      -
"""

EFFECTS = """
key       tool   class        begun                               outcome
t/1/0     ship   idempotent   1 by 11@host#a, 2 by 12@host#b      done: ok
t/1/1     pay    once         1 by 11@host#a                      in doubt
t/2/0     pay    once         never                               closed
"""


def cells(text: str) -> list[list[str]]:
    """Return the cells of each line that has any, without the line under the headings."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip(" ─")]


def printed(out: str) -> dict[str, list[list[str]]]:
    """Return the tables that were printed, by their titles."""
    return {block.splitlines()[0]: cells(block)[1:] for block in out.strip("\n").split("\n\n")}


def test_the_tables_of_attempts_have_every_activity_with_what_became_of_it_and_its_workers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_attempts(HISTORY, FROM_HISTORY)
    tables = printed(capsys.readouterr().out)
    assert tables == {
        "attempts, from Temporal's history": cells(ATTEMPTS),
        "per activity, from Temporal's history": cells(PER_ACTIVITY),
    }


def test_of_no_attempts_and_no_effects_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_attempts((), FROM_LOG)
    print_effects((), Doubts.of(()))
    alone = "from the event log alone: model and tool calls, without Temporal's history"
    assert printed(capsys.readouterr().out) == {
        f"attempts, {alone}": [["none yet"]],
        f"per activity, {alone}": [["none yet"]],
        "effects": [["none: no tool was called"]],
    }


def test_programs_get_the_same_counts() -> None:
    (intake, _, tools, persist) = counts(HISTORY)
    assert intake["activity"] == "intake"
    assert tools == {
        "activity": "invoke_tool",
        "scheduled": 4,
        "completed": 1,
        "timed_out": 1,
        "failed": 1,
        "cancelled": 1,
        "open": 0,
        "workers": {FIRST: 1, SECOND: 1, THIRD: 2},
    }
    assert (persist["open"], persist["workers"]) == (1, {})


def effect(key: str, tool: str, effect: str, outcome: str, *workers: str, status: str | None = None) -> EffectRow:
    begun = tuple(EffectAttemptRow(attempt=n, worker=w, begun_at_ms=0) for n, w in enumerate(workers, 1))
    fields: dict[str, Any] = {"key": key, "task_id": "t", "turn": 1, "index": 0, "tool": tool, "effect": effect}
    fields |= {"outcome": outcome, "status": status, "begun": begun, "late": False, "done_at_ms": None}
    return EffectRow.model_validate(fields)


def test_the_table_of_effects_has_key_class_begun_attempts_and_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (
        effect("t/1/0", "ship", "idempotent", "done", FIRST, SECOND, status="ok"),
        effect("t/1/1", "pay", "once", "open", FIRST),
        effect("t/2/0", "pay", "once", "closed"),
    )
    print_effects(rows, Doubts(frozenset({"t/1/1"}), frozenset()))
    assert printed(capsys.readouterr().out) == {"effects": cells(EFFECTS)}


# --- two witnesses ------------------------------------------------------------------------------------------------


def test_the_history_says_what_became_of_an_attempt_and_the_log_adds_what_it_lacks() -> None:
    log = (
        shipped(1, 101, ended_at_ms=1_101, outcome="timed_out", worker=FIRST, problem="worker_lost: no heartbeat"),
        shipped(2, 1_201, worker=SECOND),
    )
    history = (
        tried("intake", 0, outcome="completed", worker=FIRST),
        shipped(1, 100, ended_at_ms=1_100, outcome="timed_out", worker=FIRST, problem="activity Heartbeat timeout"),
        shipped(2, 1_200, ended_at_ms=1_700, outcome="failed", problem="its worker died"),
        tried("emit_event", 1_750, outcome="completed", worker=THIRD),
        tried("emit_event", 1_800, outcome="completed", worker=THIRD),
    )
    assert [(row.activity, row.attempt, row.outcome, row.worker, row.problem) for row in joined(log, history)] == [
        ("intake", 1, "completed", FIRST, ""),
        ("invoke_tool", 1, "timed_out", FIRST, "worker_lost: no heartbeat"),
        ("invoke_tool", 2, "failed", SECOND, "its worker died"),
        ("emit_event", 1, "completed", THIRD, ""),
        ("emit_event", 1, "completed", THIRD, ""),
    ]


def test_attempts_that_temporal_has_forgotten_are_those_of_the_log() -> None:
    earlier = tried("invoke_llm", 10, turn=1, outcome="completed", worker=FIRST)
    later = tried("invoke_llm", 500, turn=2, outcome="completed", worker=FIRST)
    store = tried("persist", 400, outcome="completed", worker=FIRST)
    assert joined((earlier, later), (store, later)) == (earlier, store, later)
