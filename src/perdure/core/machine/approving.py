"""Calls that wait for a person's approval (`core/approvals.py` says what one is).

They ask before anything of their turn that must wait for them begins, all at once, so that who approves sees all of it.
A call begins, in its order, once it is approved; one that is declined, or of which the time is over, has its result.
"""

from pydantic import JsonValue

from perdure.core import events
from perdure.core.approvals import APPROVE, DECLINE, Approval, call_digest, code_of, read_decision
from perdure.core.digests import canonical
from perdure.core.effects import effect_key, request_digest
from perdure.core.errors import InvalidInput, InvariantBroken
from perdure.core.machine.closing import close_call
from perdure.core.machine.doubts import doubt_of, sender_of
from perdure.core.machine.draft import Draft, made_result
from perdure.core.machine.helping import close_request, put_question
from perdure.core.questions import Manner
from perdure.core.shortening import shortened, shown_call
from perdure.core.state import CallState, HelpRequest


def needs_approval(call: CallState) -> bool:
    """Whether this call may not begin as it is."""
    asks = call.ruling is not None and call.ruling.then == "ask"
    return asks and call.approval is None and not call.resolving


def ask_for_approvals(draft: Draft) -> None:
    """Put every call of the turn that needs a person's word to one.

    A call of which the same one is in doubt is not begun in any case (P4): nobody is asked about it.
    """
    for call in draft.turn.calls:
        rests = call.outcome is None and call.asked is None and call.ops is None
        if rests and needs_approval(call) and doubt_of(draft, call) is None:
            ask_for_approval(draft, call)


def ask_for_approval(draft: Draft, call: CallState) -> None:
    """Put one call to a person, with the code by which a word says that it is about this one (B22)."""
    if call.ruling is None:
        raise InvariantBroken("P3", f"call {draft.turn.number}/{call.index} asks for an approval that it needs not")
    key = call_key(draft, call)
    why = call.ruling.reason.rstrip(".") or f"It waits by the rule: {call.ruling.rule}"
    until = call.ruling.expires_in_s
    exact = call_digest(call.tool, call.arguments_digest, key)
    code = code_of(exact)
    within = f" Without an answer within {until:g} s it is declined." if until is not None else ""
    text = (
        f'May {call.shown or call.tool} run? {why}. Answer "{APPROVE} {code}" or "{DECLINE} {code}", '
        f"and why after a colon.{within}"
    )
    draft.set(approvals=draft.state.approvals + 1)
    put_question(
        draft,
        call,
        key,
        text,
        (APPROVE, DECLINE),
        manner=Manner(expires_in_s=until),
        digest=exact,
        about={"tool": call.tool, "rule": call.ruling.rule},
    )


def call_key(draft: Draft, call: CallState) -> str:
    """Return the key that stands for the call itself, whatever became of the keys after it."""
    return effect_key(draft.state.task_id, draft.turn.number, call.index, 1)


def take_decision(draft: Draft, call: CallState, request: HelpRequest, event: events.Answered) -> None:
    """Take a person's word on a call: it may begin, as it is or with other arguments, or it is declined.

    In a run that is ending nothing begins any more, and a word on it would be lost: it is refused.
    """
    decision = read_decision(event.text)
    if draft.run.ending is not None:
        raise InvalidInput("help_id", f"the run of {request.help_id!r} is ending, and nothing of it begins any more")
    if not request.digest.startswith(decision.digest):
        raise InvalidInput("digest", "is of another call than the one that waits; look at it again")
    close_request(draft, request)
    said: dict[str, JsonValue] = {"help_id": request.help_id, "text": event.text, "reason": decision.reason}
    if not decision.approve:
        by = f" by {event.by}" if event.by else ""
        why = f": {decision.reason.rstrip('.')}" if decision.reason else ""
        result = made_result(call, "not_begun", f"Declined{by}{why}. It was not begun.")
        told = said | {"verdict": "declined"} | sender_of(event)
        close_call(draft, call.index, result, "help.answered", **told)
        return
    changed = _changed(call, decision.arguments, draft.bounds.edited_bytes_max)
    run = call.arguments_digest if changed is None else request_digest(call.tool, changed)
    approval = Approval(
        digest=call_digest(call.tool, run, request.help_id), by=event.by, reason=decision.reason, arguments=changed
    )
    told = said | {"index": call.index, "tool": call.tool, "verdict": "approved", "call_digest": approval.digest}
    draft.log_row("help.answered", told | ({} if changed is None else {"arguments": changed}) | sender_of(event))
    draft.set_call(call.index, asked=None, approval=approval, arguments_digest=run)
    if changed is not None:  # should its outcome be unknown, a person is asked about what ran
        bytes_max = draft.bounds.shown_bytes_max
        arguments_json, _ = shortened(call.tool, changed, bytes_max)
        draft.set_call(call.index, shown=shown_call(call.tool, arguments_json, bytes_max))


def _changed(call: CallState, arguments: dict[str, JsonValue] | None, bytes_max: int) -> dict[str, JsonValue] | None:
    """Return other arguments than those that the model gave; None where they are the same."""
    if arguments is None or request_digest(call.tool, arguments) == call.arguments_digest:
        return None
    size = len(canonical(arguments))
    if size > bytes_max:
        raise InvalidInput("arguments", f"have {size} bytes, at most {bytes_max} are taken")
    return arguments


def refuse_unapproved(draft: Draft, call: CallState) -> None:
    """Nothing of a call begins without the approval that it needs, and with none but its own."""
    if call.resolving or call.ruling is None or call.ruling.then != "ask":
        return
    digest = call_digest(call.tool, call.arguments_digest, call_key(draft, call))
    if call.approval is None or call.approval.digest != digest:
        raise InvariantBroken("P3", f"call {draft.turn.number}/{call.index} begins without an approval of its own")
