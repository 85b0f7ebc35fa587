"""R14, P3 and P4: calls, their keys, results and doubts."""

import pytest

from perdure.core import limits
from perdure.core.agent import RetryPolicy, ToolSpec
from perdure.core.commands import CallTool
from perdure.core.events import ModelFailed
from tests.core.task import Task, ask, call


def calling(*calls: object) -> Task:
    """Return a task whose model asked for these calls and that goes on after answers."""
    task = Task(after_answer="input_required")
    task.send("a")
    task.reply(*[call(c) if isinstance(c, str) else c for c in calls])  # type: ignore[arg-type]
    return task


def indices(task: Task) -> list[int]:
    """Return the indices of the tool attempts under way."""
    return [flight.index for flight in task.tools]


def keys(task: Task) -> list[str]:
    """Return the key of every attempt that was scheduled, in order."""
    return [c.key for c in task.asked if isinstance(c, CallTool)]


def test_r14_results_stand_in_call_order_whatever_their_order_of_completion() -> None:
    task = calling("get_order", "notify", "get_order")
    for index in (2, 0, 1):
        task.finish(index)
    assert task.transcript[2:] == ["result t/1/0", "result t/1/1", "result t/1/2"]


def test_r14_no_model_call_before_the_last_result() -> None:
    task = calling("get_order", "get_order")
    task.finish(1)
    assert indices(task) == [0]
    task.finish(0)
    assert task.model.turn == 2


def test_r14_calls_run_in_order_and_beside_each_other_only_where_all_allow_it() -> None:
    task = calling("get_order", "notify", "refund", "get_order", "look_up", "get_order")
    assert indices(task) == [0, 1]
    task.finish(0)
    assert indices(task) == [1]
    task.finish(1)
    assert indices(task) == [2]
    task.finish(2)
    assert indices(task) == [3]
    task.finish(3)
    assert indices(task) == [4]
    task.finish(4)
    assert indices(task) == [5]


def test_r14_calls_beyond_the_limit_get_an_error_each() -> None:
    task = calling(*["get_order"] * (limits.CALLS_PER_TURN_MAX + 2))
    assert len(task.tools) == limits.CALLS_PER_TURN_MAX
    for index in range(limits.CALLS_PER_TURN_MAX):
        task.finish(index)
    assert [line[:38] for line in task.transcript[-2:]] == ["error: Not begun: one reply may ask for"[:38]] * 2


def test_r14_an_unanswered_run_leaves_calls_that_the_next_one_resolves_first() -> None:
    task = calling("get_order", "refund", "refund", ask("sure?"))
    task.stop()
    task.tool_fails(0, "cancelled")
    task.send("b")
    assert [(f.index, f.resolve_only, f.run) for f in task.tools] == [(0, True, 2)]
    task.finish(0, "not_begun")
    assert [line.split(":")[0] for line in task.transcript[2:]] == ["not_begun"] * 4 + ["entry of b"]
    assert task.model.turn == 2


def test_r14_a_call_that_was_resolved_again_and_again_keeps_one_result() -> None:
    task = calling("refund")
    for message_id in ("b", "c", "d"):
        task.stop()
        task.tool_fails(0, "cancelled")
        task.send(message_id)
    task.finish(0)
    assert task.transcript == ["entry of a", "reply 1", "result t/1/0", "entry of b"]
    assert keys(task) == ["t/1/0"] * 4


def test_a_task_that_waits_only_for_a_person_says_so() -> None:
    task = calling(ask("red or blue?"), "notify")
    assert task.status == "working"
    task.finish(1)
    assert task.status == "input_required"
    assert not task.flights
    task.answer("red")
    assert task.status == "working"
    assert task.transcript[2:] == ["ok: red", "result t/1/1"]


# --- P3: keys and attempts --------------------------------------------------------------------------------------


def test_p3_every_attempt_at_a_call_has_its_key() -> None:
    task = calling("label")
    task.tool_fails(0, "worker_died")
    task.tool_fails(0, "tool_raised", begun=True)
    task.wait_over(0)
    task.finish(0)
    assert keys(task) == ["t/1/0"] * 3


def test_p3_a_closed_key_is_followed_by_the_next() -> None:
    task = calling("refund")
    task.tool_fails(0, "in_doubt", begun=True)
    task.finish(0, "closed")
    assert (task.tool(0).key, task.tool(0).attempt) == ("t/1/0/2", 3)
    task.finish(0)
    assert task.transcript[-1] == "result t/1/0/2"


def test_p7_keys_that_close_again_and_again_come_to_an_end() -> None:
    task = calling("refund")
    for _ in range(limits.TOOL_ATTEMPTS_MAX):
        task.tool_fails(0, "in_doubt", begun=True)
        task.finish(0, "closed")
    assert sorted(set(keys(task))) == ["t/1/0", "t/1/0/2", "t/1/0/3"]
    assert task.transcript[-1] == (
        "not_begun: Not done: it was begun, did not happen, and will not happen any more. "
        "The last attempt failed with: it was in_doubt"
    )
    assert task.state.doubts == ()
    assert task.model.turn == 2


def test_p7_deaths_close_more_keys_than_failures_and_come_to_an_end_too() -> None:
    task = calling("refund")
    for _ in range(limits.KEYS_PER_CALL_MAX):
        task.tool_fails(0, "worker_lost", begun=True)
        task.finish(0, "closed")
    assert len(set(keys(task))) == limits.KEYS_PER_CALL_MAX
    assert task.transcript[-1].startswith("not_begun: Not done")
    assert task.model.turn == 2


def test_b26_keys_differ_where_the_models_own_ids_repeat() -> None:
    task = calling(call("refund", call_id="same"))
    task.finish(0)
    task.reply(call("refund", call_id="same"))
    assert keys(task) == ["t/1/0", "t/2/0"]


# --- P4: doubts -------------------------------------------------------------------------------------------------


def test_p4_an_unknown_outcome_is_said_and_never_begun_again() -> None:
    task = calling(call("refund", "10"))
    task.tool_fails(0, "worker_died")
    task.finish(0, "in_doubt", reason="no check")
    assert task.transcript[-1].startswith("unknown: Outcome unknown.")
    assert "no check; the last attempt failed with: it was worker_died" in task.transcript[-1]
    task.reply(call("refund", "10"), call("refund", "11"))
    assert [(f.index, f.key) for f in task.tools] == [(1, "t/2/1")]
    assert "the same call under t/1/0 has an unknown outcome" in task.transcript[-1]


def test_p4_twins_of_a_doubted_call_begin_under_no_new_key() -> None:
    task = calling("notify", "notify")
    task.tool_fails(1, "in_doubt", begun=True)
    task.finish(0, "in_doubt")
    task.finish(1, "closed")
    assert not task.tools
    assert [line.split(":")[0] for line in task.transcript[2:]] == ["unknown", "unknown"]


def test_p4_a_retry_beside_a_doubted_twin_only_resolves() -> None:
    task = calling("notify", "notify")
    task.tool_fails(1, "store")
    task.finish(0, "in_doubt")
    task.wait_over(1)
    assert task.tool(1).resolve_only
    task.finish(1, "not_begun")
    assert task.transcript[-1] == "not_begun: Not begun: it was store."


def test_r14_a_call_that_must_run_alone_waits_also_for_one_that_is_looked_up() -> None:
    task = calling("refund", "look_up")
    for _ in range(limits.TOOL_ATTEMPTS_MAX):
        task.tool_fails(0, "timeout")
        if task.waits:
            task.wait_over(0)
    assert [(f.index, f.resolve_only) for f in task.tools] == [(0, True)]


@pytest.mark.parametrize("tool", ["refund", "label"])
def test_p4_before_it_gives_up_it_finds_out_what_happened(tool: str) -> None:
    task = calling(tool)
    for _ in range(limits.TOOL_ATTEMPTS_MAX):
        task.tool_fails(0, "timeout")
        if task.waits:
            task.wait_over(0)
    assert task.tool(0).resolve_only
    task.finish(0)
    assert task.transcript[-1] == "result t/1/0"


def test_p4_when_even_that_fails_the_outcome_is_unknown() -> None:
    task = calling("refund")
    for _ in range(2 * limits.TOOL_ATTEMPTS_MAX):
        task.tool_fails(0, "internal")
        if task.waits:
            task.wait_over(0)
    assert task.transcript[-1].startswith("unknown:")
    assert "7 attempts" not in task.transcript[-1]
    assert "6 attempts failed; the last attempt failed with: it was internal" in task.transcript[-1]


def test_p4_a_call_that_only_reads_leaves_no_doubt() -> None:
    task = calling("get_order")
    task.stop()
    task.tool_fails(0, "cancelled")
    task.send("b")
    task.finish(0, "in_doubt")
    assert task.state.doubts == ()
    assert task.transcript[2].startswith("error: No result:")
    task.reply(call("get_order"))
    assert not task.tool(0).resolve_only


def test_p4_a_call_that_only_reads_and_fails_is_an_error() -> None:
    task = calling("get_order")
    for _ in range(limits.TOOL_ATTEMPTS_MAX):
        task.tool_fails(0, "tool_raised")
        if task.waits:
            task.wait_over(0)
    assert task.transcript[-1] == "error: Failed after 3 attempts: it was tool_raised"


def test_p7_doubts_are_bounded() -> None:
    tools = (ToolSpec(name="refund", effect="once", parallel=True), ToolSpec(name="get_order", effect="read"))
    task = Task(tools=tools, after_answer="input_required")
    task.send("a")
    while task.state.run is not None:
        task.reply(*[call("refund", f"{task.state.turns}/{i}") for i in range(25)])
        for flight in task.tools:
            if task.state.mode == "calls":
                task.finish(flight.index, "in_doubt")
    assert task.ends == [("failed", "tool")]
    assert len(task.state.doubts) == limits.DOUBTS_MAX
    task.send("b")
    task.reply(call("refund", "new"), call("get_order"))
    assert [f.tool for f in task.tools] == ["get_order"]
    assert "100 outcomes are unknown in this task" in task.transcript[-1]


def test_p9_a_full_account_of_doubts_begins_nothing_more_in_its_turn() -> None:
    tools = (ToolSpec(name="refund", effect="once"), ToolSpec(name="notify", effect="once"))
    task = Task(tools=tools, after_answer="input_required")
    task.send("a")
    while len(task.state.doubts) < limits.DOUBTS_MAX - 1:
        task.reply(call("refund", f"{task.state.turns}"))
        task.finish(0, "in_doubt")
    task.reply(call("refund", "last"), call("notify"))
    task.finish(0, "in_doubt")
    assert not task.tools
    assert task.ends == [("failed", "tool")]


def test_a_diverged_store_ends_the_run_and_leaves_the_call_open() -> None:
    task = calling("refund")
    task.tool_fails(0, "diverged")
    assert task.ends == [("failed", "store")]
    task.send("b")
    assert task.tool(0).resolve_only


def test_waits_are_carried_over_with_their_length() -> None:
    retry = RetryPolicy(attempts_max=5)
    task = Task(tools=(ToolSpec(name="get_order", effect="read", retry=retry),))
    task.send("a")
    task.model_fails("model_transient", retry_after_ms=5_000)
    task.restart()
    assert task.wait_over() >= 5_000
    task.reply(call("get_order"))
    task.tool_fails(0, "tool_raised")
    task.restart()
    task.wait_over(0)
    task.restart()
    task.finish(0)


def test_what_a_model_or_an_error_wrote_is_safe_and_bounded_in_the_log() -> None:
    task = calling(call("no\x00pe"), ask("long " * limits.QUESTION_BYTES_MAX))
    assert len(task.state.help[0].text.encode()) == limits.QUESTION_BYTES_MAX
    assert task.rows("model.answered")[0].data["calls"][0]["tool"] == "no\ufffdpe"  # type: ignore[index, call-overload]
    task.answer("yes")
    task.now_ms += 1
    flight = task.model
    del task.flights[flight.turn, None]
    event = {
        "at_ms": 1,
        "turn": flight.turn,
        "attempt": 1,
        "failure": {"kind": "model_permanent", "message": "x" * 9999},
    }
    task.apply(ModelFailed.model_validate(event))
    assert len(str(task.rows("model.failed")[0].data["message"])) == limits.PROBLEM_BYTES_MAX
    assert len(str(task.rows("run.ended")[0].data["message"])) == limits.PROBLEM_BYTES_MAX


def test_a_call_that_its_worker_could_not_judge_does_not_begin_where_another_might() -> None:
    """The task knows the tool, and so may the next worker: it would begin what no rule was asked about."""
    task = calling(call("refund", '{"amount":500}', unknown=True), call("label", unknown=True), "get_order")
    assert [flight.tool for flight in task.tools] == ["get_order"]
    task.finish(2)
    refund, label, _ = task.transcript[2:]
    assert refund.startswith("error: Not begun: the worker that took this call in has no tool 'refund'")
    assert label.startswith("error: Not begun: ")
    task.reply(call("refund", '{"amount":500}'))
    assert [flight.key for flight in task.tools] == ["t/2/0"]
    nowhere = calling(call("none", unknown=True))
    assert nowhere.transcript[2].startswith("error: There is no tool 'none'. Tools: get_order")


def test_what_is_not_unknown_does_not_show() -> None:
    """A reply that was recorded before there was such a thing comes out the same (P11)."""
    assert "unknown" not in call("refund").model_dump()
    assert call("refund", unknown=True).model_dump()["unknown"] is True
