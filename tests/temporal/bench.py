"""What the end-to-end tests share: an application over one real Temporal and a store of its own, and what must hold.

`Bench.sound` is asked at the end of nearly every test: whatever was done to a task, its log is gapless, each run has
one end, each call one result, every attempt was the workflow's own, and its history replays with the same arguments.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Worker

from perdure import Agent, App, Settings, Task, TaskEvent, open_app
from perdure.app.messages import new_id
from perdure.core import limits
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, Message, ModelEntry, TextPart, ToolEntry
from perdure.core.log import LogEvent
from perdure.core.ports import Store, StoredEvent, ToolPort
from perdure.core.sources import ToolSource
from perdure.core.state import TERMINAL
from perdure.store import open_store
from perdure.temporal.activities import TaskActivities
from perdure.temporal.contracts import InboxItem, InboxReply, InboxRequest, TaskStart
from perdure.temporal.sandbox import workflow_runner
from perdure.temporal.settings import RemoteSettings
from perdure.temporal.tasks import TaskClient
from perdure.temporal.workflow import TaskWorkflow
from perdure.temporal.writer import store_queue
from perdure.testing import scripted
from tests.temporal.outside import Outside
from tests.temporal.replaying import replay_all

WAIT_S = 20.0

FAST = RetryPolicy(attempts_max=3, first_ms=20, factor=1.0)
"""Retries that do not make a test wait."""


class Bench:
    """One test's place: a store and an outside of its own, on the session's Temporal."""

    def __init__(self, address: str, home: Path, client: Client) -> None:
        self.address = address
        self.home = home
        self.client = client
        self.settings = Settings(
            home=home, temporal=RemoteSettings(address=address, tls=False), store_url=f"sqlite:///{home / 'store.db'}"
        )
        self.outside = Outside(home / "outside.log")
        self.queue = new_id("a")

    def agent(self, *steps: Any, tools: Sequence[ToolPort | ToolSource] = (), **options: Any) -> Agent:
        options.setdefault("model_retry", FAST)
        return Agent(self.queue, model=scripted(*steps), tools=tools, **options)

    def app(
        self, agent: Agent, *, worker: bool = True, drain_s: float = 0.1
    ) -> contextlib.AbstractAsyncContextManager[App]:
        return open_app(agent, settings=self.settings, worker=worker, drain_s=drain_s)

    @contextlib.asynccontextmanager
    async def halves(self, agent: Agent) -> AsyncIterator["Halves"]:
        """Work on calls and workflow tasks at once, and on store writes only while the test says so."""
        store = await open_store(self.settings.store_url)
        activities = TaskActivities(store, {agent.id: agent.live(store, "halves", _now_ms)}, "halves", _now_ms)
        try:
            async with Worker(
                self.client,
                task_queue=agent.id,
                workflows=[TaskWorkflow],
                activities=activities.calls(),
                workflow_runner=workflow_runner(),
                graceful_shutdown_timeout=timedelta(seconds=0.1),
            ):
                yield Halves(self, store, activities)
        finally:
            await store.close()

    @property
    def tasks(self) -> TaskClient:
        return TaskClient(self.client, self.queue)

    async def start(self, agent: Agent, text: str = "hello", **fields: Any) -> str:
        """Start a task with fields of its start that no public door sets."""
        task_id = new_id("t")
        start = TaskStart(
            task_id=task_id,
            context_id=new_id("c"),
            agent=agent.spec(),
            **{"messages": (message("m-first", text),), **fields},
        )
        await self.tasks.start(start)
        return task_id

    async def inbox(self, task_id: str, *items: InboxItem) -> InboxReply:
        handle = self.client.get_workflow_handle(task_id)
        reply: InboxReply = await handle.execute_update("inbox", InboxRequest(items=items), result_type=InboxReply)
        return reply

    # --- what must hold -----------------------------------------------------------------------------------------

    async def sound(self, task: Task, store: Store, *, replays: bool = True) -> list[StoredEvent]:
        """Check what must hold for any task at any time, and return its log."""
        stored = await logged(store, task.id)
        rows = [each.event for each in stored]
        _gapless(rows)
        _one_end_per_run(rows)
        _one_result_per_call(entries_of(stored))
        histories = await self.histories(task.id)
        for history in histories:
            _single_attempts(history)
        if replays:
            await replay_all(histories)
        return stored

    async def histories(self, task_id: str) -> list[WorkflowHistory]:
        """Return the task's histories, its first workflow run's first."""
        found: list[WorkflowHistory] = []
        run_id: str | None = None
        while True:
            history = await self.client.get_workflow_handle(task_id, run_id=run_id).fetch_history()
            found.insert(0, history)
            run_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
            if not run_id:
                return found


@dataclass(frozen=True)
class Halves:
    """A worker whose store writes are done only while `writing` is open."""

    bench: Bench
    store: Store
    activities: TaskActivities

    def task(self, task_id: str) -> Task:
        return Task(task_id, self.store, self.bench.tasks)

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        async with Worker(
            self.bench.client,
            task_queue=store_queue(self.bench.queue),
            activities=self.activities.writes(),
            graceful_shutdown_timeout=timedelta(seconds=5),
        ):
            yield


async def logged(store: Store, task_id: str) -> list[StoredEvent]:
    """Return the whole log as the store has it."""
    found: list[StoredEvent] = []
    while page := await store.events_after(task_id, len(found), limits.EVENTS_PER_PAGE_MAX):
        found.extend(page)
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _gapless(rows: Sequence[LogEvent]) -> None:
    assert [row.number for row in rows] == list(range(1, len(rows) + 1)), "P6"
    terminal = [row for row in rows if row.kind == "task.status" and row.data["state"] in TERMINAL]
    assert len(terminal) <= 1, "P5"
    assert not terminal or terminal[0] is rows[-1], "P5"


def _one_end_per_run(rows: Sequence[LogEvent]) -> None:
    started = [row.run for row in rows if row.kind == "run.started"]
    ended = [row.run for row in rows if row.kind == "run.ended"]
    assert started == list(range(1, len(started) + 1)), "R8"
    assert ended in (started, started[:-1]), "R10"


def _one_result_per_call(entries: Sequence[Entry]) -> None:
    owed: list[str] = []
    for entry in entries:
        if isinstance(entry, ModelEntry):
            assert not owed, f"R14: a model call before the results of {owed}"
            owed = [call.call_id for call in entry.reply.calls]
        elif isinstance(entry, ToolEntry):
            assert owed, "R14: a result without its call"
            assert entry.result.call_id == owed.pop(0), "R14: results out of order"


def _single_attempts(history: WorkflowHistory) -> None:
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            policy = event.activity_task_scheduled_event_attributes.retry_policy
            assert policy.maximum_attempts == 1
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            raise AssertionError(f"a workflow task failed: {event.workflow_task_failed_event_attributes.failure}")


# --- following a task -------------------------------------------------------------------------------------------


async def event(task: Task, kind: str, *, after: int = 0, count: int = 1, **data: object) -> TaskEvent:
    """Wait for the `count`th event of that kind and data after a number."""
    async with asyncio.timeout(WAIT_S):
        async for found in task.events(after):
            if found.kind == kind and all(found.data.get(name) == value for name, value in data.items()):
                count -= 1
                if count == 0:
                    return found
    raise AssertionError(f"the task ended without {kind} {data}")


async def ended(task: Task, state: str = "completed") -> TaskEvent:
    """Wait for the task's terminal state."""
    return await event(task, "task.status", state=state)


async def until(holds: Callable[[], Awaitable[bool] | bool], wait_s: float = WAIT_S) -> None:
    """Wait for the thing itself, with a bound."""
    async with asyncio.timeout(wait_s):
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            await asyncio.sleep(0.01)


def entries_of(stored: Sequence[StoredEvent]) -> list[Entry]:
    """Return the transcript; an admission brings its message along, which is not in it yet."""
    return [entry for each in stored if each.event.kind != "message.admitted" for entry in each.entries]


def results_of(stored: Sequence[StoredEvent]) -> list[ToolEntry]:
    return [entry for entry in entries_of(stored) if isinstance(entry, ToolEntry)]


def rows_of(stored: Sequence[StoredEvent], kind: str) -> list[LogEvent]:
    return [each.event for each in stored if each.event.kind == kind]


def message(message_id: str, text: str) -> Message:
    return Message(message_id=message_id, parts=(TextPart(text=text),))


def item(message_id: str, text: str = "hello", **fields: Any) -> InboxItem:
    return InboxItem(message=message(message_id, text), **fields)


def activity_inputs(history: WorkflowHistory, name: str) -> list[int]:
    """Return the bytes of every scheduled input of that activity, in order."""
    sizes = []
    for each in history.events:
        scheduled = each.activity_task_scheduled_event_attributes
        if each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED and scheduled.activity_type.name == name:
            sizes.append(sum(len(payload.data) for payload in scheduled.input.payloads))
    return sizes


def activities(history: WorkflowHistory) -> list[str]:
    """Return the names of the scheduled activities, in order."""
    return [
        each.activity_task_scheduled_event_attributes.activity_type.name
        for each in history.events
        if each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]


class Gate:
    """A tool's door: it says that it was reached and waits until it is opened. For workers of this process."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def pass_through(self) -> None:
        self.reached.set()
        await self.open.wait()

    async def wait_reached(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.reached.wait()
