"""Model fallbacks: who answers a turn when the model is down, and what stays as it was."""

import pytest

from perdure.core.agent import Budget, ModelSpec, RetryPolicy
from perdure.core.attempts import attempts_from_log
from perdure.core.failure import FailureKind
from perdure.core.machine import outstanding
from tests.core.task import Task, call

TWICE = RetryPolicy(attempts_max=2, first_ms=0)
FIRST = ModelSpec(name="first", retry=TWICE)
SECOND = ModelSpec(name="second", retry=TWICE, timeout_s=5)
THIRD = ModelSpec(name="third", retry=TWICE)


def asking(*fallbacks: ModelSpec) -> Task:
    """Return a task whose first turn is with the first model."""
    task = Task(model=FIRST, fallbacks=fallbacks, after_answer="input_required")
    task.send("hello")
    return task


def down(task: Task, kind: FailureKind = "model_transient") -> None:
    """Let the model fail until it has no attempt left."""
    asked = task.model.fallback
    while task.flights and task.model.fallback == asked:
        task.model_fails(kind)


def test_a_model_that_is_down_past_its_retries_gives_the_turn_to_the_next() -> None:
    task = asking(SECOND, THIRD)
    assert (task.model.model, task.model.fallback) == ("first", 0)
    task.model_fails("model_transient")
    assert task.model.fallback == 0, "it has an attempt left"
    task.model_fails("model_transient")
    assert (task.model.model, task.model.fallback, task.model.attempt) == ("second", 1, 3)
    assert task.model.timeout_s == 5
    down(task)
    assert (task.model.model, task.model.attempt) == ("third", 5)
    task.reply()
    assert task.ends == [("answered", "")]


def test_each_has_attempts_of_its_own_and_the_last_one_ends_the_run() -> None:
    task = asking(SECOND)
    down(task)
    down(task)
    assert task.ends == [("failed", "model")]
    (ended,) = task.rows("run.ended")
    assert ended.data["message"] == "each of 2 models failed, the last one with it was model_transient"
    assert [row.data["attempt"] for row in task.rows("model.failed")] == [1, 2, 3, 4]


def test_the_next_turn_begins_with_the_first_again() -> None:
    task = asking(SECOND)
    down(task)
    task.reply(call("get_order"))
    task.finish(0)
    assert (task.model.turn, task.model.model, task.model.attempt) == (2, "first", 1)


def test_so_does_the_next_run() -> None:
    task = asking(SECOND)
    down(task)
    down(task)
    task.send("again")
    assert (task.model.turn, task.model.model) == (2, "first")


@pytest.mark.parametrize("kind", ["timeout", "internal"])
def test_slow_and_broken_ones_are_left_too(kind: FailureKind) -> None:
    task = asking(SECOND)
    down(task, kind)
    assert task.model.model == "second"


def test_who_asks_is_refused_and_another_may_answer() -> None:
    task = asking(SECOND)
    task.model_fails("model_permanent", elsewhere=True)
    assert (task.model.model, task.model.attempt) == ("second", 2)


def test_a_request_that_is_refused_is_not_carried_to_others() -> None:
    task = asking(SECOND)
    task.model_fails("model_permanent")
    assert task.ends == [("failed", "model")]


def test_a_wait_that_is_too_long_is_a_no() -> None:
    task = asking(SECOND)
    task.model_fails("model_transient", retry_after_ms=3_600_000)
    assert task.model.model == "second"


def test_nor_is_a_wait_longer_than_the_policys_own_worth_it_while_another_is_left() -> None:
    task = asking(SECOND)
    task.model_fails("model_transient", retry_after_ms=60_001)
    assert (task.model.model, task.waits) == ("second", {})
    task.model_fails("model_transient", retry_after_ms=60_001)
    assert task.wait_over() == 60_001, "nobody else is left"


def test_a_run_without_time_to_wait_asks_another() -> None:
    task = Task(model=FIRST, fallbacks=(SECOND,), budget=Budget(wall_s_max=5))
    task.send("hello")
    task.model_fails("model_transient", retry_after_ms=10_000)
    assert task.model.model == "second"
    task.model_fails("model_transient", retry_after_ms=10_000)
    assert task.ends == [("failed", "budget")]


def test_no_model_answers_for_the_store() -> None:
    task = asking(SECOND)
    task.model_fails("diverged")
    assert task.ends == [("failed", "store")]


def test_no_model_answers_for_a_fence() -> None:
    task = asking(SECOND)
    task.model_fails("fenced")
    assert task.ends == [("failed", "store")]


@pytest.mark.parametrize("kind", ["worker_died", "worker_lost", "shutdown", "store"])
def test_what_is_no_models_fault_leaves_the_turn_where_it_was(kind: FailureKind) -> None:
    task = asking(SECOND)
    down(task)
    task.model_fails(kind)
    while task.waits:
        task.wait_over()
    assert (task.model.model, task.model.attempt) == ("second", 4)
    task.model_fails("model_transient")
    assert task.model.model == "second", "it had lost nothing"


def test_p9_a_run_that_ends_asks_nobody_else() -> None:
    task = asking(SECOND)
    task.model_fails("model_transient")
    task.stop()
    task.model_fails("model_transient")
    assert task.ends == [("stopped", "stopped")]
    assert len(task.rows("model.started")) == 2


def test_p11_a_task_is_carried_over_in_the_middle_of_a_fallback() -> None:
    task = asking(SECOND)
    down(task)
    task.restart()
    assert outstanding(task.state) == (task.model,)
    assert task.model.model == "second"


def test_who_was_asked_and_who_answered_stands_in_the_log() -> None:
    task = asking(SECOND)
    down(task)
    task.reply()
    asked = [(row.data["attempt"], row.data["model"], row.data["fallback"]) for row in task.rows("model.started")]
    assert asked == [(1, "first", 0), (2, "first", 0), (3, "second", 1)]
    (answered,) = task.rows("model.answered")
    assert (answered.data["model"], answered.data["fallback"]) == ("second", 1)
    assert [row.model for row in attempts_from_log(task.log)] == ["first", "first", "second"]


def test_p2_an_earlier_models_late_reply_stands_under_its_own_name() -> None:
    """The first that was recorded wins, whoever is asked by now."""
    task = asking(SECOND)
    down(task)
    flight = task.model
    task.flights[flight.turn, None] = flight.model_copy(update={"model": "first"})
    task.reply()
    (answered,) = task.rows("model.answered")
    assert (answered.data["model"], answered.data["fallback"]) == ("first", 0)


def test_p11_without_fallbacks_nothing_shows_of_them() -> None:
    """A row or an argument that says more than it did before would not be what was recorded then."""
    task = asking()
    task.model_fails("model_transient")
    assert [row.data for row in task.rows("model.started")] == [{"attempt": 1}, {"attempt": 2}]
    assert not {"model", "fallback"} & task.model.model_dump().keys()
    state = task.state.model_dump()
    assert "fallbacks" not in state["agent"]
    assert "fallback" not in state["turn"]
    task.reply()
    assert "fallback" not in task.rows("model.answered")[0].data
