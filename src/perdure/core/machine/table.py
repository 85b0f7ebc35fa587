"""The transition table: which event is taken in which mode, and by what. Everything else is illegal.

`step` is the only way from one state to the next. It is total over the table, pure, and all or nothing: what it
refuses changes nothing.
"""

from collections.abc import Callable
from typing import Any

from perdure.core import events
from perdure.core.agent import AgentSpec
from perdure.core.commands import Command, Fence, Persist, StoreMessage, Wait
from perdure.core.errors import IllegalEvent, InvalidInput
from perdure.core.machine import admission, calls, helping, turn
from perdure.core.machine.draft import Draft, replaced
from perdure.core.machine.run import advance
from perdure.core.state import Mode, TaskState

Handler = Callable[[Draft, Any], None]

ANY: frozenset[Mode] = frozenset({"idle", "between", "model", "calls", "ending", "terminal"})


def backoff_over(draft: Draft, event: events.BackoffOver) -> None:
    """A wait is over: schedule the attempt that waited.

    A run may be told to end in the very moment in which a wait of it is over. Then nothing waits any more, and its
    end changes nothing.
    """
    state = draft.state
    turn_now = state.turn
    if state.run is None or turn_now is None or turn_now.number != event.turn:
        return
    if event.index is None:
        if turn_now.ops is not None and turn_now.ops.status == "waiting":
            draft.set_turn(ops=replaced(turn_now.ops, status="flying"))
            turn.call_model(draft)
        return
    if event.index < len(turn_now.calls):
        ops = turn_now.call(event.index).ops
        if ops is not None and ops.status == "waiting":
            draft.set_call(event.index, ops=replaced(ops, status="flying"))
            calls.call_tool(draft, event.index)


TABLE: dict[type[events.Event], tuple[Handler, frozenset[Mode]]] = {
    events.Created: (admission.created, frozenset({"idle"})),
    # Handlers below refuse with errors for the sender where a mode forbids them, so the table lets them through.
    events.Admitted: (admission.admitted, ANY),
    events.Moved: (admission.moved, ANY),
    events.Withdrawn: (admission.withdrawn, ANY),
    events.StopRequested: (admission.stop_requested, ANY),
    events.CancelRequested: (admission.cancel_requested, ANY),
    events.Answered: (calls.answered, ANY),
    events.HelpExpired: (helping.expired, ANY),
    # A store write may return, a sub-task end and a wait be over after the task ended; none changes anything then.
    events.Stored: (admission.stored, ANY),
    events.ChildDone: (admission.child_done, ANY),
    events.BackoffOver: (backoff_over, ANY),
    events.StoreDiverged: (admission.store_diverged, ANY),
    # Results answer one command each and are illegal where no attempt is under way.
    events.ModelReplied: (turn.model_replied, frozenset({"model", "ending"})),
    events.ModelFailed: (turn.model_failed, frozenset({"model", "ending"})),
    events.ToolFinished: (calls.tool_finished, frozenset({"calls", "ending"})),
    events.ToolFailed: (calls.tool_failed, frozenset({"calls", "ending"})),
}


def step(state: TaskState, event: events.Event) -> tuple[TaskState, tuple[Command, ...]]:
    """Apply one event: return the next state and the commands it asks for, in order.

    Raises `IllegalEvent` when the event has no place in this state (a result of a superseded attempt, say), and
    `InvalidInput` errors for what a person asked wrongly; in both cases the given state still stands.
    """
    draft = Draft(state, event.at_ms)
    handler, modes = TABLE[type(event)]
    if state.mode not in modes:
        raise IllegalEvent(f"{type(event).__name__} has no place in a task that is {state.mode}")
    handler(draft, event)
    advance(draft)
    return draft.state, tuple(draft.commands)


def new_task(task_id: str, context_id: str, agent: AgentSpec) -> TaskState:
    """Return the state of a task that has seen nothing yet; its first event is `Created`.

    Raises `InvalidInput` for an id that cannot begin idempotency keys: with a `/` in it, two tasks could share one.
    """
    if not task_id or "/" in task_id:
        raise InvalidInput("task_id", f"{task_id!r} is empty or contains a '/'; use another id")
    return TaskState(task_id=task_id, context_id=context_id, agent=agent)


def outstanding(state: TaskState) -> tuple[Command, ...]:
    """Return the commands that a state still waits for: what a continued workflow must do first.

    Waits start anew in full length: how long they had waited is not carried, and a provider's floor must hold. A run
    that is winding down waits for answers of its attempts; asked for again, they are refused by its fence, which is
    their answer (P9).
    """
    draft = Draft(state, at_ms=0)
    commands: list[Command] = [Fence(run=state.runs)] if state.mode == "ending" else []
    commands += [StoreMessage(message_id=p.message_id) for p in state.inbox if not p.stored]
    if state.terminal:
        return (*commands, Persist(terminal=True))
    current = state.turn
    if state.run is None or current is None:
        return tuple(commands)
    if current.ops is not None:
        if current.ops.status == "flying":
            commands.append(turn.model_command(draft))
        else:
            commands.append(Wait(turn=current.number, index=None, delay_ms=current.ops.delay_ms))
    for call in current.calls:
        if call.ops is None:
            continue
        if call.ops.status == "flying":
            commands.append(calls.tool_command(draft, call.index))
        else:
            commands.append(Wait(turn=current.number, index=call.index, delay_ms=call.ops.delay_ms))
    if state.run.ending is None:
        commands += [helping.expiry_command(h, h.expires_at_ms) for h in state.help if h.expires_at_ms is not None]
    return tuple(commands)
