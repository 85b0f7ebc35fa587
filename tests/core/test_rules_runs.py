"""R8 to R13: runs, stops, ends, crashes."""

from typing import Any

import pytest

from perdure.core import limits
from perdure.core.agent import Budget
from perdure.core.commands import CallModel, CallTool, Fence, Persist, StopFlights
from perdure.core.errors import IllegalEvent, TaskClosed
from perdure.core.events import Created
from perdure.core.machine import outstanding
from tests.core.task import Task, ask, call


def begun(**spec: Any) -> Task:
    """Return a task with a model call under way that goes on after its answers."""
    task = Task(**({"after_answer": "input_required"} | spec))
    task.send("a")
    return task


def test_r8_run_started_comes_before_any_promotion_and_one_end_after() -> None:
    task = begun()
    task.reply()
    kinds = task.kinds("run.", "message.promoted", "model.")
    assert kinds == ["run.started", "message.promoted", "model.started", "model.answered", "run.ended"]


def test_r8_the_state_says_that_an_end_is_still_owed() -> None:
    task = begun()
    task.stop()
    assert task.state.mode == "ending"
    assert task.ends == []
    task.model_fails("cancelled")
    assert task.ends == [("stopped", "stopped")]


def test_r9_an_unanswered_end_starts_nothing() -> None:
    task = begun()
    task.send("queued before", lane="queue")
    task.stop()
    task.send("sent during")
    task.model_fails("cancelled")
    assert task.parked == ["queued before", "sent during"]
    assert task.state.run is None
    task.send("after")
    assert task.state.run is not None


def test_r10_reason_codes() -> None:
    by_length, by_refusal, by_model, by_store = begun(), begun(), begun(), begun()
    by_length.reply(finish="length")
    by_refusal.reply(finish="refusal")
    by_model.model_fails("model_permanent")
    by_store.model_fails("diverged")
    ends = [task.ends[0] for task in (by_length, by_refusal, by_model, by_store)]
    assert ends == [("failed", "truncated"), ("failed", "refusal"), ("failed", "model"), ("failed", "store")]


def test_r10_a_truncated_reply_begins_none_of_its_calls() -> None:
    task = begun()
    task.reply(call("refund"), call("get_order"), finish="length")
    assert not task.flights
    assert [line.split(":")[0] for line in task.transcript[2:]] == ["not_begun", "not_begun"]
    assert task.ends == [("failed", "truncated")]


def test_r10_an_empty_reply_answers_with_nothing() -> None:
    task = begun()
    task.reply(text=False)
    assert task.ends == [("answered", "")]
    assert task.transcript == ["entry of a"]
    assert task.rows("run.ended")[0].data["answer_entry"] == 0


def test_r11_with_nothing_to_stop_nothing_is_recorded() -> None:
    task = Task()
    task.stop()
    assert task.kinds("run.") == []
    task.send("a")
    task.reply()
    before = len(task.log)
    task.stop()
    assert len(task.log) == before


def test_r11_a_second_stop_records_nothing_more() -> None:
    task = begun()
    task.stop()
    task.stop()
    assert len(task.rows("run.stop_requested")) == 1


def test_p9_a_stop_fences_its_run_and_reaches_what_flies() -> None:
    task = begun()
    task.reply(call("get_order"), call("notify"))
    task.stop()
    assert [c for c in task.asked if isinstance(c, StopFlights | Fence)] == [StopFlights(), Fence(run=1)]
    task.tool_fails(0, "cancelled")
    assert task.ends == []
    task.tool_fails(1, "cancelled")
    assert task.ends == [("stopped", "stopped")]
    assert not task.flights


def test_p9_a_reply_that_comes_after_the_stop_begins_none_of_its_calls() -> None:
    task = begun()
    task.stop()
    task.reply(call("refund"), ask("sure?"))
    assert task.ends == [("stopped", "stopped")]
    assert not task.flights
    task.send("b")
    assert task.transcript[1:4] == [
        "reply 1",
        "not_begun: Not begun: the run was stopped.",
        "not_begun: Not answered: the run was stopped.",
    ]


def test_p9_a_run_that_winds_down_is_continued_behind_its_fence() -> None:
    task = begun()
    task.stop()
    task.restart()
    assert outstanding(task.state) == (Fence(run=1), task.model)
    task.model_fails("fenced")
    assert task.ends == [("stopped", "stopped")]


def test_r12_only_deaths_alone_count_and_the_limit_parks() -> None:
    task = begun()
    for n in range(3):
        assert task.state.crashes == n
        task.model_fails("worker_died", alone=True, worker=f"w{n}")
        while task.waits:
            task.wait_over()
    assert task.ends == [("failed", "crash_loop")]
    assert task.status == "input_required"
    assert len(task.rows("model.started")) == limits.CRASHES_MAX


def test_r12_shared_deaths_do_not_count_but_lead_to_quarantine() -> None:
    task = begun()
    for n in range(6):
        assert task.model.quarantine == (n >= 2)
        task.model_fails("worker_died", worker=f"w{n}")
        while task.waits:
            task.wait_over()
    assert task.state.crashes == 0
    task.reply()
    task.send("b")
    task.reply()
    assert not task.state.quarantined


def test_r12_one_death_counts_once_however_many_attempts_it_cut() -> None:
    task = begun()
    task.reply(call("get_order"), call("get_order"), call("notify"))
    for index in range(3):
        task.tool_fails(index, "worker_died", alone=True, worker="w1")
    assert task.state.crashes == 1
    task.tool_fails(0, "worker_died", alone=True, worker="w2")
    assert task.state.crashes == 2


@pytest.mark.parametrize("last", ["result", "in_doubt", "closed"])
def test_r12_a_turn_without_a_crash_takes_off_one(last: str) -> None:
    task = begun()
    for n in range(2):
        task.model_fails("worker_died", alone=True, worker=f"w{n}")
        while task.waits:
            task.wait_over()
    task.reply(call("get_order"))
    task.finish(0)
    assert task.state.crashes == 2
    task.reply(call("refund"))
    while task.tools:
        task.finish(0, last)
    assert task.state.crashes == 1


def test_r12_a_turn_with_a_crash_takes_nothing_off() -> None:
    task = begun()
    task.reply(call("get_order"))
    task.tool_fails(0, "worker_died", alone=True, worker="w")
    task.finish(0)
    assert task.state.crashes == 1


def test_r12_after_a_crash_loop_the_task_stays_in_quarantine() -> None:
    task = begun(crashes_max=1)
    task.model_fails("worker_died", alone=True, worker="w")
    assert task.ends == [("failed", "crash_loop")]
    task.send("again")
    assert task.model.quarantine
    task.reply()
    task.send("and again")
    assert not task.model.quarantine


def test_r12_a_clean_shutdown_counts_nothing_and_does_not_wait() -> None:
    task = begun()
    task.model_fails("shutdown")
    assert task.model.attempt == 2
    assert task.state.crashes == task.state.shared_deaths == 0


def test_r13_after_an_unanswered_end_a_person_is_asked() -> None:
    task = begun()
    task.model_fails("model_permanent")
    status = task.rows("task.status")[-1].data
    assert (status["state"], status["reason"], status["message"]) == (
        "input_required",
        "model",
        "it was model_permanent",
    )
    task.send("b")
    assert task.transcript == ["entry of a", "entry of b"]
    assert task.status == "working"


def test_r13_on_unanswered_fail_is_terminal() -> None:
    task = begun(on_unanswered="fail")
    task.model_fails("model_permanent")
    assert task.status == "failed"


@pytest.mark.parametrize("after", ["completed", "input_required"])
def test_r13_after_an_answer(after: str) -> None:
    task = begun(after_answer=after)
    task.reply()
    assert task.status == after
    assert [c.terminal for c in task.asked if isinstance(c, Persist)] == [after == "completed"]


def test_p5_cancel_is_terminal_from_everywhere() -> None:
    idle, asking, ending, waiting = Task(), begun(), begun(), Task(stores=False)
    asking.reply(ask("which?"), call("notify"))
    asking.finish(1)
    ending.stop()
    waiting.send("a")
    for task in (idle, asking, ending, waiting):
        task.cancel()
        if task.flights:
            task.model_fails("cancelled")
        assert task.status == "canceled"
        assert task.state.help == ()
        assert len([row for row in task.log if row.data.get("state") == "canceled"]) == 1
        with pytest.raises(TaskClosed):
            task.cancel()
    assert waiting.log[-1].data["unprocessed"] == ["a"]


def test_p1_a_message_that_no_reply_came_after_is_listed_and_one_that_was_answered_is_not() -> None:
    task = begun(after_answer="input_required")
    task.reply()
    task.send("asked")
    task.send("beside")
    task.cancel()
    task.model_fails("cancelled")
    assert task.kinds("message.promoted") == ["message.promoted"] * 2
    assert task.log[-1].data["unprocessed"] == ["asked", "beside"]


def test_p1_a_message_whose_model_was_down_in_run_after_run_is_listed_when_the_task_ends() -> None:
    task = begun(after_answer="input_required")
    task.model_fails("model_permanent")
    task.send("more")
    task.model_fails("model_permanent")
    assert task.status == "input_required"
    task.cancel()
    assert task.log[-1].data["unprocessed"] == ["a", "more"]


def test_p1_of_very_many_without_a_reply_the_latest_are_named_and_the_others_counted() -> None:
    task = begun(after_answer="input_required")
    sent = ["a"]
    for burst in range(5):
        task.model_fails("model_permanent")
        for place in range(100):
            sent.append(f"m-{burst}-{place}")
            task.send(sent[-1], lane="steer")
    task.cancel()
    task.model_fails("cancelled")
    last: Any = task.log[-1].data
    promoted = [str(row.data["message_id"]) for row in task.rows("message.promoted")]
    assert last["unprocessed_before"] == len(promoted) - limits.MESSAGE_IDS_REMEMBERED > 0
    assert sent[-len(last["unprocessed"]) :] == last["unprocessed"]
    assert len(last["unprocessed"]) + last["unprocessed_before"] == len(sent)


def test_p5_cancel_while_it_winds_down_waits_for_what_flies() -> None:
    task = begun()
    task.cancel()
    task.cancel()
    with pytest.raises(TaskClosed, match="being canceled"):
        task.send("late")
    task.reply()
    assert (task.ends, task.state.status) == ([("stopped", "canceled")], "canceled")


def test_p5_a_task_is_created_once() -> None:
    task = Task()
    with pytest.raises(IllegalEvent, match="created already"):
        task.apply(Created(at_ms=1))


# --- budgets ----------------------------------------------------------------------------------------------------


def test_budget_ends_the_run_before_anything_is_promoted_for_nothing() -> None:
    task = begun(budget=Budget(turns_max=1))
    task.send("steer")
    task.send("queued", lane="queue")
    task.reply(call("get_order"))
    task.finish(0)
    assert task.ends == [("failed", "budget")]
    assert task.parked == ["steer", "queued"]
    assert task.promoted == ["a"]
    task.send("go on")
    assert task.promoted == ["a", "steer"]


def test_r4_a_long_queue_is_answered_by_one_run_and_each_message_has_the_whole_budget() -> None:
    for budget in (Budget(turns_max=2), Budget(tokens_max=22), Budget(wall_s_max=5)):
        task = begun(budget=budget, after_answer="input_required")
        for number in range(30):
            task.send(f"q-{number}", lane="queue")
        for _ in range(31):
            task.now_ms += 2_000
            task.reply(call("get_order"))
            task.finish(0)
            task.reply()
        assert (task.ends, task.state.inbox) == ([("answered", "")], ())
        task.send("more")
        for _ in range(3):
            task.now_ms += 2_000
            if task.flights:
                task.reply(call("get_order"))
            if task.tools:
                task.finish(0)
        assert task.ends[-1] == ("failed", "budget"), "one message has it once"


def test_budget_of_wall_time_ends_waiting_for_retries() -> None:
    task = begun(budget=Budget(wall_s_max=1))
    task.model_fails("model_transient", retry_after_ms=5_000)
    assert task.ends == [("failed", "budget")]
    assert not task.waits


def test_budget_of_wall_time_is_checked_before_each_tool_call() -> None:
    task = begun(budget=Budget(wall_s_max=1))
    task.now_ms += 2_000
    task.reply(call("refund"))
    assert task.ends == [("failed", "budget")]
    assert not task.tools


def test_p9_nothing_is_asked_once_the_run_is_out_of_time() -> None:
    task = begun(budget=Budget(wall_s_max=1))
    task.now_ms += 2_000
    task.reply(call("get_order"), ask("sure?"))
    assert not task.rows("help.requested")
    assert len([c for c in task.asked if isinstance(c, Fence)]) == 1


def test_budget_of_wall_time_leaves_out_the_wait_for_a_person() -> None:
    task = begun(budget=Budget(wall_s_max=1))
    task.reply(ask("which?"))
    task.now_ms += 30 * 86_400_000
    task.answer("this")
    assert task.ends == []
    task.now_ms += 2_000
    task.reply(call("get_order"))
    assert task.ends == [("failed", "budget")]


def test_budget_is_each_runs_own() -> None:
    task = begun(budget=Budget(tokens_max=20))
    task.reply(tokens=30)
    task.send("b")
    assert isinstance(task.asked[-1], CallModel)
    assert not any(isinstance(c, CallTool) for c in task.asked)
