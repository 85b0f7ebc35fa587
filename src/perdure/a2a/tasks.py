"""Finding and reading tasks on behalf of a caller.

Where a task stands is read from the store's log. A task that was accepted and that no worker has touched yet has no
log: it is known by what it was started with, which Temporal's history gives without a worker. So an accepted task is
there for GetTask at once, whatever is killed between its start and the first row.

A task that is another's, or another agent's, is not there. One that is shared with the caller is there to be read
(`sharing.py`): `see` finds it, and `find`, for whoever wants to do something with it, says that it is not theirs.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, cast

from a2a.types.a2a_pb2 import Task

from perdure.a2a.caller import Caller
from perdure.a2a.errors import not_found
from perdure.a2a.fitting import Fitting
from perdure.a2a.incoming import blobs_of, restored
from perdure.a2a.sharing import is_reader, may_see, only_to_read
from perdure.a2a.translate import TaskView
from perdure.app.app import App
from perdure.core import limits
from perdure.core.content import Message
from perdure.core.digests import safe_text
from perdure.core.errors import StoreBehind, StoreUnavailable
from perdure.core.log import TaskHeader
from perdure.core.state import TERMINAL, TaskStatus

_ABOUT_MESSAGES: Final = frozenset({"message.admitted", "help.answered"})
"""Events that are read with a message, which may be written after them."""


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


class TaskReader:
    """Reads tasks of one agent."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._views = _Views()

    async def find(self, task_id: str, caller: Caller) -> Found:
        """Return a task of the caller's own; raises what `see` raises, and `PermissionDeniedError` for a shared one."""
        found = await self.see(task_id, caller)
        if is_reader(found.header, caller):
            raise only_to_read(task_id)
        return found

    async def see(self, task_id: str, caller: Caller) -> Found:
        """Return a task; raises A2A's TaskNotFoundError, also for one that is not for the caller (A2A 3.3.2)."""
        found = await self._known(task_id) if safe_text(task_id) == task_id else None
        if found is None or not may_see(found.header, caller):
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
        return Found(start.header, created_at_ms=created_at_ms, messages=start.messages)

    async def view(self, found: Found, upto: int | None = None) -> TaskView:
        """Return the task as of event `upto`; without it, as of the last one that is in the store.

        What was accepted and is in no log yet is as it was accepted, also where the store does not answer (B25).
        """
        view = self._views.upto(found.header.task_id, upto)
        if view is None:
            view = TaskView(found.header.task_id, found.header.context_id, found.created_at_ms)
            for message in found.messages:
                view.say(message)
        try:
            if await self._read_on(view, upto):
                self._views.keep(view)
        except StoreUnavailable:
            if view.number > 0 or not found.messages:
                raise
        return view

    def accepted(self, found: Found, message: Message) -> Task:
        """Return a task as it was found when it took the message in, from memory: the store does not answer now.

        Of its history there is that message, unless files would have to be read for it.
        """
        view = TaskView(
            found.header.task_id, found.header.context_id, found.created_at_ms, cast(TaskStatus, found.state)
        )
        task = view.bare()
        if not blobs_of(message):
            task.history.append(restored(message, view.task_id, view.context_id, {}))
        return task

    async def _read_on(self, view: TaskView, upto: int | None) -> bool:
        """Take what follows; return whether all of it was there, with the messages that events are about."""
        whole = True
        while upto is None or view.number < upto:
            wanted = limits.EVENTS_PER_PAGE_MAX if upto is None else upto - view.number
            limit = min(wanted, limits.EVENTS_PER_PAGE_MAX)
            page = await self._app.store.events_after(view.task_id, view.number, limit)
            for stored in page:
                view.take(stored)
                whole = whole and (stored.subject is not None or stored.event.kind not in _ABOUT_MESSAGES)
            if len(page) < limit:
                break
        return whole

    async def task(self, view: TaskView, history_length: int | None = None, *, artifacts: bool = True) -> Task:
        """Return the view as A2A's task, with the files of the messages that it shows; of a large one the newest."""
        fitting = Fitting(view.bare())
        if artifacts:
            fitting.hand_over(view.artifacts)
        said = view.latest(history_length)
        while fitting.messages < len(said):
            message = said[-1 - fitting.messages]
            if isinstance(message, Message):
                message = restored(message, view.task_id, view.context_id, await self._files(view.task_id, message))
            if not fitting.say(message):
                break
        return fitting.task(of_messages=len(said))

    async def _files(self, task_id: str, message: Message) -> dict[str, bytes]:
        try:
            return {digest: await self._app.store.get_blob(digest) for digest in sorted(blobs_of(message))}
        except KeyError as missing:
            raise StoreBehind(f"a file of a message of task {task_id} is missing from the store") from missing


class _Views:
    """Tasks as of an event that was read before. An event never changes, so what is kept is only ever behind."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, TaskView] = OrderedDict()
        self._events = 0

    def upto(self, task_id: str, upto: int | None) -> TaskView | None:
        """Return a view to go on from, at most as of that event."""
        kept = self._kept.get(task_id)
        if kept is None or (upto is not None and kept.number > upto):
            return None
        self._kept.move_to_end(task_id)
        return kept.copy()

    def keep(self, view: TaskView) -> None:
        """Keep a view, unless a later one is kept; its owner goes on with it."""
        before = self._kept.get(view.task_id)
        if before is not None and before.number >= view.number:
            return
        self._events += view.number - (0 if before is None else before.number)
        self._kept[view.task_id] = view.copy()
        self._kept.move_to_end(view.task_id)
        while len(self._kept) > limits.VIEWS_KEPT_MAX or (
            self._events > limits.VIEWS_KEPT_EVENTS_MAX and len(self._kept) > 1
        ):
            _, oldest = self._kept.popitem(last=False)
            self._events -= oldest.number
