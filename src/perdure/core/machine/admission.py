"""Messages and requests from outside: admission, moves, withdrawals, stop and cancel (rules R1 to R6, R9 to R11)."""

from pydantic import JsonValue

from perdure.core import events
from perdure.core.commands import Fence, StopFlights, StoreMessage
from perdure.core.content import Lane
from perdure.core.errors import IllegalEvent, InvalidInput, MessageConflict, MessageNotWaiting, TaskClosed
from perdure.core.machine.draft import Draft, problem_text, replaced
from perdure.core.state import Ending, Pending, TaskState


def resend(state: TaskState, message_id: str, content: str) -> int | None:
    """P1: return the number under which this very message was admitted, None when its id is new here.

    Raises `MessageConflict` when the id was used with other content.
    """
    waiting = ((p.message_id, p.digest, p.admitted) for p in state.inbox)
    for seen_id, seen_digest, number in (*state.seen, *waiting):
        if seen_id == message_id:
            if seen_digest != content:
                raise MessageConflict(message_id)
            return number
    return None


def refuse_admission(state: TaskState, count: int = 1) -> None:
    """Raise what stands against taking in `count` messages now; changes nothing."""
    if state.terminal or state.canceling:
        raise TaskClosed(state.task_id, state.status if state.terminal else "being canceled")
    pending_max = state.agent.bounds.inbox_pending_max
    if len(state.inbox) + count > pending_max:
        raise InvalidInput(
            "message",
            f"task {state.task_id} has {len(state.inbox)} messages waiting, the limit is "
            f"{pending_max}; wait for some to be answered or take some back",
        )


def created(draft: Draft, event: events.Created) -> None:
    """Log the task's first row and its first state."""
    state = draft.state
    if state.last_number > 0:
        raise IllegalEvent(f"P5: task {state.task_id} was created already")
    about: dict[str, JsonValue] = {
        "context_id": state.context_id,
        "agent": state.agent.agent_id,
        "version": state.agent.version,
    }
    draft.log_row("task.created", about | ({"earlier": list(event.earlier)} if event.earlier else {}))
    draft.log("task.status", state=state.status, reason="", message="")


def admitted(draft: Draft, event: events.Admitted) -> None:
    """R2, R3: take a message in as pending; it is promotable once stored. A resend changes nothing."""
    state = draft.state
    if resend(state, event.message_id, event.digest) is not None:
        return
    refuse_admission(state)
    lane: Lane = event.lane or ("steer" if state.run is not None else "queue")
    number = draft.log("message.admitted", message_id=event.message_id, digest=event.digest, lane=lane)
    pending = Pending(message_id=event.message_id, digest=event.digest, lane=lane, admitted=number, tail=number)
    seen = (*draft.state.seen, (event.message_id, event.digest, number))
    draft.set(inbox=(*state.inbox, pending), seen=seen[-draft.bounds.message_ids_remembered :])
    draft.ask(StoreMessage(message_id=event.message_id))


def stored(draft: Draft, event: events.Stored) -> None:
    """R3: these messages are durable and may be promoted."""
    ids = set(event.message_ids)
    draft.set(inbox=tuple(replaced(p, stored=True) if p.message_id in ids else p for p in draft.state.inbox))


def moved(draft: Draft, event: events.Moved) -> None:
    """R5: a move to steer is recorded even for a message already there, and moves its tail."""
    _pending(draft.state, event.message_id)
    number = draft.log("message.moved", message_id=event.message_id, lane="steer")
    draft.set(
        inbox=tuple(
            replaced(p, lane="steer", tail=number) if p.message_id == event.message_id else p for p in draft.state.inbox
        )
    )


def withdrawn(draft: Draft, event: events.Withdrawn) -> None:
    """R6: take one pending message back."""
    _pending(draft.state, event.message_id)
    draft.log("message.withdrawn", message_id=event.message_id)
    draft.set(inbox=tuple(p for p in draft.state.inbox if p.message_id != event.message_id))


def _pending(state: TaskState, message_id: str) -> Pending:
    if state.terminal:
        raise TaskClosed(state.task_id, state.status)
    for pending in state.inbox:
        if pending.message_id == message_id:
            return pending
    what = f"{message_id!r} does not wait in task {state.task_id}"
    for seen_id, _, number in state.seen:
        if seen_id == message_id:
            raise MessageNotWaiting(f"{what} any more: it came as event {number}, and was acted on or taken back")
    raise MessageNotWaiting(f"{what}, and is not known there; its inbox lists what waits")


def stop_requested(draft: Draft, event: events.StopRequested) -> None:
    """R11: record a stop when a run is open or about to open; with nothing to stop, record nothing."""
    state = draft.state
    if state.terminal:
        return
    if state.run is not None:
        if state.run.ending is None:
            draft.log("run.stop_requested")
            wind_down(draft, Ending(end="stopped", reason="stopped", message="stopped on request"))
        return
    if state.about_to_open:
        number = draft.log("run.stopped_before_start")
        draft.set(head=number)
        draft.set_status("input_required", "stopped", "stopped before the run began")


def cancel_requested(draft: Draft, event: events.CancelRequested) -> None:
    """A2A's cancel: stop what runs, then the one terminal state (P5)."""
    state = draft.state
    if state.terminal:
        raise TaskClosed(state.task_id, state.status)
    draft.set(canceling=True)
    if state.run is not None and state.run.ending is None:
        draft.log("run.stop_requested", cancel=True)
        wind_down(draft, Ending(end="stopped", reason="canceled", message="canceled on request"))


def wind_down(draft: Draft, ending: Ending) -> None:
    """Decide how the open run ends. Nothing begins any more; it ends when all that flies has come down (R10).

    Waits are over at once. Calls that came down without a result stay open: the next run finds out what became of
    them (R14).
    """
    draft.set_run(ending=replaced(ending, message=problem_text(ending.message)))
    turn = draft.state.turn
    if turn is not None:
        if turn.ops is not None and turn.ops.status == "waiting":
            draft.set_turn(ops=None)
        for call in turn.calls:
            if call.ops is not None and call.ops.status == "waiting":
                draft.set_call(call.index, ops=None)
    draft.ask(StopFlights())
    draft.ask(Fence(run=draft.run.number))


def store_diverged(draft: Draft, event: events.StoreDiverged) -> None:
    """Park the task for a person: store and history disagree, so that neither says what was done already (P2, P3).

    An open run ends, since nothing may be called on such ground. Messages stay pending: what is admitted meanwhile, or
    was not durable yet, runs with the next message after the two agree again. A task that has its terminal state, or
    is about to get it, keeps it.
    """
    state = draft.state
    if state.terminal or state.canceling:
        return
    if state.run is None:
        draft.set_status("input_required", "store", problem_text(event.message))
    elif state.run.ending is None:
        wind_down(draft, Ending(end="failed", reason="store", message=event.message))


def child_done(draft: Draft, event: events.ChildDone) -> None:
    """A sub-task ended; recorded for whoever reads the log, unless the task's last row is written (P5)."""
    if draft.state.terminal:
        return
    draft.log("child.done", child_id=event.child_id, status=event.status)
