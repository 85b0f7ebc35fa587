"""The model's half of a turn: its attempts, its reply, and what follows from how it finished (design section 4.2)."""

from pydantic import JsonValue

from perdure.core import events
from perdure.core.budget import overdue, spent
from perdure.core.commands import CallModel, Wait
from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import IllegalEvent
from perdure.core.machine.admission import wind_down
from perdure.core.machine.attempts import count_crash, next_attempt, out_of_time
from perdure.core.machine.closing import close_call, complete_turn
from perdure.core.machine.doubts import take_late, watched_keys
from perdure.core.machine.draft import Draft, made_result, problem_text
from perdure.core.retry import Again, GiveUp, after_failure, another_may
from perdure.core.shortening import shown_call
from perdure.core.state import Attempts, CallState, Ending, Turn


def begin_turn(draft: Draft) -> None:
    """Open the next turn and schedule its model call."""
    number = draft.state.turns + 1
    draft.set(turns=number, turn=Turn(number=number, ops=Attempts()), crashed_this_turn=False)
    draft.set_run(turns=draft.run.turns + 1)
    call_model(draft)


def call_model(draft: Draft) -> None:
    """Schedule the attempt that the turn's `ops` name."""
    ops = flying_model(draft, draft.turn.number, None)
    command = model_command(draft)
    asked: dict[str, JsonValue] = {"model": command.model, "fallback": command.fallback} if command.model else {}
    draft.log_row("model.started", {"attempt": ops.attempt, **asked})
    draft.ask(command)


def model_command(draft: Draft) -> CallModel:
    """Return the command of the model attempt under way."""
    state, ops = draft.state, flying_model(draft, draft.turn.number, None)
    model = state.agent.models[draft.turn.fallback]
    return CallModel(
        run=draft.run.number,
        turn=draft.turn.number,
        attempt=ops.attempt,
        upto=state.entries,
        chain=state.chain,
        timeout_s=model.timeout_s,
        heartbeat_timeout_s=model.heartbeat_timeout_s,
        quarantine=state.quarantined,
        watch=watched_keys(state),
        model=model.name if state.agent.fallbacks else "",
        fallback=draft.turn.fallback,
    )


def flying_model(draft: Draft, turn: int, attempt: int | None) -> Attempts:
    """Return the model attempt under way; refuses results of any other attempt as illegal."""
    current = draft.state.turn
    if current is None or current.number != turn or current.ops is None or current.ops.status != "flying":
        raise IllegalEvent(f"no model call of turn {turn} is under way in task {draft.state.task_id}")
    if attempt is not None and current.ops.attempt != attempt:
        raise IllegalEvent(f"attempt {attempt} of turn {turn} was superseded by attempt {current.ops.attempt}")
    return current.ops


def model_replied(draft: Draft, event: events.ModelReplied) -> None:
    """P2: the recorded reply. What it asks for is begun by the loop, unless the run is ending."""
    flying_model(draft, event.turn, event.attempt)
    take_late(draft, event.late)
    keeps = event.has_text or bool(event.calls)
    entries = [draft.enter("model", event.digest)] if keeps else []
    draft.set_turn(ops=None, reply_digest=event.digest)
    draft.set_run(usage=draft.run.usage.plus(event.usage))
    draft.set(usage=draft.state.usage.plus(event.usage), unanswered=(), unanswered_before=0)
    calls: list[JsonValue] = [_told(i, call) for i, call in enumerate(event.calls)]
    told: dict[str, JsonValue] = {
        "attempt": event.attempt,
        "digest": event.digest,
        "model": event.model,
        "finish": event.finish,
        "calls": calls,
        "usage": event.usage.model_dump(mode="json"),
    }
    draft.log_row("model.answered", told | _answering(draft, event.model), entries)
    draft.set_turn(calls=tuple(_call(draft, i, summary) for i, summary in enumerate(event.calls)))
    if event.finish != "stop":
        reason = "truncated" if event.finish == "length" else "refusal"
        text = f"Not begun: the reply that asked for it was {'cut off' if reason == 'truncated' else 'a refusal'}."
        for call in draft.turn.calls:
            close_call(draft, call.index, made_result(call, "not_begun", text))
        if not event.calls:
            complete_turn(draft)
        if draft.run.ending is None:
            wind_down(draft, Ending(end="failed", reason=reason, message=f"the model finished with {event.finish!r}"))
        return
    if not event.calls:
        by_now = spent(draft.run, draft.at_ms)
        draft.set_run(answered=True, answer_entry=draft.state.entries if keeps else 0, spent=by_now)
        complete_turn(draft)
        return
    for call, summary in zip(draft.turn.calls, event.calls, strict=True):
        problem = _problem(draft, call, summary)
        if problem is not None:
            close_call(draft, call.index, made_result(call, "error", problem))


def _answering(draft: Draft, model: str) -> dict[str, JsonValue]:
    """Say which of several models answered: by its name, for what stands may be an earlier one's late reply (P2)."""
    names = [spec.name for spec in draft.state.agent.models]
    if len(names) == 1:
        return {}
    asked = draft.turn.fallback
    return {"fallback": names.index(model) if model in names and names[asked] != model else asked}


def _told(index: int, call: events.CallSummary) -> dict[str, JsonValue]:
    """Return what the row of an answer says of one call, with what the rules came to where it may not simply begin."""
    told: dict[str, JsonValue] = {"index": index, "tool": call.tool, "arguments": call.arguments_json}
    told |= {"arguments_cut": True} if call.arguments_cut else {}
    return told if call.ruling is None else told | {"ruling": call.ruling.model_dump(mode="json", exclude_none=True)}


def _call(draft: Draft, index: int, summary: events.CallSummary) -> CallState:
    spec = draft.state.agent.tool(summary.tool)
    approves = summary.ruling is not None and summary.ruling.then == "ask"
    asks = approves or (spec is not None and spec.in_doubt == "ask")
    bytes_max = draft.bounds.shown_bytes_max if approves else draft.bounds.shown_call_bytes_max
    shown = shown_call(summary.tool, summary.arguments_json, bytes_max) if asks else ""
    return CallState(
        index=index,
        call_id=summary.call_id,
        tool=summary.tool,
        arguments_digest=summary.arguments_digest,
        question=_cut_question(draft, summary.question),
        shown=shown,
        manner=summary.manner,
        ruling=summary.ruling,
    )


def _cut_question(draft: Draft, question: str | None) -> str | None:
    return None if question is None else cut_text(safe_text(question), draft.bounds.question_bytes_max, " [cut]")


def _problem(draft: Draft, call: CallState, summary: events.CallSummary) -> str | None:
    """Return why this call must not run, in words for the model (B11 to B13)."""
    calls_max = draft.bounds.calls_per_turn_max
    if call.index >= calls_max:
        return f"Not begun: one reply may ask for {calls_max} calls at most; ask again for the rest."
    if summary.problem is not None:
        return summary.problem
    if call.question is None and draft.state.agent.tool(call.tool) is None:
        names = ", ".join(sorted(tool.name for tool in draft.state.agent.tools)) or "none"
        return f"There is no tool {call.tool!r}. Tools: {names}."
    if summary.unknown:  # another worker may have it, and would begin what no rule has been asked about
        return (
            f"Not begun: the worker that took this call in has no tool {call.tool!r}, so that nobody could say "
            "whether it may run. Workers may be changing over: ask for it again if it is still needed."
        )
    if call.ruling is not None and call.ruling.then == "deny":
        return (
            f"Not begun: this call is not allowed ({call.ruling.reason or call.ruling.rule}). Do not ask for it again."
        )
    return None


def model_failed(draft: Draft, event: events.ModelFailed) -> None:
    """One attempt failed: make the next, let a fallback make it, or end the run."""
    ops = flying_model(draft, event.turn, event.attempt)
    failure = event.failure
    draft.log("model.failed", attempt=event.attempt, failure=failure.kind, message=problem_text(failure.message))
    if draft.run.ending is not None:
        draft.set_turn(ops=None)
        return
    if count_crash(draft, failure):
        draft.set_turn(ops=None)
        return
    retry = draft.state.agent.models[draft.turn.fallback].retry
    next_step = after_failure(failure, ops.spent, ops.losses, retry, event.jitter, draft.bounds)
    if another_may(failure) and _goes_on(draft, next_step, retry.delay_max_ms):
        take_over(draft, ops)
        return
    if isinstance(next_step, GiveUp):
        draft.set_turn(ops=None)
        reason, message = "store" if failure.kind in {"diverged", "fenced"} else "model", failure.message
        if reason == "model" and draft.turn.fallback:
            message = f"each of {draft.turn.fallback + 1} models failed, the last one with {message}"
        wind_down(draft, Ending(end="failed", reason=reason, message=message))
        return
    if out_of_time(draft, next_step.delay_ms):
        draft.set_turn(ops=None)
        return
    draft.set_turn(ops=next_attempt(ops, next_step))
    if next_step.delay_ms > 0:
        draft.ask(Wait(turn=event.turn, index=None, delay_ms=next_step.delay_ms))
    else:
        call_model(draft)


def _goes_on(draft: Draft, next_step: Again | GiveUp, delay_max_ms: int) -> bool:
    """Whether a fallback is left, and better asked than waited for: this model gave up, or asks for a long wait.

    Long is what the policy itself would never wait, so only a provider's Retry-After is, and what the run has no time
    left for.
    """
    agent = draft.state.agent
    if draft.turn.fallback == len(agent.fallbacks):
        return False
    if isinstance(next_step, GiveUp) or next_step.delay_ms > delay_max_ms:
        return True
    return overdue(agent.budget, draft.run, draft.at_ms + next_step.delay_ms) is not None


def take_over(draft: Draft, ops: Attempts) -> None:
    """Let the next fallback answer this turn, with attempts of its own to spend.

    Attempts go on counting over all models of a turn: a start row, a reply and a draft are told apart by them (P2), and
    an attempt of the model before it that still comes to life finds a later one and is refused.
    """
    if out_of_time(draft):
        draft.set_turn(ops=None)
        return
    draft.set_turn(fallback=draft.turn.fallback + 1, ops=Attempts(attempt=ops.attempt + 1))
    call_model(draft)
