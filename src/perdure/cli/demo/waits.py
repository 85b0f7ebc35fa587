"""What Temporal did while a customer was waited for, read from its history when all is over (P8).

A wait begins when the task has taken in that its question is in the store: with the workflow task that the write's
completion woke. It ends with the next update that the task took, the answer. Both are facts that stand in the history,
whatever was open at any moment in between; so the task's silence is found out here and not assumed.

The workflow tasks that carried the answer belong to its arrival and not to the wait: the last one, and those before it
that timed out, because the worker that had the workflow in its memory was dead.
"""

from collections.abc import Collection, Sequence
from typing import Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from perdure.core.content import Frozen
from perdure.temporal.contracts import ModelInput, ToolInput, WriteInput

INPUTS: Final[dict[str, type[WriteInput | ModelInput | ToolInput]]] = {
    "intake": WriteInput,
    "emit_event": WriteInput,
    "persist": WriteInput,
    "invoke_llm": ModelInput,
    "invoke_tool": ToolInput,
}
"""Every activity that takes rows to the store."""

SCHEDULED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
COMPLETED = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
ENDS: Final = {
    COMPLETED: "activity_task_completed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED: "activity_task_failed_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "activity_task_timed_out_event_attributes",
    EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED: "activity_task_canceled_event_attributes",
}
TIMER_ENDS: Final = {
    EventType.EVENT_TYPE_TIMER_FIRED: "timer_fired_event_attributes",
    EventType.EVENT_TYPE_TIMER_CANCELED: "timer_canceled_event_attributes",
}
WORKFLOW_TASK: Final = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
        EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
        EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
    }
)


class Wait(Frozen):
    """One wait for an answer, and what of the task was open or begun in it."""

    began_ms: int
    ended_ms: int
    activities: int = 0
    timers: int = 0
    workflow_tasks: int = 0

    @property
    def quiet(self) -> bool:
        """Whether the task used no worker and would not have woken one."""
        return not (self.activities or self.timers or self.workflow_tasks)


async def waits(client: Client, task_id: str) -> tuple[Wait, ...]:
    """Return the waits for an answer in the task's latest history, the first one first."""
    events = [event async for event in client.get_workflow_handle(task_id).fetch_history_events()]
    asking = set[int]()
    for event in events:
        if event.event_type == SCHEDULED and await _asks(client, event):
            asking.add(event.event_id)
    return waits_in(events, asking)


def waits_in(events: Sequence[HistoryEvent], asking: Collection[int]) -> tuple[Wait, ...]:
    """Return the waits in a history; `asking` are the scheduled activities that wrote down that the task waits."""
    found: list[Wait] = []
    began: int | None = None
    written = False
    for place, event in enumerate(events):
        kind = event.event_type
        if kind == COMPLETED and event.activity_task_completed_event_attributes.scheduled_event_id in asking:
            written, began = True, None
        elif kind == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED and written:
            written, began = False, place
        elif kind == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED and began is not None:
            came = _arrival(events, place)
            if came > began:  # else the answer was there before anything was waited for
                found.append(_wait(events, began, came))
            began = None
    return tuple(found)


def _wait(events: Sequence[HistoryEvent], began: int, came: int) -> Wait:
    activities, timers = _open_at(events[: began + 1])
    workflow_tasks = 0
    for event in events[began + 1 : came]:
        activities += event.event_type == SCHEDULED
        timers += event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
        workflow_tasks += event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
    return Wait(
        began_ms=events[began].event_time.ToMilliseconds(),
        ended_ms=events[came].event_time.ToMilliseconds(),
        activities=activities,
        timers=timers,
        workflow_tasks=workflow_tasks,
    )


def _arrival(events: Sequence[HistoryEvent], answered: int) -> int:
    """Return the place at which the answer came: that of the first workflow task that was to carry it."""
    place = answered
    while place > 0 and events[place - 1].event_type in WORKFLOW_TASK:
        if (
            events[place - 1].event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
            and events[place].event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
        ):
            break  # one that was completed before carried something else
        place -= 1
    return place


def _open_at(events: Sequence[HistoryEvent]) -> tuple[int, int]:
    """Return how many activities and timers were open after these events."""
    activities, timers = set[int](), set[int]()
    for event in events:
        kind = event.event_type
        if kind == SCHEDULED:
            activities.add(event.event_id)
        elif kind in ENDS:
            activities.discard(getattr(event, ENDS[kind]).scheduled_event_id)
        elif kind == EventType.EVENT_TYPE_TIMER_STARTED:
            timers.add(event.event_id)
        elif kind in TIMER_ENDS:
            timers.discard(getattr(event, TIMER_ENDS[kind]).started_event_id)
    return len(activities), len(timers)


async def _asks(client: Client, event: HistoryEvent) -> bool:
    """Whether the activity that was scheduled writes down that the task waits for an answer."""
    scheduled = event.activity_task_scheduled_event_attributes
    shape = INPUTS.get(scheduled.activity_type.name)
    if shape is None:
        return False
    (given,) = await client.data_converter.decode(scheduled.input.payloads, [shape])
    states = [row.data for row in shape.model_validate(given).batch.rows if row.kind == "task.status"]
    return any(data.get("state") == "input_required" and data.get("reason") == "help" for data in states)
