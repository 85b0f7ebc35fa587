"""Cases A: races around runs, stops and crashes, as far as positions alone decide them.

A kill is a restart of the workflow: the state goes through JSON, and what was under way fails as its worker died.
"""

import pytest

from perdure.core import limits
from perdure.core.errors import TaskClosed
from tests.core.task import Task, call


def started(*, stores: bool = True, after_answer: str = "input_required") -> Task:
    """Return a task whose first message is with the model."""
    task = Task(stores=stores, after_answer=after_answer)
    task.send("first")
    task.store()
    return task


def killed(task: Task) -> None:
    """Kill the worker and start another: the model call under way is made again."""
    task.restart()
    if task.flights:
        task.model_fails("worker_died", worker=f"w{task.now_ms}")
    while task.waits:
        task.wait_over()


def test_a1_what_came_while_a_run_failed_parks_and_the_next_message_runs_all() -> None:
    task = started()
    task.send("B", lane="queue")
    task.reply(call("get_order"), call("notify"))
    task.tool_fails(0, "diverged")
    assert task.state.mode == "ending"  # the run is failing, and waits for what flies
    task.send("A", lane="queue")
    task.move("B")
    task.tool_fails(1, "worker_died")
    task.restart()
    assert task.parked == ["B", "A"]
    assert not task.flights
    task.send("next")
    task.finish(0, "not_begun")
    task.finish(1, "not_begun")
    task.reply()
    task.reply()
    assert task.promoted == ["first", "B", "A", "next"]


def test_a2_a_message_admitted_while_a_run_is_set_up_is_acted_on_once() -> None:
    task = started()
    task.send("early")
    killed(task)
    task.reply()
    assert task.promoted == ["first", "early"]


def test_a3_a_run_opened_after_a_failed_end_resumes() -> None:
    task = started()
    task.model_fails("model_permanent")
    task.send("new")
    killed(task)
    assert task.model.run == 2
    task.reply()
    assert task.ends == [("failed", "model"), ("answered", "")]


def test_a4_a_parked_follow_up_goes_first_and_the_old_reply_is_not_asked_for_again() -> None:
    task = started(stores=False)
    task.send("F", lane="queue")
    task.store()
    task.model_fails("model_permanent")
    task.send("new")
    task.restart()
    assert task.state.run is None
    task.store()
    assert task.promoted == ["first", "F"]
    task.reply()
    task.reply()
    assert task.promoted == ["first", "F", "new"]
    assert len(task.rows("model.answered")) == 2


def test_a5_what_was_queued_before_and_sent_during_a_stop_parks() -> None:
    task = started()
    task.send("A", lane="queue")
    task.stop()
    task.send("B")
    task.model_fails("worker_died")
    task.restart()
    assert task.parked == ["A", "B"]
    assert not task.flights


def parked_one() -> Task:
    """Return a task with one parked message."""
    task = started()
    task.send("P")
    task.model_fails("model_permanent")
    return task


def test_a6_a_parked_message_moved_to_steer_starts_at_once_and_resumes() -> None:
    task = parked_one()
    task.move("P")
    assert task.state.run is not None
    killed(task)
    task.reply()
    assert task.promoted == ["first", "P"]


def test_a7_a_parked_steer_asked_for_steer_again_runs() -> None:
    task = parked_one()
    assert task.state.inbox[0].lane == "steer"
    task.move("P")
    assert task.promoted == ["first", "P"]


def test_a8_resending_a_parked_message_changes_nothing() -> None:
    task = parked_one()
    before = task.state
    task.send("P")
    task.restart()
    assert task.state == before
    assert task.parked == ["P"]


def test_a9_a_stop_while_the_failed_end_commits_makes_one_end() -> None:
    task = started()
    task.reply(call("get_order"), call("notify"))
    task.tool_fails(0, "diverged")
    task.stop()
    task.tool_fails(1, "cancelled")
    assert task.ends == [("failed", "store")]
    task.stop()
    assert len(task.ends) == 1


def test_a10_a_stop_after_a_failed_end_with_nothing_new_is_no_event() -> None:
    task = parked_one()
    before = len(task.log)
    task.stop()
    assert len(task.log) == before


@pytest.mark.parametrize("stored", [True, False])
def test_a11_a_stop_accepted_before_the_run_started_parks_the_message(stored: bool) -> None:
    task = Task(stores=False)
    task.send("a")
    task.stop()
    if stored:
        task.store()
    task.restart()
    assert task.parked == ["a"]
    assert task.kinds("run.") == ["run.stopped_before_start"]
    assert task.status == "input_required"


def test_a12_a_run_cut_off_by_a_crash_and_stopped_stays_stopped() -> None:
    task = started()
    task.restart()
    task.stop()
    task.model_fails("worker_died")
    task.restart()
    assert task.ends == [("stopped", "stopped")]
    assert not task.flights


def test_a13_a_message_stopped_right_after_an_answered_end_never_starts_by_itself() -> None:
    task = started(stores=False)
    task.reply()
    task.send("late")
    task.stop()
    task.store()
    task.restart()
    assert task.parked == ["late"]
    assert not task.flights


def test_a14_a_shutdown_in_a_model_request_resumes_with_no_crash_counted() -> None:
    task = started()
    task.model_fails("shutdown")
    assert (task.model.attempt, task.state.crashes, task.state.shared_deaths) == (2, 0, 0)


def test_a15_a_tool_that_kills_its_worker_ends_in_a_crash_loop_and_the_context_does_not_grow() -> None:
    task = started()
    task.reply(call("look_up"))
    entries = task.state.entries
    alone = []
    while task.state.run is not None:
        flight = task.tool(0)
        alone.append(flight.quarantine)
        task.tool_fails(0, "worker_died", alone=flight.quarantine, worker=f"w{flight.attempt}")
        while task.waits:
            task.wait_over(0)
        assert task.state.entries == entries
    assert alone == [False, False] + [True] * limits.CRASHES_MAX
    assert task.ends == [("failed", "crash_loop")]
    assert task.status == "input_required"


def test_a16_a_stop_and_then_a_crash_stays_stopped() -> None:
    task = started()
    task.stop()
    task.model_fails("worker_died", alone=True)
    task.restart()
    assert task.ends == [("stopped", "stopped")]
    assert task.state.crashes == 0


def test_a18_a_failed_run_says_why() -> None:
    task = started()
    task.model_fails("model_permanent")
    assert task.rows("run.ended")[-1].data["message"] == "it was model_permanent"


def test_a20_death_and_orderly_shutdown_both_go_on() -> None:
    task = started()
    task.model_fails("worker_lost")
    task.restart()
    task.model_fails("shutdown")
    task.wait_over()
    assert task.state.shared_deaths == task.state.crashes == 0
    task.reply()
    assert task.ends == [("answered", "")]


def test_a21_of_one_withdrawn_one_stopped_and_one_new_message_only_the_new_one_starts_a_run() -> None:
    task = started()
    task.send("Q", lane="queue")
    task.withdraw("Q")
    task.stop()
    task.model_fails("cancelled")
    task.send("new")
    task.reply()
    assert task.promoted == ["first", "new"]


def test_p5_after_the_terminal_state_nothing_is_taken_in() -> None:
    task = started(after_answer="completed")
    task.reply()
    with pytest.raises(TaskClosed):
        task.send("late")
