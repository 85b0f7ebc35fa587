"""The worker's own look at an approval: at the arguments that it is about to run, whatever the workflow says."""

from typing import Any

import pytest

from perdure.core.approvals import Approval, Ruling, call_digest
from perdure.core.commands import CallTool
from perdure.core.content import ToolCall
from perdure.core.effects import request_digest
from perdure.core.errors import KeyReused
from perdure.core.questions import Examined
from perdure.temporal.approved import approved_call, denial

ASKED: dict[str, Any] = {"amount": 150}
CALL = ToolCall(call_id="c", tool="refund", arguments=ASKED)


def command(approval: Approval | None, **fields: Any) -> CallTool:
    given: dict[str, Any] = {
        "run": 1,
        "turn": 1,
        "index": 0,
        "attempt": 1,
        "key": "t/1/0",
        "tool": "refund",
        "effect": "once",
        "call_id": "c",
        "arguments_digest": request_digest("refund", ASKED),
        "reply_digest": "r",
        "timeout_s": 1,
        "heartbeat_timeout_s": 1,
        "approval": approval,
    }
    return CallTool.model_validate(given | fields)


def approval(run: dict[str, Any], key: str = "t/1/0", **fields: Any) -> Approval:
    return Approval(digest=call_digest("refund", request_digest("refund", run), key), **fields)


def test_what_was_approved_is_run() -> None:
    assert approved_call("t", command(None), CALL) == CALL
    assert approved_call("t", command(approval(ASKED)), CALL) == CALL
    assert approved_call("t", command(approval(ASKED), key="t/1/0/2"), CALL) == CALL
    changed = {"amount": 50}
    run = approved_call("t", command(approval(changed, arguments=changed)), CALL)
    assert run == CALL.model_copy(update={"arguments": changed})


@pytest.mark.parametrize(
    "given",
    [
        approval({"amount": 151}),
        approval(ASKED, key="t/2/0"),
        approval(ASKED, arguments={"amount": 50}),
        Approval(digest=""),
    ],
)
def test_p3_what_was_not_approved_is_not_run(given: Approval) -> None:
    with pytest.raises(KeyReused, match="P3: t/1/0 was approved with another tool or other arguments"):
        approved_call("t", command(given), CALL)


def test_rules_hold_for_changed_arguments_too() -> None:
    def examine(call: ToolCall) -> Examined:
        return Examined(ruling=Ruling(then="deny" if call.arguments == {"amount": 5000} else "ask", rule="deny refund"))

    changed = {"amount": 5000}
    given = command(approval(changed, arguments=changed))
    assert denial(examine, given, approved_call("t", given, CALL)) == "deny refund"
    assert denial(examine, command(approval(ASKED)), CALL) == ""
    assert denial(examine, command(None), CALL) == ""
