"""Calls that wait for a person: nothing of one begins without an approval of its own, which counts once."""

import json
from typing import Any

import pytest

from perdure.core.approvals import Approval, approves, call_digest
from perdure.core.effects import request_digest
from perdure.core.errors import InvalidInput, InvariantBroken
from perdure.core.machine import meant_by
from perdure.core.machine.approving import refuse_unapproved
from perdure.core.machine.draft import Draft, replaced
from perdure.core.state import HelpRequest
from tests.core.task import Task, ask, asking, call
from tests.core.test_rules_calls import calling, indices

REFUND = '{"amount":150,"order_id":"A-1"}'


def waiting(*after: object) -> Task:
    """Return a task whose first call waits for a person's word."""
    return calling(asking("refund", REFUND, reason="More than 100."), *after)


def only(task: Task) -> HelpRequest:
    (request,) = task.state.help
    return request


def exact(arguments: str, key: str = "t/1/0") -> str:
    return call_digest("refund", request_digest("refund", json.loads(arguments)), key)


def test_a_call_waits_for_approval_and_nothing_of_it_begins() -> None:
    task = waiting()
    request = only(task)
    assert (request.help_id, request.kind, request.choices) == ("t/1/0", "approval", ("approve", "decline"))
    assert request.digest == exact(REFUND)
    assert request.text == (
        'May refund(amount=150, order_id="A-1") run? More than 100. '
        f'Answer "approve {request.digest[:8]}" or "decline {request.digest[:8]}", and why after a colon.'
    )
    assert (task.status, task.flights, task.waits, task.expiries) == ("input_required", {}, {}, {})
    row = task.rows("help.requested")[0]
    assert (row.data["help_kind"], row.data["call_digest"]) == ("approval", exact(REFUND))
    assert task.rows("model.answered")[0].data["calls"] == [
        {
            "index": 0,
            "tool": "refund",
            "arguments": REFUND,
            "ruling": {"then": "ask", "rule": "ask refund", "reason": "More than 100."},
        }
    ]


def test_an_approved_call_begins_once_with_its_approval() -> None:
    task = waiting()
    task.answer("Approve: they are a good customer", by="alice")
    (flight,) = task.tools
    assert flight.key == "t/1/0"
    assert flight.approval == Approval(digest=exact(REFUND), by="alice", reason="they are a good customer")
    assert approves(flight.approval, "refund", json.loads(REFUND), "t/1/0")
    said = task.rows("help.answered")[0].data
    assert (said["verdict"], said["by"], said["call_digest"]) == ("approved", "alice", exact(REFUND))
    task.finish(0)
    assert task.transcript[2:] == ["result t/1/0"]


def test_b10_a_declined_call_never_runs_and_the_model_is_told_why() -> None:
    task = waiting()
    task.answer("decline: not without a receipt", by="alice")
    assert task.kinds("tool.started") == []
    assert task.transcript[2:] == ["not_begun: Declined by alice: not without a receipt. It was not begun."]
    assert task.rows("help.answered")[0].data["verdict"] == "declined"
    assert task.model.turn == 2


def test_b22_of_two_approvals_the_first_counts_and_the_second_is_refused() -> None:
    task = waiting()
    task.answer("approve", by="alice")
    before = task.state
    for said in ("approve", "decline"):
        with pytest.raises(
            InvalidInput, match="'t/1/0' is not an open question of this task any more: it was answered"
        ):
            task.answer(said, "t/1/0", by="bob")
    assert task.state == before
    task.finish(0)
    assert task.kinds("tool.started") == ["tool.started"]


def test_b22_an_approval_is_for_one_call_and_not_for_the_next_one_like_it() -> None:
    task = waiting()
    task.answer("approve")
    task.finish(0)
    task.reply(asking("refund", REFUND))
    assert (only(task).help_id, task.tools) == ("t/2/0", [])
    assert only(task).digest == exact(REFUND, "t/2/0")
    stolen = Approval(digest=exact(REFUND))
    assert not approves(stolen, "refund", json.loads(REFUND), "t/2/0")
    assert not approves(stolen, "refund", {"amount": 151, "order_id": "A-1"}, "t/1/0")
    assert not approves(stolen, "pay", json.loads(REFUND), "t/1/0")


def test_what_is_shown_of_a_call_hides_nothing_and_a_cut_is_said() -> None:
    task = calling(asking("refund", '{"to":"Zoë\u202eooz\u200b"}'), asking("refund", f'{{"to":"{"x" * 9_000}"}}'))
    first, second = task.state.help
    assert first.text.startswith('May refund(to="Zoë\\u202eooz\\u200b") run? It waits by the rule: ask refund.')
    assert "… [cut]" in second.text
    assert len(second.text) < 8_500


def test_two_equal_calls_of_one_reply_are_two_approvals() -> None:
    task = waiting(asking("refund", REFUND))
    first, second = task.state.help
    assert first.digest != second.digest
    task.answer("approve", second.help_id)
    assert indices(task) == []  # `once` calls run in order, and the first is not decided
    task.answer("decline", first.help_id)
    assert indices(task) == [1]


def test_all_approvals_of_a_reply_are_asked_for_at_once() -> None:
    task = calling("look_up", asking("refund", REFUND), asking("notify"))
    assert [h.help_id for h in task.state.help] == ["t/1/1", "t/1/2"]
    assert (indices(task), task.status) == ([0], "working")
    task.finish(0)
    assert (indices(task), task.status) == ([], "input_required")


def test_calls_beside_which_others_may_run_do_not_hold_them_up_while_they_wait() -> None:
    task = calling(asking("get_order"), "notify")
    assert indices(task) == [1]
    task.answer("approve")
    assert indices(task) == [0, 1]


def test_changed_arguments_are_run_recorded_and_told() -> None:
    task = waiting()
    task.answer(json.dumps({"approve": True, "arguments": {"amount": 50, "order_id": "A-1"}}), by="alice")
    (flight,) = task.tools
    changed: dict[str, Any] = {"amount": 50, "order_id": "A-1"}
    assert flight.approval is not None
    assert (flight.approval.arguments, flight.arguments_digest) == (changed, request_digest("refund", changed))
    assert approves(flight.approval, "refund", changed, "t/1/0")
    assert task.rows("help.answered")[0].data["arguments"] == changed
    task.finish(0, "not_begun", reason="amount: must be less")
    assert task.transcript[2:] == [
        'not_begun: A person approved this call with other arguments: {"amount":50,"order_id":"A-1"}.\n'
        "Not begun: amount: must be less."
    ]


def test_b22_of_a_changed_call_in_doubt_is_asked_what_ran_and_not_what_the_model_wanted() -> None:
    task = calling(asking("pay", '{"amount":500,"to":"A-1"}'))
    task.answer(json.dumps({"approve": True, "arguments": {"amount": 50, "to": "B-2"}}))
    task.finish(0, "in_doubt")
    assert only(task).text.startswith('Did pay(amount=50, to="B-2") happen?')


def test_the_same_arguments_are_no_change() -> None:
    task = waiting()
    task.answer(json.dumps({"approve": True, "arguments": json.loads(REFUND)}))
    assert task.tools[0].approval == Approval(digest=exact(REFUND))
    assert "arguments" not in task.rows("help.answered")[0].data


def test_an_approval_that_names_another_call_is_refused() -> None:
    task = waiting()
    before = task.state
    with pytest.raises(InvalidInput, match="digest: is of another call"):
        task.answer(json.dumps({"approve": True, "digest": exact(REFUND, "t/2/0")}))
    assert task.state == before
    task.answer(json.dumps({"approve": True, "digest": exact(REFUND)}))
    assert len(task.tools) == 1


def meant(task: Task, said: str) -> str:
    return meant_by(task.state, task.state.help, said).help_id


def test_b22_a_late_word_that_says_no_call_does_not_approve_the_next_one() -> None:
    task = calling(asking("refund", REFUND, expires_in_s=60))
    assert meant(task, "approve") == "t/1/0"
    task.expire()
    task.reply(asking("refund", REFUND))
    code = exact(REFUND, "t/2/0")[:8]
    assert f'Answer "approve {code}" or "decline {code}"' in only(task).text
    with pytest.raises(InvalidInput, match=rf'do not say which call: say "approve {code}", or name one of t/2/0'):
        meant(task, "approve")
    assert meant(task, f"Approve {code}: fine") == "t/2/0"
    with pytest.raises(InvalidInput, match="names no call that waits: it was answered, or it expired"):
        meant(task, f"approve {exact(REFUND)[:8]}")  # the one that expired
    with pytest.raises(InvalidInput, match="digest: is of another call"):
        task.answer(f"approve {exact(REFUND)[:8]}")
    task.answer(f"approve {code}")
    assert len(task.tools) == 1


def test_of_several_approvals_a_word_means_the_one_whose_code_it_says() -> None:
    task = waiting(asking("refund", REFUND))
    second = exact(REFUND, "t/1/1")
    assert meant(task, f"decline {second[:8]}: no") == "t/1/1"
    assert meant(task, json.dumps({"approve": True, "digest": second})) == "t/1/1"
    with pytest.raises(InvalidInput, match="do not say which"):
        meant(task, "decline")


def test_a_bare_word_beside_a_question_says_no_call() -> None:
    task = calling(asking("get_order"), ask("Which one?"))
    assert [each.kind for each in task.state.help] == ["approval", "question"]
    with pytest.raises(InvalidInput, match="do not say which"):
        meant(task, "approve")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("approve 1a2b", "neither approves nor declines"),
        ('{"approve": true, "digest": "1a2b"}', "digest: must be that of the call"),
        ("yes", 'answer "approve" or "decline: why"'),
        ("approved, I think", "neither approves nor declines"),
        ("{", "is no JSON object"),
        ('{"approve": "yes"}', "approve: must be true or false"),
        ('{"approve": true, "amount": 3}', "amount: unknown"),
        ('{"approve": true, "arguments": [1]}', "arguments: must be an object"),
        ('{"approve": false, "arguments": {}}', "arguments: are for a call that is approved"),
        ('{"approve": true, "reason": 3}', "reason: must be a text"),
        ('{"approve": NaN}', "is no JSON object"),
        (json.dumps({"approve": True, "arguments": {"x": "y" * 20_000}}), "arguments: have 20008 bytes"),
    ],
)
def test_what_is_no_decision_is_refused_and_changes_nothing(said: str, problem: str) -> None:
    task = waiting()
    before = task.state
    with pytest.raises(InvalidInput) as refused:
        task.answer(said)
    assert problem in str(refused.value)
    assert task.state == before


def test_a_denied_call_never_runs_and_nobody_is_asked() -> None:
    denied = call("refund", REFUND, ruling=asking("refund").ruling.model_copy(update={"then": "deny"}))  # type: ignore[union-attr]
    task = calling(denied, "look_up")
    assert task.transcript[2:] == ["error: Not begun: this call is not allowed (ask refund). Do not ask for it again."]
    assert (task.state.help, indices(task)) == ((), [1])


def test_an_approval_expires_as_declined_and_waits_for_no_timer_otherwise() -> None:
    task = calling(asking("refund", REFUND, expires_in_s=60))
    assert list(task.expiries) == ["t/1/0"]
    assert "Without an answer within 60 s it is declined." in only(task).text
    task.restart()
    task.expire()
    assert task.transcript[2:] == ["not_begun: Declined: nobody approved it in time. It was not begun."]
    closed = task.rows("help.closed")[0].data
    assert (closed["help_id"], closed["reason"]) == ("t/1/0", "expired")
    with pytest.raises(InvalidInput, match="any more"):
        task.answer("approve", "t/1/0")


def test_an_answer_in_time_ends_the_wait() -> None:
    task = calling(asking("refund", REFUND, expires_in_s=60))
    task.answer("approve")
    assert task.expiries == {}
    assert len(task.tools) == 1


def test_p9_a_stop_ends_the_waiting_and_the_call_is_not_begun() -> None:
    task = calling(asking("refund", REFUND, expires_in_s=60))
    task.stop()
    assert (task.expiries, task.flights) == ({}, {})
    assert task.rows("help.closed")[0].data["reason"] == "stopped"
    task.send("again")
    assert task.transcript[2] == "not_begun: Not begun: the run was stopped."
    assert task.kinds("tool.started") == []


def test_an_approval_does_not_outlive_the_stop_of_its_call() -> None:
    task = waiting()
    task.answer("approve")
    task.stop()
    task.tool_fails(0, "cancelled")
    task.send("again")
    (flight,) = task.tools
    assert flight.resolve_only
    task.finish(0, "not_begun")
    task.reply(asking("refund", REFUND))
    assert (only(task).help_id, task.tools) == ("t/2/0", [])


def test_an_approval_that_comes_while_its_run_ends_is_refused() -> None:
    task = calling("notify", asking("post", REFUND))
    task.stop()
    assert task.state.help
    with pytest.raises(InvalidInput, match="is ending"):
        task.answer("approve")
    task.tool_fails(0, "cancelled")
    assert task.state.help == ()
    task.send("again")
    task.finish(0, "not_begun")
    assert task.transcript[3] == "not_begun: Not begun: the run was stopped."


def test_an_approved_call_that_never_happened_begins_anew_with_the_same_approval() -> None:
    task = waiting()
    task.answer("approve", by="alice")
    task.tool_fails(0, "worker_died", worker="w1")
    task.finish(0, "closed")
    (flight,) = task.tools
    assert flight.key == "t/1/0/2"
    assert flight.approval == Approval(digest=exact(REFUND), by="alice")


def test_nobody_is_asked_about_a_call_whose_twin_is_in_doubt() -> None:
    task = calling(call("refund", REFUND))
    task.tool_fails(0, "in_doubt", begun=True)
    task.finish(0, "in_doubt", reason="no check")
    task.reply(asking("refund", REFUND))
    assert task.state.help == ()
    assert task.transcript[-1].startswith("unknown: Outcome unknown.")


def test_waiting_for_an_approval_spends_no_time_of_the_budget() -> None:
    task = waiting()
    task.now_ms += 10_000
    task.answer("approve")
    assert task.state.run is not None
    assert task.state.run.idle_ms >= 10_000


def test_p3_without_its_approval_a_call_does_not_begin() -> None:
    task = waiting()
    draft = Draft(task.state, at_ms=1)
    waits = draft.turn.call(0)
    with pytest.raises(InvariantBroken, match="P3: call 1/0 begins without an approval of its own"):
        refuse_unapproved(draft, waits)
    for digest in (exact(REFUND, "t/2/0"), exact('{"amount":1}'), ""):
        with pytest.raises(InvariantBroken, match="P3"):
            refuse_unapproved(draft, replaced(waits, approval=Approval(digest=digest)))
    refuse_unapproved(draft, replaced(waits, approval=Approval(digest=exact(REFUND))))


def test_an_open_approval_and_an_open_question_are_told_apart() -> None:
    task = calling(ask("Which?"), asking("refund", REFUND))
    assert [(h.help_id, h.kind) for h in task.state.help] == [("t/1/1", "approval"), ("t/1/0", "question")]
    task.answer("the red one", "t/1/0")
    assert (len(task.state.help), indices(task)) == (1, [])
    task.answer("approve")
    assert indices(task) == [1]
