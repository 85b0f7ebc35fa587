"""The tools' half of a turn: starting calls in order, their attempts, results and doubts (design sections 4.2, 6)."""

from perdure.core import events
from perdure.core.agent import ToolSpec
from perdure.core.commands import CallTool, Wait
from perdure.core.errors import IllegalEvent, InvalidInput
from perdure.core.machine.admission import wind_down
from perdure.core.machine.approving import (
    ask_for_approval,
    ask_for_approvals,
    needs_approval,
    refuse_unapproved,
    take_decision,
)
from perdure.core.machine.asking import answer_of, take_answer, take_question, waits_for_answer
from perdure.core.machine.attempts import count_crash, next_attempt, out_of_time
from perdure.core.machine.closing import close_call
from perdure.core.machine.doubts import (
    doubt_of,
    key_of,
    leave_unknown,
    lift_doubt,
    remember,
    sender_of,
    spec_of,
    take_word,
    tell_late,
    watch_closed,
)
from perdure.core.machine.draft import Draft, made_result, problem_text
from perdure.core.machine.helping import close_request, open_request, put_question
from perdure.core.questions import read
from perdure.core.retry import SPENDS, Again, GiveUp, after_failure
from perdure.core.state import Attempts, CallState, Ending, Outcome


def start_calls(draft: Draft) -> None:
    """Start every open call that may start now.

    Calls start in call order. One starts beside earlier open ones only when it and all of them allow it. A run that
    was not fed yet only finds out what became of an earlier run's calls, which begins nothing and may go on side by
    side. Starting one may end the run; nothing starts after that (P9).
    """
    if draft.run.ending is None:
        ask_for_approvals(draft)
    alone_before, any_before = False, False
    for call in draft.turn.calls:
        if draft.run.ending is not None:
            return
        if call.outcome is not None:
            continue
        spec = draft.state.agent.tool(call.tool)
        beside = not draft.run.fed or call.question is not None or (spec is not None and spec.parallel)
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
    """A task that waits for nothing but a person is INPUT_REQUIRED, otherwise it works.

    Calls that were not started wait for those that were.
    """
    waiting = [call for call in draft.turn.calls if call.outcome is None]
    if any(call.asked is not None for call in waiting) and all(call.ops is None for call in waiting):
        draft.set_status("input_required", "help", draft.state.help[0].text)
        if draft.run.idle_since_ms is None:
            draft.set_run(idle_since_ms=draft.at_ms)
    elif draft.state.status != "working":
        draft.set_status("working")


def _start(draft: Draft, call: CallState, spec: ToolSpec | None) -> None:
    if call.question is not None:
        put_question(draft, call, key_of(draft, call), call.question, manner=call.manner)
        return
    doubt = doubt_of(draft, call)
    if doubt is not None and doubt.late is not None and not call.resolving:
        tell_late(draft, call, doubt.late)
        return
    if doubt is not None and not call.resolving:
        reason = f"the same call under {doubt.key} has an unknown outcome and is not begun again"
        leave_unknown(draft, call, reason, twin_of=doubt.key)
        return
    full = len(draft.state.doubts) >= draft.bounds.doubts_max
    if full and not call.resolving and spec is not None and spec.effect != "read":
        text = f"Not begun: {len(draft.state.doubts)} outcomes are unknown in this task. Nothing new is begun in it."
        close_call(draft, call.index, made_result(call, "not_begun", text), key=key_of(draft, call))
        return
    if needs_approval(call):
        ask_for_approval(draft, call)
        return
    if not call.resolving and out_of_time(draft):
        return
    draft.set_call(call.index, ops=Attempts(attempt=call.attempts + 1))
    call_tool(draft, call.index)


def call_tool(draft: Draft, index: int) -> None:
    """Schedule the attempt that the call's `ops` name.

    A retry of a call whose twin went into doubt meanwhile only finds out what became of its own key: under that key
    it may never have begun (P4).
    """
    call = draft.turn.call(index)
    ops = _flying(draft, draft.turn.number, index, None)
    refuse_unapproved(draft, call)
    draft.set_call(index, attempts=ops.attempt, resolving=call.resolving or doubt_of(draft, call) is not None)
    draft.log("tool.started", index=index, tool=call.tool, attempt=ops.attempt, key=key_of(draft, call))
    draft.ask(tool_command(draft, index))


def tool_command(draft: Draft, index: int) -> CallTool:
    """Return the command of the call's attempt under way."""
    call = draft.turn.call(index)
    spec = spec_of(draft, call)
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
        word=call.word,
        answer=answer_of(call),
        schema_digest=spec.schema_digest,
        approval=call.approval,
    )


def _flying(draft: Draft, turn: int, index: int, attempt: int | None) -> Attempts:
    ops = draft.open_call(turn, index).ops
    if ops is None or ops.status != "flying" or (attempt is not None and ops.attempt != attempt):
        raise IllegalEvent(f"attempt {attempt} of call {turn}/{index} of task {draft.state.task_id} is not under way")
    return ops


def tool_finished(draft: Draft, event: events.ToolFinished) -> None:
    """One attempt came to something: a result, or what the ledger and the tool's check know (P3, P4)."""
    _flying(draft, event.turn, event.index, event.attempt)
    call = draft.turn.call(event.index)
    if event.outcome != "in_doubt":
        lift_doubt(draft, key_of(draft, call))
    if event.notes:
        draft.log("tool.told", index=call.index, tool=call.tool, attempt=event.attempt, notes=list(event.notes))
    if event.outcome == "asks":
        if take_question(draft, call, event):
            _find_out(draft, call)
    elif event.outcome == "result":
        close_call(draft, call.index, Outcome(digest=event.digest, status=event.status), key=key_of(draft, call))
    elif event.outcome == "not_begun":
        reason = event.reason or call.problem or "the run was stopped"
        close_call(draft, call.index, made_result(call, "not_begun", f"Not begun: {reason}."), key=key_of(draft, call))
    elif event.outcome == "in_doubt":
        leave_unknown(draft, call, event.reason or "it was begun, and no check could tell what became of it")
    else:
        _key_closed(draft, call)


def _key_closed(draft: Draft, call: CallState) -> None:
    """The call did not happen and never will under this key: it may begin anew under the next one (P3).

    As often as its tool's policy allows failures of its own; a worker's death is none, but even those end (P7).
    """
    key, spec = key_of(draft, call), spec_of(draft, call)
    draft.log("tool.key_closed", index=call.index, tool=call.tool, attempt=call.attempts, key=key)
    watch_closed(draft, key)
    may_go_on = call.failures < spec.retry.attempts_max and call.generation < draft.bounds.keys_per_call_max
    if not call.resolving and may_go_on:
        draft.set_call(call.index, generation=call.generation + 1, ops=None, asking=None)
        return
    text = "Not done: it was begun, did not happen, and will not happen any more."
    if call.word is not None and not call.word.happened:
        text = f"Not done. A person says: {call.word.text.rstrip('.')}. Ask for it again if it is still wanted."
    elif call.problem:
        text += f" The last attempt failed with: {call.problem}"
    close_call(draft, call.index, made_result(call, "not_begun", text), key=key)


def tool_failed(draft: Draft, event: events.ToolFailed) -> None:
    """One attempt failed: make the next, find out what became of it, or tell the model what can be said."""
    ops = _flying(draft, event.turn, event.index, event.attempt)
    call, failure = draft.turn.call(event.index), event.failure
    spec, problem = spec_of(draft, call), problem_text(failure.message)
    own = failure.kind in SPENDS or failure.kind == "in_doubt"
    draft.set_call(call.index, problem=problem, failures=call.failures + own)
    draft.log(
        "tool.failed",
        index=call.index,
        tool=call.tool,
        attempt=ops.attempt,
        key=key_of(draft, call),
        failure=failure.kind,
        message=problem,
    )
    if draft.run.ending is not None or count_crash(draft, failure):
        draft.set_call(call.index, ops=None)
        return
    if failure.kind in {"diverged", "fenced"}:
        draft.set_call(call.index, ops=None)
        wind_down(draft, Ending(end="failed", reason="store", message=failure.message))
        return
    match after_failure(failure, ops.spent, ops.losses, spec.retry, event.jitter, draft.bounds):
        case GiveUp():
            _give_up(draft, draft.turn.call(call.index), spec, ops)
        case again:
            _try_again(draft, draft.turn.call(call.index), ops, again)


def _give_up(draft: Draft, call: CallState, spec: ToolSpec, ops: Attempts) -> None:
    """No attempt is left. A reading call failed; any other may have happened, and is looked up once more (P4)."""
    if spec.effect == "read":
        text = f"Failed after {ops.attempt} attempts: {call.problem}"
        close_call(draft, call.index, made_result(call, "error", text), key=key_of(draft, call))
    elif call.resolving:
        leave_unknown(draft, call, f"{ops.attempt} attempts failed")
    else:
        _find_out(draft, call)


def _find_out(draft: Draft, call: CallState) -> None:
    """Schedule an attempt that begins nothing, and only finds out what became of the call."""
    draft.set_call(call.index, resolving=True, ops=Attempts(attempt=call.attempts + 1))
    call_tool(draft, call.index)


def _try_again(draft: Draft, call: CallState, ops: Attempts, again: Again) -> None:
    if not call.resolving and out_of_time(draft, again.delay_ms):
        draft.set_call(call.index, ops=None)
        return
    draft.set_call(call.index, ops=next_attempt(ops, again))
    if again.delay_ms > 0:
        draft.ask(Wait(turn=draft.turn.number, index=call.index, delay_ms=again.delay_ms))
    else:
        call_tool(draft, call.index)


def answered(draft: Draft, event: events.Answered) -> None:
    """A person's answer becomes the result of the call that asked, settles one in doubt, or lets one begin."""
    request = open_request(draft.state, event.help_id)
    if not event.text.strip():
        raise InvalidInput("text", "an answer must not be empty")
    bytes_max = draft.bounds.answer_bytes_max
    if len(event.text.encode()) > bytes_max:
        raise InvalidInput("text", f"an answer may have {bytes_max} bytes at most; send files by message")
    call = draft.open_call(request.turn, request.index)
    if request.kind == "approval":
        take_decision(draft, call, request, event)
        remember(draft, event)
        return
    if call.question is not None:  # the model asked, by the call itself
        text = read(event.text, request.choices, request.form)
        close_request(draft, request)
        result = made_result(call, "ok", text, bytes_max)
        named = sender_of(event)
        close_call(draft, call.index, result, "help.answered", help_id=event.help_id, text=text, **named)
        remember(draft, event)
        return
    (take_answer if waits_for_answer(call) else take_word)(draft, call, event)
    close_request(draft, request)
    remember(draft, event)
    if draft.run.ending is None:
        draft.set_call(call.index, ops=Attempts(attempt=call.attempts + 1))
        call_tool(draft, call.index)


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
            draft.set_call(call.index, resolving=True, ops=None, asking=None)
        elif call.question is not None:
            close_call(draft, call.index, made_result(call, "not_begun", "Not answered: the run was stopped."))
        else:
            close_call(draft, call.index, made_result(call, "not_begun", "Not begun: the run was stopped."))
