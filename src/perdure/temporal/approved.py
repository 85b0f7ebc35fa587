"""The worker's part in approvals: what it is about to run is what was approved, and nothing else.

The workflow begins no call that needs an approval without one. The worker looks again, at the arguments themselves:
only it has them.
"""

from collections.abc import Callable

from perdure.core.approvals import approves
from perdure.core.commands import CallTool
from perdure.core.content import ToolCall
from perdure.core.effects import effect_key
from perdure.core.errors import KeyReused
from perdure.core.questions import Examined


def approved_call(task_id: str, command: CallTool, call: ToolCall) -> ToolCall:
    """Return the call as it is to be run: the model's, with the arguments that a person put in their place.

    Raises `KeyReused` where an approval is of another call than this one.
    """
    approval = command.approval
    if approval is None:
        return call
    run = call if approval.arguments is None else call.model_copy(update={"arguments": approval.arguments})
    key = effect_key(task_id, command.turn, command.index, 1)
    if not approves(approval, command.tool, run.arguments or {}, key):
        raise KeyReused(f"P3: {key} was approved with another tool or other arguments than it would be begun with")
    return run


def denial(examine: Callable[[ToolCall], Examined], command: CallTool, call: ToolCall) -> str:
    """Return why a call that a person changed must not begin all the same; empty where it may.

    Whoever approves may change a call, not the rules: one that they deny stays denied.
    """
    approval = command.approval
    if approval is None or approval.arguments is None or command.resolve_only:
        return ""
    ruling = examine(call).ruling
    return (ruling.reason or ruling.rule) if ruling is not None and ruling.then == "deny" else ""
