"""The application: one connection, one store, the agents, and a worker. The one place where things are wired."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perdure.app.agent import Agent
from perdure.app.clock import now_ms
from perdure.app.companions import Companions
from perdure.app.faults import armed
from perdure.app.inboxes import Inboxes
from perdure.app.loading import refuse_while_importing
from perdure.app.messages import new_id, new_message, refuse_unusable
from perdure.app.offer import Offer
from perdure.app.settings import Settings
from perdure.app.task import Task
from perdure.core import context_limits, limits
from perdure.core.content import Message
from perdure.core.errors import ConfigurationError, InvalidInput
from perdure.core.machine import new_task
from perdure.core.ports import Store, TaskRow
from perdure.store import open_store
from perdure.temporal.activities import TaskActivities
from perdure.temporal.connection import temporal_client
from perdure.temporal.contracts import TaskStart
from perdure.temporal.in_hand import Board, InHand
from perdure.temporal.settings import RemoteSettings
from perdure.temporal.tasks import TaskClient
from perdure.temporal.worker import WorkerPart, running_worker

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware


def worker_identity() -> str:
    """Return a name for this process start, unique also among restarts with the same pid."""
    return f"{os.getpid()}@{socket.gethostname()}#{secrets.token_hex(4)}"


class App:
    """What `open_app` gives: start tasks, find them, list them."""

    def __init__(
        self,
        agent: Agent,
        store: Store,
        client: TaskClient,
        worker_failed: asyncio.Event | None,
        settings: Settings,
    ) -> None:
        self.agent = agent
        self.settings = settings
        self.store = store
        self.worker_failed = worker_failed
        """Set when the worker in this process cannot go on; None without one."""
        self.client = client
        """Temporal's side of tasks."""
        self.inboxes = Inboxes(client)
        """What is asked of tasks that exist, on its way to them."""
        self.companions = Companions()
        """What goes on beside the app until it closes."""

    async def send(
        self,
        text: str,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        message_id: str | None = None,
        principal: str = "",
    ) -> Task:
        """Start a task with its first message. When this returns the task is durable, also with no worker up (P1).

        In a context that is there already the model is told what was said in those tasks of it that have ended by now.

        Raises:
            InvalidInput: The text is empty or too large, an id cannot be used, the task id exists, or the context is
                another principal's; nothing was changed.
            Unavailable: Temporal or the store does not answer.
        """
        # What the task's workflow or its first write would refuse is refused here, where somebody hears of it (P1).
        refuse_unusable("principal", principal, limits.PRINCIPAL_CHARS_MAX, empty=True)
        if task_id is not None:
            refuse_unusable("task_id", task_id, limits.TASK_ID_CHARS_MAX)
            new_task(task_id, "", self.agent.spec())
        if context_id is not None:
            refuse_unusable("context_id", context_id, limits.CONTEXT_ID_CHARS_MAX)
        if task_id is not None and await self.store.task(task_id) is not None:
            # Temporal may have forgotten the id; a task that it starts again is refused by the store (P5), unheard.
            raise InvalidInput("task_id", f"{task_id!r} exists already; choose another id")
        message = await new_message(self.store, text, message_id)
        if context_id is not None:
            await self.store.claim_context(context_id, principal, now_ms())
        earlier = await self.ended_in(context_id, principal)
        start = self.start_of(message, task_id or new_id("t"), context_id or new_id("c"), principal, earlier=earlier)
        await self.client.start(start)
        return self.task(start.task_id)

    async def ended_in(self, context_id: str | None, principal: str) -> tuple[str, ...]:
        """Return the tasks of a context that a task which starts in it now will see; none of a new one."""
        if not context_id:
            return ()
        return await self.store.ended_tasks(context_id, principal, self.agent.id, context_limits.TASKS_MAX)

    def start_of(
        self,
        message: Message,
        task_id: str,
        context_id: str,
        principal: str,
        *,
        shared_with: tuple[str, ...] = (),
        earlier: tuple[str, ...] = (),
    ) -> TaskStart:
        """Return what a task of this agent is started with.

        Those that it is `shared_with` may see it; it sees the `earlier` tasks of its context.
        """
        return TaskStart(
            task_id=task_id,
            context_id=context_id,
            principal=principal,
            agent=self.agent.spec(),
            messages=(message,),
            shared_with=shared_with,
            earlier=earlier,
        )

    def asgi(self, url: str, *, middleware: "Sequence[Middleware]" = (), offer: Offer | None = None) -> "Starlette":
        """Return the A2A server of this app's agent, to be mounted or run by itself; needs the app to stay open.

        Args:
            url: Where clients reach it, as its card says it; with the prefix it is mounted under.
            middleware: Goes around everything; what sets the request's `user` decides who calls.
            offer: What of the protocol is offered; None for all that there is on HTTP.
        """
        from perdure.a2a.server import asgi  # noqa: PLC0415 - a server's imports are for those who serve

        return asgi(self, url, middleware=middleware, offer=offer)

    def task(self, task_id: str) -> Task:
        """Return a handle on a task, which need not exist yet."""
        return Task(task_id, self.store, self.client, self.inboxes)

    async def find(self, task_id: str) -> Task:
        """Return a handle on a task that exists; raises `TaskNotFound`."""
        task = self.task(task_id)
        await task.row()
        return task

    async def tasks(self, limit: int = 50) -> tuple[TaskRow, ...]:
        """Return tasks, the latest changed first."""
        return await self.store.tasks(limit)


@contextlib.asynccontextmanager
async def open_app(
    agent: Agent, *, settings: Settings | None = None, worker: bool = True, drain_s: float = limits.DRAIN_S
) -> AsyncIterator[App]:
    """Open an application around one agent: embedded, or what the environment names.

    With `worker` this process also works on the agent's tasks, those of earlier processes included; without, it only
    starts and follows them. Everything that was opened is closed on the way out; tasks go on at the next start.

    Raises:
        ConfigurationError: A setting, the agent or its model cannot work; names it.
        EmbeddedTemporalError: The embedded Temporal did not start, or another process owns its file.
        Unavailable: Temporal or the store does not answer.
    """
    refuse_while_importing("it opens an app")
    where = settings or Settings.from_environment()
    member = Member(worker_identity()) if worker else None
    async with opened(agent, where, member, drain_s) as app:
        yield app


@dataclass(frozen=True)
class Member:
    """How a process works: under which name (unique per start), on what, and noting what it has in hand where."""

    identity: str
    part: WorkerPart = "all"
    board: Board | None = None


@contextlib.asynccontextmanager
async def opened(agent: Agent, where: Settings, member: Member | None, drain_s: float) -> AsyncIterator[App]:
    """Open an application whose process works as `member` says, or not at all. Raises as `open_app` does.

    Whatever it makes of the agent, it makes of its opened form, `App.agent`.
    """
    queue = agent.id
    async with contextlib.AsyncExitStack() as stack:
        if member is not None:
            stack.enter_context(armed(os.environ))
        claimed = (str(where.temporal), where.store_url, queue)
        if member is not None:
            stack.enter_context(_claim(claimed, agent.id))
        client = await stack.enter_async_context(temporal_client(where.temporal))
        store = await open_store(where.store_url)
        stack.push_async_callback(store.close)
        failed: asyncio.Event | None = None
        if member is None:
            async with agent.opened() as known:  # what its tools are is all that it takes to start tasks
                agent = known
        else:
            # Closed after the worker: what it has begun ends first.
            agent = await stack.enter_async_context(agent.opened())
            live = agent.live(store, member.identity, now_ms)
            for model, given in zip((live.model, *live.fallbacks), agent.models, strict=True):
                stack.push_async_callback(_close_model, model, given)
            ours = not isinstance(where.temporal, RemoteSettings)
            beat_every_s = limits.HEARTBEAT_EVERY_S if ours else limits.HEARTBEAT_THROTTLE_S
            activities = TaskActivities(
                store, {agent.id: live}, member.identity, now_ms, store.drafts.say, beat_every_s
            )
            noting = () if member.board is None else (InHand(member.board),)
            working = running_worker(
                client, queue, activities, member.identity, drain_s, part=member.part, interceptors=noting
            )
            failed = await stack.enter_async_context(working)
        app = App(agent, store, TaskClient(client, queue), failed, where)
        stack.push_async_callback(app.inboxes.close)
        stack.push_async_callback(app.companions.close)
        yield app


async def _close_model(opened: object, given: object) -> None:
    """Close the connections of a model that was opened here; one that the agent brought is its author's."""
    close = getattr(opened, "close", None)
    if opened is not given and close is not None:
        await close()


_claims: set[tuple[str, str, str]] = set()


@contextlib.contextmanager
def _claim(claimed: tuple[str, str, str], agent_id: str) -> Iterator[None]:
    """Refuse a second worker of this process for the same agent, namespace and queue before anything connects."""
    if claimed in _claims:
        raise ConfigurationError(
            "Agent.id", f"this process works for an agent {agent_id!r} already; give it another id"
        )
    _claims.add(claimed)
    try:
        yield
    finally:
        _claims.discard(claimed)
