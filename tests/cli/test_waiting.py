"""What an open task waits for, and its attempts, from rows of its log."""

from typing import Any

from perdure.app.waiting import Waiting, waits_of
from perdure.core.attempts import AttemptRow, attempts_from_log
from perdure.core.failure import DIED_WITH_SUPERVISOR
from perdure.core.log import LogEvent, LogKind
from perdure.core.ports import EffectAttemptRow, EffectRow, ModelCallRow


class Log:
    def __init__(self) -> None:
        self.rows: list[LogEvent] = []

    def add(self, kind: LogKind, turn: int = 0, **data: Any) -> "Log":
        number = len(self.rows) + 1
        self.rows.append(LogEvent(number=number, kind=kind, at_ms=1_000 * number, run=1, turn=turn, data=data))
        return self

    def waits(self, *timers: tuple[int, int]) -> tuple[Waiting, ...]:
        return waits_of(self.rows, attempts_from_log(self.rows), timers)


def working() -> Log:
    return Log().add("task.created").add("run.started").add("task.status", state="working", reason="")


def called() -> Log:
    return working().add("model.started", 1, attempt=1).add("model.answered", 1, attempt=1)


def test_a_task_that_nobody_took_up_waits_for_a_worker() -> None:
    log = Log().add("task.created").add("task.status", state="submitted", reason="").add("message.admitted")
    assert [(wait.kind, wait.since_ms) for wait in log.waits()] == [("worker", 3_000)]


def test_an_attempt_under_way_is_named_with_its_call() -> None:
    (model,) = working().add("model.started", 1, attempt=1).waits()
    assert (model.kind, model.text) == ("attempt", "the model (turn 1): attempt 1 is under way")
    (tool,) = called().add("tool.started", 1, index=0, tool="ship", attempt=1, key="k").waits()
    assert (tool.text, tool.since_ms) == ("ship (turn 1, call 0): attempt 1 is under way", 6_000)


def test_a_backoff_ends_with_the_timer_that_was_set_after_the_failure() -> None:
    log = called().add("tool.started", 1, index=0, tool="ship", attempt=1, key="k")
    log.add("tool.failed", 1, index=0, tool="ship", attempt=1, key="k", failure="tool_raised", message="no")
    (wait,) = log.waits((1_000, 60_000), (7_001, 9_000))
    assert (wait.kind, wait.since_ms, wait.until_ms) == ("backoff", 7_000, 9_000)
    assert wait.text == "ship (turn 1, call 0): attempt 2 follows, 1 failed (tool_raised: no)"
    assert log.waits()[0].until_ms is None
    log.add("tool.finished", 1, index=0, tool="ship", attempt=1, status="error")
    assert [wait.kind for wait in log.waits()] == ["worker"]


def test_a_question_waits_for_a_person_until_it_is_answered_or_closed() -> None:
    log = called().add("help.requested", 1, help_id="t/1/0", index=0, text="which?")
    log.add("task.status", 1, state="input_required", reason="help")
    (wait,) = log.waits()
    assert (wait.kind, wait.text, wait.help_id, wait.until_ms) == ("person", "which?", "t/1/0", None)
    log.add("help.answered", 1, help_id="t/1/0", index=0, attempt=0, text="this")
    assert [wait.kind for wait in log.waits()] == ["worker"]


def test_after_an_unanswered_end_the_next_message_is_waited_for_and_after_the_last_nothing() -> None:
    log = working().add("run.ended", end="failed", reason="model")
    log.add("task.status", state="input_required", reason="model")
    assert [(wait.kind, wait.text) for wait in log.waits()] == [("message", "the next message (model)")]
    assert log.add("task.status", state="canceled", reason="canceled").waits() == ()


def test_a_loss_that_was_told_is_a_failure_and_one_that_was_waited_for_a_timeout() -> None:
    log = working()
    for attempt, message in enumerate(("no heartbeat: the worker died", DIED_WITH_SUPERVISOR), 1):
        log.add("model.started", 1, attempt=attempt)
        log.add("model.failed", 1, attempt=attempt, failure="worker_lost", message=message)
    assert [row.outcome for row in attempts_from_log(log.rows)] == ["timed_out", "failed"]


def test_attempts_get_their_outcome_their_key_and_their_worker() -> None:
    log = working().add("model.started", 1, attempt=1)
    log.add("model.failed", 1, attempt=1, failure="worker_lost", message="no heartbeat")
    log.add("model.started", 1, attempt=2).add("model.answered", 1, attempt=2)
    ends: tuple[LogKind, ...] = ("tool.finished", "tool.in_doubt", "tool.key_closed", "tool.failed")
    for index, kind in enumerate(ends):
        log.add("tool.started", 1, index=index, tool="ship", attempt=1, key=f"k{index}")
        log.add(kind, 1, index=index, tool="ship", attempt=1, failure="cancelled", message="told to stop")
        log.add("tool.finished", 1, index=index, tool="ship", attempt=1, status="unknown")
    log.add("tool.started", 1, index=4, tool="ship", attempt=1, key="k4")
    begun = (EffectAttemptRow(attempt=1, worker="w3", begun_at_ms=0),)
    effect = EffectRow(
        key="k4", task_id="t", turn=1, index=4, tool="ship", effect="once", outcome="open", status=None, begun=begun,
        late=False, done_at_ms=None,
    )  # fmt: skip
    calls = [ModelCallRow(turn=1, attempt=n, worker=f"w{n}", begun_at_ms=0) for n in (1, 2)]
    rows = attempts_from_log(log.rows, calls, [effect])
    assert [(row.attempt, row.outcome, row.worker) for row in rows[:2]] == [
        (1, "timed_out", "w1"),
        (2, "completed", "w2"),
    ]
    assert [row.outcome for row in rows[2:]] == ["completed", "completed", "completed", "cancelled", "open"]
    assert [row.key for row in rows[2:]] == ["k0", "k1", "k2", "k3", "k4"]
    assert rows[0].problem == "worker_lost: no heartbeat"
    assert (rows[-1].worker, rows[-1].ended_at_ms) == ("w3", None)
    assert isinstance(rows[-1], AttemptRow)
