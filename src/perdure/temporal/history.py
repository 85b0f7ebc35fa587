"""Temporal's own account of a task: every attempt that was scheduled, and what became of it.

Each attempt is scheduled as an activity of its own, so one scheduling is one row here. The history is not written by
this package's store, which makes it a second witness beside the event log.
"""

from collections.abc import AsyncIterator
from typing import Literal, TypeVar

from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure.core.content import Frozen
from perdure.core.errors import TaskNotFound, Unavailable
from perdure.temporal.contracts import ModelInput, ToolInput

AttemptOutcome = Literal["scheduled", "completed", "timed_out", "failed", "cancelled"]

InputT = TypeVar("InputT", ModelInput, ToolInput)

_OUTCOMES: dict["EventType.ValueType", AttemptOutcome] = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: "completed",
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "timed_out",
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: "failed",
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: "cancelled",
}


class AttemptRow(Frozen):
    """One scheduled attempt.

    `turn`, `index` and `attempt` come from the input of a model or tool call; other activities have neither turn nor
    index, and each of theirs is a first attempt. `key` is a tool call's idempotency key. `outcome` is `scheduled`
    while nothing is known of its end. `worker` is the identity that Temporal recorded, "" before the attempt was
    closed. Times in milliseconds since the epoch.
    """

    activity: str
    turn: int | None = None
    index: int | None = None
    attempt: int = 1
    tool: str = ""
    key: str = ""
    outcome: AttemptOutcome = "scheduled"
    worker: str = ""
    scheduled_at_ms: int
    closed_at_ms: int | None = None


async def attempts(client: Client, task_id: str) -> tuple[AttemptRow, ...]:
    """Return every attempt of the task in the order of scheduling, through all runs of its workflow.

    Raises:
        TaskNotFound: Temporal does not know the task, or has forgotten it.
        Unavailable: Temporal does not answer.
    """
    runs: list[list[HistoryEvent]] = []
    run_id: str | None = None
    while run_id != "":
        events = [event async for event in _events(client, task_id, run_id)]
        runs.insert(0, events)
        run_id = events[0].workflow_execution_started_event_attributes.continued_execution_run_id if events else ""
    rows = [await _attempts_of(client, run) for run in runs]
    return tuple(row for run_rows in rows for row in run_rows)


async def _events(client: Client, task_id: str, run_id: str | None) -> AsyncIterator[HistoryEvent]:
    handle = client.get_workflow_handle(task_id, run_id=run_id)
    try:
        async for event in handle.fetch_history_events():
            yield event
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise TaskNotFound(task_id) from error
        raise Unavailable(f"Temporal does not answer ({error.status.name.lower()}): {error.message}") from error


async def _attempts_of(client: Client, events: list[HistoryEvent]) -> list[AttemptRow]:
    rows: dict[int, AttemptRow] = {}
    for event in events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            rows[event.event_id] = await _scheduled(client, event)
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started = event.activity_task_started_event_attributes
            _change(rows, started.scheduled_event_id, worker=started.identity)
        elif event.event_type in _OUTCOMES:
            closed_at_ms = event.event_time.ToMilliseconds()
            _change(rows, _closes(event), outcome=_OUTCOMES[event.event_type], closed_at_ms=closed_at_ms)
    return list(rows.values())


def _change(rows: dict[int, AttemptRow], scheduled: int, **changes: object) -> None:
    rows[scheduled] = rows[scheduled].model_copy(update=changes)


def _closes(event: HistoryEvent) -> int:
    """Return the number of the scheduling that this event closes."""
    match event.event_type:
        case EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            return event.activity_task_completed_event_attributes.scheduled_event_id
        case EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
            return event.activity_task_timed_out_event_attributes.scheduled_event_id
        case EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
            return event.activity_task_failed_event_attributes.scheduled_event_id
        case _:
            return event.activity_task_canceled_event_attributes.scheduled_event_id


async def _scheduled(client: Client, event: HistoryEvent) -> AttemptRow:
    scheduled = event.activity_task_scheduled_event_attributes
    name, at_ms = scheduled.activity_type.name, event.event_time.ToMilliseconds()
    if name == "invoke_llm":
        model = (await _decoded(client, scheduled.input, ModelInput)).command
        return AttemptRow(activity=name, turn=model.turn, attempt=model.attempt, scheduled_at_ms=at_ms)
    if name == "invoke_tool":
        call = (await _decoded(client, scheduled.input, ToolInput)).command
        return AttemptRow(
            activity=name,
            turn=call.turn,
            index=call.index,
            attempt=call.attempt,
            tool=call.tool,
            key=call.key,
            scheduled_at_ms=at_ms,
        )
    return AttemptRow(activity=name, scheduled_at_ms=at_ms)


async def _decoded(client: Client, payloads: Payloads, kind: type[InputT]) -> InputT:
    decoded: list[InputT] = await client.data_converter.decode(payloads.payloads, [kind])
    return decoded[0]
