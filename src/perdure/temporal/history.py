"""What Temporal's own history says of a task's attempts: the second witness beside the event log.

A task is a chain of workflow runs, each continued as new by the one before; all that Temporal still keeps are read,
the oldest first. Every attempt is an activity of its own (the server retries none), so one row is one scheduled
activity. History lacks the start of an activity that is still open; the server's description of the workflow fills
that in.
"""

from typing import Final

from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import ActivityTaskScheduledEventAttributes, HistoryEvent
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from perdure.core.attempts import AttemptOutcome, AttemptRow
from perdure.core.content import Frozen
from perdure.core.errors import TaskNotFound, Unavailable
from perdure.core.failure import Failure as Classified
from perdure.temporal.contracts import ModelInput, ToolInput
from perdure.temporal.failures import FAILURE


class TaskHistory(Frozen):
    """A task's attempts in the order in which they were scheduled, and its open timers as (set, fires) in ms.

    `diverged` says how store and history disagree, when the latest attempt that came to an end was refused for that.
    """

    attempts: tuple[AttemptRow, ...]
    timers: tuple[tuple[int, int], ...] = ()
    runs: int
    events: int
    diverged: str = ""


async def attempts(client: Client, task_id: str) -> tuple[AttemptRow, ...]:
    """Return every attempt of every activity of a task, from Temporal's history of all its runs.

    Raises:
        TaskNotFound: Temporal knows no such task (any more).
        Unavailable: Temporal does not answer.
    """
    return (await read_history(client, task_id)).attempts


async def read_history(client: Client, task_id: str) -> TaskHistory:
    """Read the history of all runs of a task; raises as `attempts` does."""
    try:
        newest = await client.get_workflow_handle(task_id).describe()
        chain = await _chain(client, task_id, newest.run_id or "")
        found: list[AttemptRow] = []
        timers: dict[int, tuple[int, int]] = {}
        diverged = ""
        for run_id, events in chain:
            reading = _Reading(client)
            for event in events:
                await reading.take(event)
            if run_id == newest.run_id and newest.status == WorkflowExecutionStatus.RUNNING:
                await _add_pending(client, task_id, run_id, reading)
                timers = reading.timers
            else:
                reading.abandon(events[-1].event_time.ToMilliseconds())
            found.extend(reading.rows.values())
            diverged = reading.diverged
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise TaskNotFound(task_id) from error
        raise Unavailable(f"Temporal does not answer ({error.status.name.lower()}): {error.message}") from error
    count = sum(len(events) for _, events in chain)
    return TaskHistory(
        attempts=tuple(found), timers=tuple(timers.values()), runs=len(chain), events=count, diverged=diverged
    )


async def _chain(client: Client, task_id: str, run_id: str) -> list[tuple[str, list[HistoryEvent]]]:
    """Return the runs up to this one with their events, the oldest first."""
    chain = [(run_id, await _events(client, task_id, run_id))]
    while run_id := chain[0][1][0].workflow_execution_started_event_attributes.continued_execution_run_id:
        try:
            chain.insert(0, (run_id, await _events(client, task_id, run_id)))
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            break  # an old run whose retention is over; the task itself may still be open
    return chain


async def _events(client: Client, task_id: str, run_id: str) -> list[HistoryEvent]:
    return [event async for event in client.get_workflow_handle(task_id, run_id=run_id).fetch_history_events()]


_ENDS: Final[dict[EventType.ValueType, tuple[str, AttemptOutcome]]] = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED: ("activity_task_completed_event_attributes", "completed"),
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: ("activity_task_failed_event_attributes", "failed"),
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: ("activity_task_timed_out_event_attributes", "timed_out"),
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: ("activity_task_canceled_event_attributes", "cancelled"),
}


class _Reading:
    """One run's rows so far, by the number of the event that scheduled them, and its open timers."""

    def __init__(self, client: Client) -> None:
        self.rows: dict[int, AttemptRow] = {}
        self.activity_ids: dict[str, int] = {}
        self.timers: dict[int, tuple[int, int]] = {}
        self.diverged = ""
        self._client = client

    async def take(self, event: HistoryEvent) -> None:
        at_ms = event.event_time.ToMilliseconds()
        kind = event.event_type
        if kind == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            scheduled = event.activity_task_scheduled_event_attributes
            self.activity_ids[scheduled.activity_id] = event.event_id
            self.rows[event.event_id] = await self._scheduled(scheduled, at_ms)
        elif kind == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            started = event.activity_task_started_event_attributes
            self._change(started.scheduled_event_id, worker=started.identity)
        elif kind in _ENDS:
            name, outcome = _ENDS[kind]
            ended = getattr(event, name)
            problem = "" if outcome in {"completed", "cancelled"} else _problem(ended.failure)
            if outcome == "completed":
                self.diverged = ""
            elif outcome == "failed":
                classified = await self._classified(ended.failure)
                if classified is not None and classified.kind == "diverged":
                    self.diverged = classified.message
            self._change(ended.scheduled_event_id, ended_at_ms=at_ms, outcome=outcome, problem=problem, until_ms=None)
        elif kind == EventType.EVENT_TYPE_TIMER_STARTED:
            timer = event.timer_started_event_attributes
            self.timers[event.event_id] = (at_ms, at_ms + timer.start_to_fire_timeout.ToMilliseconds())
        elif kind == EventType.EVENT_TYPE_TIMER_FIRED:
            self.timers.pop(event.timer_fired_event_attributes.started_event_id, None)
        elif kind == EventType.EVENT_TYPE_TIMER_CANCELED:
            self.timers.pop(event.timer_canceled_event_attributes.started_event_id, None)

    def abandon(self, at_ms: int) -> None:
        """Close what was open when the run closed: nobody begins it any more, and no result of it is taken."""
        changes = {"outcome": "cancelled", "ended_at_ms": at_ms, "problem": "its history ended first", "until_ms": None}
        for event_id, row in self.rows.items():
            if row.outcome == "open":
                self.rows[event_id] = row.model_copy(update=changes)

    async def _classified(self, failure: Failure) -> Classified | None:
        """Return a failure as it was classified at an activity's edge; None for what came from Temporal itself."""
        info = failure.application_failure_info
        if info.type != FAILURE or not info.details.payloads:
            return None
        (detail,) = await self._client.data_converter.decode(info.details.payloads[:1], [Classified])
        return Classified.model_validate(detail)

    def _change(self, scheduled_event_id: int, **changes: object) -> None:
        self.rows[scheduled_event_id] = self.rows[scheduled_event_id].model_copy(update=changes)

    async def _scheduled(self, scheduled: ActivityTaskScheduledEventAttributes, at_ms: int) -> AttemptRow:
        """Say of which call this is which attempt; both stand in the input, never in Temporal's own count."""
        row = AttemptRow(
            activity=scheduled.activity_type.name,
            scheduled_at_ms=at_ms,
            until_ms=at_ms + scheduled.start_to_close_timeout.ToMilliseconds(),
        )
        if row.activity == "invoke_llm":
            (model,) = await self._client.data_converter.decode(scheduled.input.payloads, [ModelInput])
            named = {name: getattr(model.command, name) for name in ("turn", "attempt", "model")}
        elif row.activity == "invoke_tool":
            (tool,) = await self._client.data_converter.decode(scheduled.input.payloads, [ToolInput])
            named = {name: getattr(tool.command, name) for name in ("turn", "index", "tool", "key", "attempt")}
        else:
            return row
        return row.model_copy(update=named)


async def _add_pending(client: Client, task_id: str, run_id: str, reading: _Reading) -> None:
    """Add the worker of each open attempt; an attempt is pending until it is closed, begun or not."""
    if not any(row.outcome == "open" for row in reading.rows.values()):
        return
    described = await client.get_workflow_handle(task_id, run_id=run_id).describe()
    pending: list[PendingActivityInfo] = list(described.raw_description.pending_activities)
    for info in pending:
        event_id = reading.activity_ids.get(info.activity_id)
        if event_id is None or info.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED:
            continue  # scheduled since the history was read, or not begun by any worker
        if reading.rows[event_id].outcome == "open":
            worker = {"worker": info.last_worker_identity}
            reading.rows[event_id] = reading.rows[event_id].model_copy(update=worker)


def _problem(failure: Failure) -> str:
    cause = failure
    while cause.HasField("cause"):
        cause = cause.cause
    return cause.message
