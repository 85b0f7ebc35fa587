"""Finding and reading tasks on behalf of a caller.

Where a task stands is read from the store's log. A task that was accepted and that no worker has touched yet has no
log: it is known by what it was started with, which Temporal's history gives without a worker. So an accepted task is
there for GetTask at once, whatever is killed between its start and the first row.

A task that is another's, or another agent's, is not there.
"""

from dataclasses import dataclass

from a2a.types.a2a_pb2 import Task

from perdure.a2a.caller import Caller
from perdure.a2a.errors import not_found
from perdure.a2a.translate import TaskView
from perdure.app.app import App
from perdure.core import limits
from perdure.core.content import Message
from perdure.core.digests import safe_text
from perdure.core.errors import StoreBehind
from perdure.core.log import TaskHeader
from perdure.core.state import TERMINAL
from perdure.temporal.contracts import TaskStart


@dataclass(frozen=True)
class Found:
    """A task that its caller may see. `last_number` 0: nothing of it is in the store's log yet."""

    header: TaskHeader
    state: str = "submitted"
    last_number: int = 0
    created_at_ms: int = 0
    messages: tuple[Message, ...] = ()

    @property
    def terminal(self) -> bool:
        """Whether the task has ended."""
        return self.state in TERMINAL


def header_of(start: TaskStart) -> TaskHeader:
    """Return a start's header."""
    return TaskHeader(
        task_id=start.task_id,
        context_id=start.context_id,
        agent_id=start.agent.agent_id,
        principal=start.principal,
    )


class TaskReader:
    """Reads tasks of one agent."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def find(self, task_id: str, caller: Caller) -> Found:
        """Return the task; raises A2A's TaskNotFoundError, also for one that is not the caller's (A2A 3.3.2)."""
        found = await self._known(task_id) if safe_text(task_id) == task_id else None
        if found is None or found.header.principal != caller.principal:
            raise not_found(task_id)
        return found

    async def _known(self, task_id: str) -> Found | None:
        row = await self._app.store.task(task_id)
        agent_id = self._app.agent.id
        if row is not None and row.last_number > 0:
            found = Found(row.header, row.state, row.last_number, row.created_at_ms)
            return found if row.header.agent_id == agent_id else None
        begun = await self._app.client.started_with(task_id)
        if begun is None or begun[0].agent.agent_id != agent_id:
            return None
        start, created_at_ms = begun
        return Found(header_of(start), created_at_ms=created_at_ms, messages=start.messages)

    async def view(self, found: Found, upto: int | None = None) -> TaskView:
        """Return the task as of event `upto`; without it, as of the last one that is in the store."""
        view = TaskView(found.header.task_id, found.header.context_id, found.created_at_ms)
        for message in found.messages:
            view.say(message)
        while upto is None or view.number < upto:
            wanted = limits.EVENTS_PER_PAGE_MAX if upto is None else upto - view.number
            limit = min(wanted, limits.EVENTS_PER_PAGE_MAX)
            page = await self._app.store.events_after(view.task_id, view.number, limit)
            for stored in page:
                view.take(stored)
            if len(page) < limit:
                break
        return view

    async def task(self, view: TaskView, history_length: int | None = None, *, artifacts: bool = True) -> Task:
        """Return the view as A2A's task, with the files of the messages that it shows."""
        try:
            blobs = {digest: await self._app.store.get_blob(digest) for digest in sorted(view.blobs(history_length))}
        except KeyError as missing:
            raise StoreBehind(f"a file of a message of task {view.task_id} is missing from the store") from missing
        return view.task(history_length, blobs, artifacts=artifacts)
