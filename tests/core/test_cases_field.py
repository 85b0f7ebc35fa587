"""Cases B, from the field, as far as the core decides them."""

from perdure.core import limits
from tests.core.task import Task, call


def started() -> Task:
    """Return a task whose first message is with the model."""
    task = Task(after_answer="input_required")
    task.send("first")
    return task


def test_b1_after_a_stop_during_a_tool_the_new_run_contains_the_new_message() -> None:
    task = started()
    task.reply(call("refund"))
    task.stop()
    task.tool_fails(0, "cancelled")
    task.send("new")
    task.finish(0, "in_doubt", reason="no check")
    assert task.transcript[:2] == ["entry of first", "reply 1"]
    assert task.transcript[2].startswith("unknown: ")
    assert task.transcript[3] == "entry of new"
    assert task.model.upto == 4


def test_b2_a_steer_that_arrives_as_the_run_ends_becomes_a_run_of_its_own() -> None:
    task = started()
    task.reply()
    task.send("steer", lane="steer")
    assert task.model.run == 2
    task.reply()
    assert task.ends == [("answered", "")] * 2


def test_b3_shutdown_and_death_both_resume() -> None:
    task = started()
    task.reply(call("get_order"))
    task.tool_fails(0, "shutdown")
    task.tool_fails(0, "worker_died")
    task.wait_over(0)
    task.finish(0)
    task.reply()
    assert task.ends == [("answered", "")]


def test_b4_a_stop_while_a_provider_refuses_takes_effect_at_once() -> None:
    task = started()
    task.model_fails("model_transient", retry_after_ms=60_000)
    asked = len(task.asked)
    task.stop()
    assert task.ends == [("stopped", "stopped")]
    assert not task.flights
    assert not task.waits
    assert not any(type(c).__name__ == "CallModel" for c in task.asked[asked:])


def test_b7_a_call_that_was_cut_off_has_exactly_one_result() -> None:
    task = started()
    task.reply(call("label"))
    task.tool_fails(0, "worker_died")
    task.finish(0)
    assert task.transcript == ["entry of first", "reply 1", "result t/1/0"]
    assert task.model.turn == 2


def test_b8_of_three_parallel_calls_one_fails_and_three_results_stand() -> None:
    task = started()
    task.reply(call("get_order"), call("get_order"), call("get_order"))
    task.finish(2)
    task.finish(1, status="error")
    task.finish(0)
    assert len(task.transcript) == 5
    statuses = [row.data["status"] for row in task.rows("tool.finished")]
    assert sorted(map(str, statuses)) == ["error", "ok", "ok"]


def test_b9_a_tool_that_succeeded_is_not_run_again_when_the_next_model_call_fails_for_good() -> None:
    task = started()
    task.reply(call("refund"))
    task.finish(0)
    task.model_fails("model_permanent")
    task.send("go on")
    assert not task.tools
    assert len(task.rows("tool.started")) == 1


def test_b11_an_unknown_tool_is_an_error_that_lists_the_tools() -> None:
    task = started()
    task.reply(call("refunds"))
    assert task.transcript[-1] == (
        "error: There is no tool 'refunds'. Tools: get_order, label, look_up, notify, pay, post, refund, wire."
    )
    assert task.model.turn == 2


def test_b12_b13_bad_arguments_run_nothing_and_the_model_gets_the_reason() -> None:
    task = started()
    task.reply(call("refund", problem="arguments are not JSON"), call("refund", problem="amount: not a number"))
    assert task.transcript[-2:] == ["error: arguments are not JSON", "error: amount: not a number"]
    assert not task.rows("tool.started")
    assert task.model.turn == 2


def test_b16_retry_after_is_a_floor_and_the_backoff_is_bounded_and_jittered() -> None:
    task = started()
    task.model_fails("model_transient", retry_after_ms=5_000)
    assert task.wait_over() >= 5_000
    task.model_fails("model_transient", jitter=0.0)
    low = task.wait_over()
    task.model_fails("model_transient", jitter=0.999)
    high = task.wait_over()
    assert 0 < low < high <= limits.BACKOFF_MAX_MS


def test_p7_the_state_does_not_grow_with_the_conversation() -> None:
    task = started()
    sizes = []
    for turn in range(1, 61):
        task.reply(call("get_order"), call("refund", str(turn)))
        task.finish(0)
        task.finish(1)
        sizes.append(len(task.state.model_dump_json()))
    assert sizes[-1] - sizes[9] < 60
