"""Following a task: the task as of an event, then every event after it, from the store's log.

A stream is a reader at its own pace: it holds one page of the log and asks for the next when the client has taken that.
So a client that never reads costs a page and a connection, and nobody waits for it; one that takes nothing for
STREAM_STALL_S is cut (`wire.py`) and goes on later from the last number that it saw. Refused: a queue per subscriber
that events are put into. It must be bounded, so somebody has to be cut when it is full, also one who only blinked; and
it loses the events with its process.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from a2a.types.a2a_pb2 import Task, TaskArtifactUpdateEvent

from perdure.a2a.caller import Told
from perdure.a2a.drafting import Drafting
from perdure.a2a.tasks import Found, TaskReader
from perdure.a2a.translate import TaskView, Update
from perdure.app.app import App
from perdure.core import limits
from perdure.core.errors import StoreUnavailable
from perdure.core.ports import StoredEvent


class Streams:
    """Follows tasks of one agent."""

    def __init__(self, app: App, reader: TaskReader) -> None:
        self._app = app
        self._reader = reader

    async def follow(
        self, view: TaskView, told: Told, history_length: int | None = None
    ) -> AsyncGenerator[Task | Update, None]:
        """Yield the task as of the view, then each event after it, until its terminal state (P6)."""
        told.number = view.number
        yield await self._reader.task(view, history_length)
        if view.terminal:
            return
        drafting = Drafting(view)
        async with aclosing(self._next(view, drafting)) as following:
            async for found in following:
                if isinstance(found, TaskArtifactUpdateEvent):
                    told.number = None  # a chunk of a draft is no event
                    yield found
                    continue
                update = view.take(found)
                told.number = view.number
                yield update
                taken_back = drafting.settled(update)
                if taken_back is not None:
                    told.number = None
                    yield taken_back

    async def _next(
        self, view: TaskView, drafting: Drafting
    ) -> AsyncGenerator[StoredEvent | TaskArtifactUpdateEvent, None]:
        """Yield the events after the view, and what comes of a draft meanwhile; the log goes first."""
        drafts, changed = self._app.store.drafts, asyncio.Event()
        leave = drafts.watch(view.task_id, changed.set)
        events = self._tail(view)
        coming = asyncio.ensure_future(anext(events))
        try:
            while True:
                if not coming.done() and (chunk := drafting.chunk(drafts.of(view.task_id))) is not None:
                    yield chunk
                    continue
                await _first_of(coming, changed)
                if coming.done():
                    try:
                        yield coming.result()
                    except StopAsyncIteration:
                        return
                    coming = asyncio.ensure_future(anext(events))
        finally:
            leave()
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
            await events.aclose()

    async def as_of(self, found: Found, number: int) -> TaskView:
        """Return the task as of that event, once it is in the store."""
        view = await self._reader.view(found, number)
        if view.number < number and not view.terminal:
            async with aclosing(self._tail(view)) as events:
                async for stored in events:
                    view.take(stored)
                    if view.number >= number:
                        break
        return view

    async def until_rest(self, found: Found, after: int) -> TaskView:
        """Wait until the task has ended or rests (`resting.py`) as of an event past `after`; return it as of that.

        That event may be the message's own: it waits behind a question, say, and nothing else follows. Where the task
        rests again by then, as for a message that came once more, it is returned as it is now. A store that does not
        answer is waited for, STORE_PATIENCE_S each time; then its error goes on.
        """
        loop = asyncio.get_running_loop()
        view: TaskView | None = None
        until_s = 0.0
        while True:
            began_s = loop.time()
            try:
                view = view or await self._reader.view(found, after)
                await self._to_rest(view, after)
                latest = await self._reader.view(found)
            except StoreUnavailable:
                now_s = loop.time()
                if until_s == 0 or now_s - began_s > limits.STORE_PATIENCE_S:
                    until_s = now_s + limits.STORE_PATIENCE_S
                if now_s >= until_s:
                    raise
                await asyncio.sleep(limits.RECORD_PAUSE_S)
            else:
                return latest if latest.rests else view

    async def _to_rest(self, view: TaskView, after: int) -> None:
        if view.terminal or (view.number > after and view.rests):  # it came so far before the store failed
            return
        async with aclosing(self._tail(view)) as events:
            async for stored in events:
                view.take(stored)
                if view.rests:
                    return

    def _tail(self, view: TaskView) -> AsyncGenerator[StoredEvent, None]:
        return cast(AsyncGenerator[StoredEvent, None], self._app.store.tail(view.task_id, view.number))


async def _first_of(coming: "asyncio.Future[StoredEvent]", changed: asyncio.Event) -> None:
    """Wait for the next event, or until there is more of a draft."""
    if coming.done():
        return
    growing = asyncio.ensure_future(changed.wait())
    try:
        waits: set[asyncio.Future[Any]] = {coming, growing}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        growing.cancel()
    changed.clear()
