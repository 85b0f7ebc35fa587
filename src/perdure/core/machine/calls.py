"""The tools' half of a turn: starting calls in order, their attempts, results and doubts (design sections 4.2, 6)."""

from perdure.core import events, limits
from perdure.core.agent import ToolSpec
from perdure.core.commands import CallTool, Wait
from perdure.core.effects import effect_key
from perdure.core.errors import IllegalEvent, InvalidInput, InvariantBroken
from perdure.core.machine.admission import wind_down
from perdure.core.machine.attempts import count_crash, next_attempt
from perdure.core.machine.closing import close_call, settle_turn
from perdure.core.machine.draft import Draft, made_result
from perdure.core.retry import GiveUp, after_failure
from perdure.core.state import Attempts, CallState, Doubt, Ending, HelpRequest, Outcome


def key_of(draft: Draft, call: CallState) -> str:
    """Return the call's present idempotency key."""
    return effect_key(draft.state.task_id, draft.turn.number, call.index, call.generation)


def start_calls(draft: Draft) -> None:
    """Start every open call that may start now.

    Calls start in call order. One starts beside earlier open ones only when it and all of them allow it; finding
    out what became of a cut run's call begins nothing and is always allowed beside others.
    """
    alone_before, any_before = False, False
    for call in draft.turn.calls:
        if call.outcome is not None:
            continue
        spec = draft.state.agent.tool(call.tool)
        beside = call.resolving or call.question is not None or (spec is not None and spec.parallel)
        if call.ops is None and call.asked is None:
            if any_before and (alone_before or not beside):
                break
            _start(draft, call, spec)
            if draft.turn.call(call.index).outcome is not None:
                continue
        any_before = True
        alone_before = alone_before or not beside
    _show_waiting(draft)


def _show_waiting(draft: Draft) -> None:
    """A task whose open calls all wait for a person is INPUT_REQUIRED, otherwise it works."""
    waiting = [call for call in draft.turn.calls if call.outcome is None]
    if waiting and all(call.asked is not None for call in waiting):
        draft.set_status("input_required", "help", draft.state.help[0].text)
    elif draft.state.status != "working":
        draft.set_status("working")


def _start(draft: Draft, call: CallState, spec: ToolSpec | None) -> None:
    if call.question is not None:
        help_id = key_of(draft, call)
        request = HelpRequest(help_id=help_id, text=call.question, turn=draft.turn.number, index=call.index)
        draft.set(help=(*draft.state.help, request))
        draft.set_call(call.index, asked=help_id)
        draft.log("help.requested", help_id=help_id, index=call.index, text=call.question)
        return
    doubt = _doubted(draft, call)
    if doubt is not None and not call.resolving and call.generation == 1:
        _leave_unknown(draft, call, f"the same call under {doubt.key} has an unknown outcome and is not begun again")
        return
    draft.set_call(call.index, ops=Attempts(attempt=call.attempts + 1))
    call_tool(draft, call.index)


def call_tool(draft: Draft, index: int) -> None:
    """Schedule the attempt that the call's `ops` name."""
    call = draft.turn.call(index)
    ops = _flying(draft, draft.turn.number, index, None)
    draft.set_call(index, attempts=ops.attempt)
    draft.log("tool.started", index=index, tool=call.tool, attempt=ops.attempt, key=key_of(draft, call))
    draft.ask(tool_command(draft, index))


def tool_command(draft: Draft, index: int) -> CallTool:
    """Return the command of the call's attempt under way."""
    call, spec = draft.turn.call(index), draft.state.agent.tool(draft.turn.call(index).tool)
    if spec is None:
        raise InvariantBroken("R14", f"a call of the unknown tool {call.tool!r} was to be started")
    return CallTool(
        run=draft.run.number,
        turn=draft.turn.number,
        index=index,
        attempt=_flying(draft, draft.turn.number, index, None).attempt,
        key=key_of(draft, call),
        tool=call.tool,
        effect=spec.effect,
        call_id=call.call_id,
        arguments_digest=call.arguments_digest,
        reply_digest=draft.turn.reply_digest,
        timeout_s=spec.timeout_s,
        heartbeat_timeout_s=spec.heartbeat_timeout_s,
        resolve_only=call.resolving,
        quarantine=draft.state.quarantined,
    )


def _flying(draft: Draft, turn: int, index: int, attempt: int | None) -> Attempts:
    ops = draft.open_call(turn, index).ops
    if ops is None or ops.status != "flying" or (attempt is not None and ops.attempt != attempt):
        raise IllegalEvent(f"attempt {attempt} of call {turn}/{index} of task {draft.state.task_id} is not under way")
    return ops


def tool_finished(draft: Draft, event: events.ToolFinished) -> None:
    """One attempt came to something: a result, or what the ledger and the tool's check know (P3, P4)."""
    ops = _flying(draft, event.turn, event.index, event.attempt)
    call = draft.turn.call(event.index)
    key = key_of(draft, call)
    if event.outcome == "result":
        close_call(draft, call.index, Outcome(digest=event.digest, status=event.status), key=key)
    elif event.outcome == "not_begun":
        close_call(draft, call.index, made_result(call, "not_begun", "Not begun: the run was stopped."), key=key)
    elif event.outcome == "in_doubt":
        _leave_unknown(draft, call, event.reason or "it was begun, and no check could tell what became of it")
    else:
        draft.log("tool.key_closed", index=call.index, tool=call.tool, attempt=ops.attempt, key=key)
        draft.set_call(call.index, generation=call.generation + 1, ops=None)
        if call.resolving:
            text = "Not done: it was begun when the run was stopped, and did not happen."
            close_call(draft, call.index, made_result(call, "not_begun", text), key=key)
    if all(c.outcome is not None for c in draft.turn.calls):
        settle_turn(draft)


def tool_failed(draft: Draft, event: events.ToolFailed) -> None:
    """One attempt failed: make the next, or tell the model what can be said of the outcome."""
    ops = _flying(draft, event.turn, event.index, event.attempt)
    call, failure = draft.turn.call(event.index), event.failure
    spec = draft.state.agent.tool(call.tool)
    if spec is None:
        raise InvariantBroken("R14", f"an attempt at the unknown tool {call.tool!r} failed")
    draft.log(
        "tool.failed",
        index=call.index,
        tool=call.tool,
        attempt=ops.attempt,
        key=key_of(draft, call),
        failure=failure.kind,
        message=failure.message,
    )
    if draft.run.ending is not None or count_crash(draft, failure):
        draft.set_call(call.index, ops=None)
        return
    next_step = after_failure(failure, ops.spent, ops.losses, spec.retry, event.jitter)
    if isinstance(next_step, GiveUp) and failure.kind in {"diverged", "fenced"}:
        draft.set_call(call.index, ops=None)
        wind_down(draft, Ending(end="failed", reason="store", message=failure.message))
    elif isinstance(next_step, GiveUp) and spec.effect == "read":
        text = f"Failed after {ops.attempt} attempts: {failure.message}"
        close_call(draft, call.index, made_result(call, "error", text), key=key_of(draft, call))
        if all(c.outcome is not None for c in draft.turn.calls):
            settle_turn(draft)
    elif isinstance(next_step, GiveUp):
        _leave_unknown(draft, call, f"{ops.attempt} attempts failed, the last one with: {failure.message}")
    else:
        draft.set_call(call.index, ops=next_attempt(ops, next_step.spends, next_step.delay_ms))
        if next_step.delay_ms > 0:
            draft.ask(Wait(turn=event.turn, index=call.index, delay_ms=next_step.delay_ms))
        else:
            call_tool(draft, call.index)


def _doubted(draft: Draft, call: CallState) -> Doubt | None:
    for doubt in draft.state.doubts:
        if (doubt.tool, doubt.arguments_digest) == (call.tool, call.arguments_digest):
            return doubt
    return None


def _leave_unknown(draft: Draft, call: CallState, reason: str) -> None:
    """P4: say honestly that the outcome is unknown, and remember the call so that it is not begun under a new key."""
    key = key_of(draft, call)
    if _doubted(draft, call) is None:
        doubt = Doubt(key=key, tool=call.tool, arguments_digest=call.arguments_digest)
        draft.set(doubts=(*draft.state.doubts, doubt))
    draft.log("tool.in_doubt", index=call.index, tool=call.tool, attempt=call.attempts, key=key, reason=reason)
    text = f"Outcome unknown: {reason}. It may have happened. Do not assume either, and do not ask for it again."
    close_call(draft, call.index, made_result(call, "unknown", text), key=key)
    if all(c.outcome is not None for c in draft.turn.calls):
        settle_turn(draft)
    if len(draft.state.doubts) >= limits.DOUBTS_MAX and draft.run.ending is None:
        wind_down(draft, Ending(end="failed", reason="tool", message="too many outcomes are unknown"))


def answered(draft: Draft, event: events.Answered) -> None:
    """A person's answer becomes the result of the call that asked."""
    request = next((h for h in draft.state.help if h.help_id == event.help_id), None)
    if request is None:
        open_ids = ", ".join(h.help_id for h in draft.state.help) or "none"
        raise InvalidInput("help_id", f"{event.help_id!r} is not an open question of this task; open ones: {open_ids}")
    if not event.text.strip():
        raise InvalidInput("text", "an answer must not be empty")
    if len(event.text.encode()) > limits.ANSWER_BYTES_MAX:
        raise InvalidInput("text", f"an answer may have {limits.ANSWER_BYTES_MAX} bytes at most; send files by message")
    call = draft.open_call(request.turn, request.index)
    draft.set(help=tuple(h for h in draft.state.help if h.help_id != event.help_id))
    result = made_result(call, "ok", event.text, limits.ANSWER_BYTES_MAX)
    close_call(draft, call.index, result, "help.answered", help_id=event.help_id, text=event.text)
    if all(c.outcome is not None for c in draft.turn.calls):
        settle_turn(draft)


def resume_calls(draft: Draft) -> None:
    """R14: a new run finds calls that an unanswered one left open: each gets its one result before anything else.

    One that was begun is looked up in the ledger; one that never was, or that waited for a person, did not happen.
    """
    turn = draft.state.turn
    if turn is None:
        return
    for call in turn.calls:
        if call.outcome is not None:
            continue
        if call.attempts > 0:
            draft.set_call(call.index, resolving=True, ops=None)
        elif call.question is not None:
            close_call(draft, call.index, made_result(call, "not_begun", "Not answered: the run was stopped."))
        else:
            close_call(draft, call.index, made_result(call, "not_begun", "Not begun: the run was stopped."))
