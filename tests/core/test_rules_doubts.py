"""P4: who lives with an outcome that nobody can tell: the model, a person, or the run."""

import pytest

from perdure.core import limits
from perdure.core.agent import ToolSpec
from perdure.core.effects import Late, Word
from perdure.core.errors import InvalidInput
from perdure.core.shortening import shown_call
from perdure.core.state import TaskState
from tests.core.task import Task, call
from tests.core.test_rules_calls import calling

ARGUMENTS = '{"amount":79.0,"order_id":"A-1"}'


def doubting(tool: str = "pay", *after: str) -> Task:
    """Return a task whose first call was begun, and of which nobody can tell what became."""
    task = calling(call(tool, ARGUMENTS), *after)
    task.tool_fails(0, "in_doubt", begun=True)
    task.finish(0, "in_doubt", reason="it has no check")
    return task


# --- ask --------------------------------------------------------------------------------------------------------


def test_p4_a_person_is_asked_what_became_of_a_call_and_it_stays_open() -> None:
    task = doubting()
    (request,) = task.state.help
    assert request.help_id == "t/1/0"
    assert request.choices == ("it happened", "it did not happen")
    assert request.text == (
        'Did pay(amount=79.0, order_id="A-1") happen? It was begun under the key t/1/0, and what became of it is '
        "unknown: it has no check; the last attempt failed with: it was in_doubt. "
        'Answer "it happened" or "it did not happen"; what else you know may follow after a colon.'
    )
    assert (task.status, task.flights, task.waits) == ("input_required", {}, {})
    assert task.transcript[2:] == []
    assert task.rows("help.requested")[0].data["choices"] == ["it happened", "it did not happen"]


def test_p4_a_persons_word_goes_through_the_ledger_and_begins_nothing() -> None:
    task = doubting()
    task.answer("It happened: receipt r-17")
    (flight,) = task.tools
    assert (flight.key, flight.attempt, flight.resolve_only) == ("t/1/0", 3, True)
    assert flight.word == Word(happened=True, text="It happened: receipt r-17")
    assert task.status == "working"
    assert task.state.help == ()
    task.finish(0)
    assert task.transcript[2:] == ["result t/1/0"]
    assert task.state.doubts == ()
    task.reply(call("pay", ARGUMENTS))
    assert task.tool(0).key == "t/2/0"


def test_p4_what_did_not_happen_is_told_and_may_be_asked_for_again() -> None:
    task = doubting()
    task.answer("it did not happen.")
    task.finish(0, "closed")
    assert task.transcript[2:] == [
        "not_begun: Not done. A person says: it did not happen. Ask for it again if it is still wanted."
    ]
    assert task.state.doubts == ()
    assert task.kinds("tool.key_closed") == ["tool.key_closed"]
    task.reply(call("pay", ARGUMENTS))
    assert (task.tool(0).key, task.tool(0).resolve_only) == ("t/2/0", False)


@pytest.mark.parametrize(
    "said", ["yes", "no", "it happened, I think", "it happened not", "it may have happened", "happened: r-17", ":"]
)
def test_p4_a_word_that_says_neither_is_refused_and_changes_nothing(said: str) -> None:
    task = doubting()
    before = task.state
    with pytest.raises(InvalidInput, match='answer "it happened" or "it did not happen"'):
        task.answer(said)
    assert task.state == before


@pytest.mark.parametrize(
    "said", ["IT HAPPENED", " it  happened! ", "it happened:", "it did not happen: they called us"]
)
def test_a_word_may_be_written_as_people_write(said: str) -> None:
    task = doubting()
    task.answer(said)
    word = task.tool(0).word
    assert word is not None
    assert word.happened == ("not" not in said)


def test_p4_a_result_that_was_recorded_meanwhile_wins_over_the_word() -> None:
    task = doubting()
    task.answer("it did not happen")
    task.finish(0, "result")
    assert task.transcript[2:] == ["result t/1/0"]
    assert task.state.doubts == ()


def test_p4_a_word_that_could_not_be_carried_is_asked_for_again() -> None:
    task = doubting()
    task.answer("it happened")
    for _ in range(limits.TOOL_ATTEMPTS_MAX):
        task.tool_fails(0, "internal")
        if task.waits:
            task.wait_over(0)
    assert [h.help_id for h in task.state.help] == ["t/1/0"]
    assert task.status == "input_required"
    task.stop()
    task.send("b")
    assert task.tool(0).word is None, "the old word was for the old question"


def test_p4_a_stopped_question_is_asked_anew_by_the_next_run() -> None:
    task = doubting()
    task.stop()
    assert task.kinds("help") == ["help.requested", "help.closed"]
    task.send("b")
    assert (task.tool(0).resolve_only, task.tool(0).word) == (True, None)
    task.finish(0, "in_doubt", reason="still no check")
    assert [h.help_id for h in task.state.help] == ["t/1/0"]
    task.answer("it happened")
    task.finish(0)
    assert task.transcript[2:] == ["result t/1/0", "entry of b"]


def test_p9_a_word_that_comes_while_the_run_ends_is_carried_by_the_next() -> None:
    task = calling("post", "notify")
    task.finish(0, "in_doubt")
    task.stop()
    task.answer("it did not happen")
    assert [f.index for f in task.tools] == [1]
    task.tool_fails(1, "cancelled")
    task.send("b")
    assert task.tool(0).word == Word(happened=False, text="it did not happen")


def test_p9_a_run_that_ends_asks_nobody() -> None:
    task = calling("pay")
    task.stop()
    task.finish(0, "in_doubt")
    assert task.kinds("help") == []
    assert task.ends == [("stopped", "stopped")]
    task.send("b")
    task.finish(0, "in_doubt")
    assert len(task.state.help) == 1


def test_p4_while_a_person_is_asked_the_same_call_is_not_begun() -> None:
    task = calling("post", "post", "notify")
    task.finish(0, "in_doubt")
    task.tool_fails(1, "store")
    task.wait_over(1)
    assert task.tool(1).resolve_only
    task.finish(1, "not_begun")
    task.answer("it happened")
    assert [f.index for f in task.tools] == [0, 2]


def test_two_questions_of_the_same_call_are_two_doubts() -> None:
    task = calling("post", "post")
    task.finish(0, "in_doubt")
    task.finish(1, "in_doubt")
    task.answer("it did not happen", "t/1/0")
    task.finish(0, "closed")
    assert [d.key for d in task.state.doubts] == ["t/1/1"]
    task.answer("it happened", "t/1/1")
    task.finish(1)
    assert task.state.doubts == ()


def test_p8_what_waits_behind_a_question_waits_for_the_person_too() -> None:
    task = doubting("pay", "refund")
    assert (task.status, task.flights, task.waits) == ("input_required", {}, {})
    asked_at_ms = task.now_ms
    task.now_ms += 10_000_000
    task.answer("it happened")
    assert task.state.run is not None
    assert task.state.run.idle_ms == task.now_ms - asked_at_ms
    task.finish(0)
    assert [f.tool for f in task.tools] == ["refund"]


def test_a_question_survives_being_carried_over() -> None:
    task = doubting()
    task.restart()
    task.answer("it happened")
    task.restart()
    task.finish(0)


def test_what_a_person_is_shown_of_a_call_is_bounded() -> None:
    assert shown_call("pay", None) == "pay(…)"
    assert shown_call("pay", '{"to":"Zoë"}') == 'pay(to="Zoë")'
    assert len(shown_call("pay", f'{{"to":"{"x" * 2000}"}}').encode()) == limits.SHOWN_CALL_BYTES_MAX


# --- fail -------------------------------------------------------------------------------------------------------


def test_p4_a_run_fails_when_its_tool_says_so_and_the_result_stays_unknown() -> None:
    task = doubting("wire")
    assert task.ends == [("failed", "tool")]
    message = "the outcome of wire is unknown (t/1/0): it has no check; the last attempt failed with: it was in_doubt"
    assert task.rows("run.ended")[0].data["message"] == message
    assert task.transcript[2].startswith("unknown: Outcome unknown.")
    assert [d.key for d in task.state.doubts] == ["t/1/0"]
    task.send("b")
    task.reply(call("wire", ARGUMENTS))
    assert not task.flights
    assert task.ends == [("failed", "tool")] * 2, "the same call gets the same answer"


def test_p4_a_run_that_fails_leaves_its_other_calls_to_the_next() -> None:
    task = calling("wire", "notify")
    task.finish(0, "in_doubt")
    assert [f.index for f in task.tools] == [1]
    task.tool_fails(1, "cancelled")
    assert task.ends == [("failed", "tool")]
    task.send("b")
    assert [(f.index, f.resolve_only) for f in task.tools] == [(1, True)]


def test_p4_in_a_run_that_is_stopped_the_outcome_is_unknown_and_the_stop_stands() -> None:
    task = calling("wire")
    task.stop()
    task.finish(0, "in_doubt")
    assert task.ends == [("stopped", "stopped")]
    assert task.transcript[2].startswith("unknown:")


# --- tell -------------------------------------------------------------------------------------------------------


def test_telling_the_model_is_the_default() -> None:
    assert ToolSpec(name="x").in_doubt == "tell"
    task = doubting("refund")
    assert task.transcript[2].startswith("unknown: Outcome unknown.")
    assert task.model.turn == 2


def test_p4_a_doubt_that_a_later_run_settles_is_lifted() -> None:
    task = calling("notify", "notify")
    task.finish(0, "in_doubt")
    task.stop()
    task.tool_fails(1, "cancelled")
    task.send("b")
    task.finish(1)
    assert [d.key for d in task.state.doubts] == ["t/1/0"], "a twin's result says nothing of the other key"


# --- late -------------------------------------------------------------------------------------------------------


def late(key: str = "t/1/0", text: str = "receipt r-17") -> Late:
    return Late(key=key, status="ok", text=text)


def test_p4_a_result_that_comes_late_is_an_event_once() -> None:
    task = doubting("refund")
    assert task.model.watch == ("t/1/0",)
    task.reply(call("get_order"), late=(late(),))
    assert [row.data for row in task.rows("tool.late")] == [{"key": "t/1/0", "status": "ok", "text": "receipt r-17"}]
    task.finish(0)
    assert not task.model.watch
    task.reply(late=(late(),))
    assert len(task.rows("tool.late")) == 1


def test_p4_the_same_call_gets_the_late_result_and_begins_nothing() -> None:
    task = doubting("refund")
    task.reply(call("refund", ARGUMENTS), late=(late(),))
    assert not task.tools
    text = "Not begun again: the same call under t/1/0 had ended after all, its result came late: receipt r-17"
    assert task.transcript[-1] == f"ok: {text}"
    assert task.state.doubts == ()
    task.reply(call("refund", ARGUMENTS))
    assert task.tool(0).key == "t/3/0", "who knows the result and asks once more means another call"


def test_p4_a_late_result_that_nobody_was_told_of_still_stands_against_the_same_call() -> None:
    task = doubting("refund")
    task.reply(late=(late(),))
    task.send("b")
    task.restart()
    task.reply(call("refund", ARGUMENTS))
    assert not task.tools
    assert "its result came late" in task.transcript[-1]


def test_p4_a_result_under_a_closed_key_is_an_event_too() -> None:
    task = doubting("pay")
    task.answer("it did not happen")
    task.finish(0, "closed")
    assert task.model.watch == ("t/1/0",)
    task.reply(call("pay", ARGUMENTS), late=(late(),))
    assert [row.data["key"] for row in task.rows("tool.late")] == ["t/1/0"]
    assert task.tool(0).key == "t/2/0"


def test_p7_the_closed_keys_that_are_watched_are_bounded() -> None:
    task = calling("refund")
    for _ in range(limits.KEYS_PER_CALL_MAX):
        task.tool_fails(0, "worker_lost", begun=True)
        task.finish(0, "closed")
    task.reply(call("refund"))
    task.tool_fails(0, "worker_lost", begun=True)
    task.finish(0, "closed")
    task.finish(0)
    assert len(task.model.watch) == limits.CLOSED_KEYS_WATCHED_MAX
    assert task.model.watch[-1] == "t/2/0"


def test_states_without_the_newer_fields_can_be_read() -> None:
    body = doubting().state.model_dump(mode="json")
    for shape, field in ((body["help"][0], "choices"), (body["turn"]["calls"][0], "word")):
        del shape[field]
    for spec in body["agent"]["tools"]:
        del spec["in_doubt"]
    del body["closed_keys"]
    for doubt in body["doubts"]:
        del doubt["late"]
    TaskState.model_validate(body)
