"""The loop of a run: from positions to the next thing to do, until something must be waited for (R4, R7 to R13)."""

from pydantic import JsonValue

from perdure.core.budget import exceeded
from perdure.core.commands import Persist
from perdure.core.errors import InvariantBroken
from perdure.core.log import EntryRef
from perdure.core.machine.admission import wind_down
from perdure.core.machine.calls import resume_calls, start_calls
from perdure.core.machine.draft import Draft
from perdure.core.machine.turn import begin_turn
from perdure.core.state import End, Ending, Pending, Run, TaskState, TaskStatus

STEPS_MAX = 64
"""Moves within one transition; far more than any state allows, so that a defect is an error and not a hang."""


def advance(draft: Draft) -> None:
    """Do all that can be done now."""
    for _ in range(STEPS_MAX):
        if not _move(draft):
            return
    raise InvariantBroken("P7", f"task {draft.state.task_id} makes moves without end")


def _move(draft: Draft) -> bool:
    """Make one move; return whether another may follow at once."""
    state = draft.state
    match state.mode:
        case "terminal" | "model":
            return False
        case "idle":
            return _from_idle(draft)
        case "ending":
            return _land(draft)
        case "calls":
            before = draft.state
            start_calls(draft)
            return draft.state.mode != before.mode
        case "between":
            return _between(draft)


def _from_idle(draft: Draft) -> bool:
    """R7: open a run when positions say so, never because of a stored flag."""
    if draft.state.canceling:
        _finish(draft, "canceled", "canceled")
        draft.ask(Persist(terminal=True))
        return False
    if not draft.state.has_work:
        return False
    number = draft.state.runs + 1
    draft.set(runs=number, run=Run(number=number, started_at_ms=draft.at_ms))
    draft.log("run.started", cause="message")
    draft.set_status("working")
    resume_calls(draft)
    return True


def _land(draft: Draft) -> bool:
    """R10: an ending run ends once nothing of it flies any more."""
    ending = draft.run.ending
    if ending is None or flying(draft.state):
        return False
    _end(draft, ending.end, ending.reason, ending.message)
    return True


def flying(state: TaskState) -> bool:
    """Whether an attempt of the current turn is under way."""
    turn = state.turn
    if turn is None:
        return False
    return turn.ops is not None or any(call.ops is not None for call in turn.calls)


def _between(draft: Draft) -> bool:
    """R4: feed the run, end it, or open its next turn."""
    draft.set_status("working")
    run, joining = draft.run, _joining(draft.state)
    if not joining and (run.answered or not run.fed):
        if draft.state.inbox:
            return False  # admitted, but not durable yet (R3): `Stored` goes on from here
        if run.answered:
            _end(draft, "answered", "", "")
        else:
            _end(draft, "stopped", "withdrawn", "its messages were taken back before it began")
        return True
    # Before any promotion: what no model call will see must stay pending, to park or to be listed (P1).
    over = exceeded(draft.state.agent.budget, run, draft.at_ms)
    if over is not None:
        wind_down(draft, Ending(end="failed", reason="budget", message=over))
        return True
    for pending in joining:
        _promote(draft, pending)
    begin_turn(draft)
    return False


def _joining(state: TaskState) -> list[Pending]:
    """R4: what joins the next turn: all steers, else one queued message once what came before is answered."""
    steers = _steers(state)
    if steers or (state.run is not None and state.run.fed and not state.run.answered):
        return steers
    queued = next((p for p in state.inbox if p.lane == "queue"), None)
    return [queued] if queued is not None and queued.stored else []


def _steers(state: TaskState) -> list[Pending]:
    """R4: all steers in the order in which they came to the lane, up to the first that is not durable yet."""
    lane = sorted((p for p in state.inbox if p.lane == "steer"), key=lambda p: p.tail)
    ready = []
    for pending in lane:
        if not pending.stored:
            break
        ready.append(pending)
    return ready


def _promote(draft: Draft, pending: Pending) -> None:
    """R3: promotion and the transcript entry are one step."""
    draft.set(inbox=tuple(p for p in draft.state.inbox if p.message_id != pending.message_id))
    unanswered = (*draft.state.unanswered, pending.message_id)
    dropped = max(0, len(unanswered) - draft.bounds.message_ids_remembered)
    draft.set(unanswered=unanswered[dropped:], unanswered_before=draft.state.unanswered_before + dropped)
    draft.set_run(fed=True, answered=False)
    entry: EntryRef = draft.enter("user", pending.digest)
    draft.log("message.promoted", entries=[entry], message_id=pending.message_id, lane=pending.lane)


def _end(draft: Draft, end: End, reason: str, message: str) -> None:
    """R8, R10: the run's one end; without an answer it moves the head (R1, R9)."""
    for request in draft.state.help:
        draft.log("help.closed", help_id=request.help_id, reason=reason)
    draft.set(help=())
    answer = draft.run.answer_entry if end == "answered" else 0
    number = draft.log("run.ended", end=end, reason=reason, message=message, answer_entry=answer)
    _rest_calls(draft)
    draft.set(run=None)
    if end != "answered":
        draft.set(head=number)
    _set_status_after(draft, end, reason, message)
    draft.ask(Persist(terminal=draft.state.terminal))


def _rest_calls(draft: Draft) -> None:
    """Keep a turn whose calls are still open for the next run to resolve (R14)."""
    turn = draft.state.turn
    if turn is None:
        return
    for call in turn.calls:
        if call.asked is not None:
            draft.set_call(call.index, asked=None)
    if all(call.outcome is not None for call in turn.calls):
        draft.set(turn=None)


def _set_status_after(draft: Draft, end: End, reason: str, message: str) -> None:
    """R13: where the task stands after the run's end.

    One whose store and history disagree waits for a person in any case: it was not the task that failed.
    """
    agent = draft.state.agent
    if draft.state.canceling:
        _finish(draft, "canceled", "canceled")
    elif end != "answered" and agent.on_unanswered == "fail" and reason != "store":
        _finish(draft, "failed", reason, message)
    elif end != "answered":
        draft.set_status("input_required", reason, message)
    elif agent.after_answer == "completed":
        _finish(draft, "completed", "")
    else:
        draft.set_status("input_required", "answered")


def _finish(draft: Draft, status: TaskStatus, reason: str, message: str = "") -> None:
    """P1, P5: the terminal state, with the messages that were not acted on and the keys left open.

    A message is acted on once the model replied: one that a call took along which never came back was not. Of very many
    the latest are named, and the others, which were promoted before these, are counted.
    """
    turn = draft.state.turn
    open_calls = [f"{turn.number}/{c.index}" for c in turn.calls if c.outcome is None] if turn is not None else []
    unprocessed = [*draft.state.unanswered, *(pending.message_id for pending in draft.state.inbox)]
    left: dict[str, JsonValue] = {"unprocessed": list(unprocessed), "open_calls": list(open_calls)}
    before = draft.state.unanswered_before
    left |= {"unprocessed_before": before} if before else {}
    draft.set_status(status, reason, message, left)
