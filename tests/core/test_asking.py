"""Calls that ask a person in the middle (P3, P8): a question ends the attempt, and the answer begins the next."""

import pytest
from pydantic import JsonValue

from perdure.core.agent import ToolSpec
from perdure.core.effects import Answer, EffectRequest, LedgerView, judge
from perdure.core.errors import InvalidInput
from perdure.core.mcp_limits import QUESTIONS_PER_CALL_MAX
from tests.core.task import Task, call
from tests.core.test_rules_calls import calling


def asking(*after: str, tool: str = "refund", choices: tuple[str, ...] = ()) -> Task:
    """Return a task whose first call has asked."""
    task = calling(tool, *after)
    task.finish(0, "asks", question="Really?", choices=choices)
    return task


def test_p8_a_call_that_asks_holds_nothing_while_it_waits() -> None:
    task = asking(choices=("yes", "no"))
    (request,) = task.state.help
    assert (request.help_id, request.text, request.choices) == ("t/1/0/ask/1", "Really?", ("yes", "no"))
    assert (task.status, task.flights, task.waits) == ("input_required", {}, {})
    assert task.kinds("tool.", "help.") == ["tool.started", "tool.asked", "help.requested"]
    assert task.transcript[2:] == [], "the call has no result yet"


def test_p3_the_answer_goes_on_under_the_same_key() -> None:
    task = asking()
    task.answer("yes")
    (flight,) = task.tools
    assert (flight.key, flight.attempt, flight.resolve_only) == ("t/1/0", 2, False)
    assert flight.answer == Answer(asked="question t/1/0 1", text="yes")
    assert task.status == "working"
    task.finish(0)
    assert task.transcript[2:] == ["result t/1/0"]


def test_an_attempt_that_is_lost_takes_the_answer_along_once_more() -> None:
    task = asking(tool="label")
    task.answer("yes")
    task.restart()
    task.tool_fails(0, "worker_died", worker="w")
    assert task.tool(0).answer == Answer(asked="question t/1/0 1", text="yes")
    assert task.tool(0).attempt == 3


def test_it_may_ask_again_and_each_question_is_one_of_its_own() -> None:
    task = asking()
    task.answer("yes")
    task.finish(0, "asks", question="Why?")
    (request,) = task.state.help
    assert (request.help_id, request.text) == ("t/1/0/ask/2", "Why?")
    task.answer("broken")
    assert task.tool(0).answer == Answer(asked="question t/1/0 2", text="broken")


def test_an_answer_while_its_run_ends_is_refused_and_not_lost() -> None:
    task = calling("get_order", "notify")
    task.finish(0, "asks", question="Really?")
    task.stop()
    before = task.state
    with pytest.raises(InvalidInput, match="is ending"):
        task.answer("yes")
    assert task.state == before


def test_one_that_asks_too_often_is_closed() -> None:
    task = asking()
    for _ in range(QUESTIONS_PER_CALL_MAX):
        task.answer("yes")
        task.finish(0, "asks", question="Really?")
    assert task.state.help == ()
    assert task.tool(0).resolve_only
    assert task.tool(0).answer is None
    task.finish(0, "not_begun")
    assert task.transcript[2:] == ["not_begun: Not begun: it asked more than 10 questions."]


def test_p9_a_stop_closes_the_question_and_the_next_run_finds_out() -> None:
    task = asking()
    task.stop()
    assert task.rows("help.closed")[0].data["help_id"] == "t/1/0/ask/1"
    assert task.ends == [("stopped", "stopped")]
    task.send("b")
    assert (task.tool(0).resolve_only, task.tool(0).answer) == (True, None)
    task.finish(0, "not_begun", reason="it had asked a person")
    assert task.transcript[2:3] == ["not_begun: Not begun: it had asked a person."]


def test_calls_beside_it_go_on_meanwhile() -> None:
    task = calling("notify", "get_order")
    task.finish(0, "asks", question="Really?")
    assert [flight.index for flight in task.tools] == [1]
    assert task.status == "working"
    task.finish(1)
    assert task.status == "input_required"


def test_one_whose_key_was_closed_begins_anew_without_the_old_answer() -> None:
    task = asking()
    task.answer("yes")
    task.tool_fails(0, "worker_died", worker="w")
    task.finish(0, "closed")
    assert (task.tool(0).key, task.tool(0).answer) == ("t/1/0/2", None)


def test_a_doubt_about_a_call_that_had_asked_is_put_as_a_doubt() -> None:
    task = asking(tool="pay")
    task.answer("yes")
    task.tool_fails(0, "in_doubt", begun=True)
    task.finish(0, "in_doubt", reason="no check")
    assert task.state.help[0].choices == ("it happened", "it did not happen")
    task.answer("it happened")
    assert task.tool(0).word is not None


def test_what_a_tool_said_of_its_work_is_one_row_before_its_result() -> None:
    task = calling("refund")
    task.finish(0, notes=("1 of 2", "2 of 2"))
    assert task.kinds("tool.") == ["tool.started", "tool.told", "tool.finished"]
    notes: JsonValue = task.rows("tool.told")[0].data["notes"]
    assert notes == ["1 of 2", "2 of 2"]


def test_the_schema_that_a_task_knows_goes_with_each_attempt() -> None:
    spec = ToolSpec(name="shop.put", effect="idempotent", schema_digest="d1")
    task = Task(tools=(spec,), after_answer="input_required")
    task.send("a")
    task.reply(call("shop.put"))
    assert task.tool(0).schema_digest == "d1"
    assert "schema_digest" not in calling("refund").tool(0).model_dump(mode="json")
    assert "answer" not in calling("refund").tool(0).model_dump(mode="json")


# --- the ledger's word ------------------------------------------------------------------------------------------


def request(
    attempt: int, answer: Answer | None = None, *, effect: str = "once", resolve: bool = False
) -> EffectRequest:
    return EffectRequest.model_validate(
        {
            "key": "k",
            "task_id": "t",
            "run": 1,
            "turn": 1,
            "index": 0,
            "attempt": attempt,
            "tool": "refund",
            "effect": effect,
            "request_digest": "r",
            "worker": "w",
            "resolve_only": resolve,
            "answer": answer,
        }
    )


ASKED = LedgerView(request_digest="r", effect="once", outcome="open", begun_attempts=(1,), asked="q")


def test_p3_only_the_answer_to_what_stands_as_asked_begins() -> None:
    answer = Answer(asked="q", text="yes")
    for effect in ("read", "idempotent", "once"):
        assert judge(request(2, answer, effect=effect), ASKED) == "begin"
        assert judge(request(2, effect=effect), ASKED) == "asked"
        assert judge(request(2, Answer(asked="another", text="yes"), effect=effect), ASKED) == "asked"
    went_on = ASKED.model_copy(update={"begun_attempts": (1, 2), "asked": None})
    assert judge(request(3, answer), went_on) == "in_doubt"
    assert judge(request(3, answer, effect="idempotent"), went_on) == "begin"


def test_p4_what_asked_and_never_went_on_did_not_happen() -> None:
    assert judge(request(2, resolve=True), ASKED) == "not_begun"
    assert judge(request(3, resolve=True), ASKED.model_copy(update={"outcome": "closed"})) == "not_begun"
    went_on = ASKED.model_copy(update={"begun_attempts": (1, 2), "asked": None})
    assert judge(request(3, resolve=True), went_on) == "in_doubt"
