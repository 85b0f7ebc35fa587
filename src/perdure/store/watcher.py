"""Wake those who wait for a task's log to grow, without a poll each.

Who writes tells it, in this process and through the channel in others, and those who wait for that task look. Telling
may be lost, and some stores have no channel: so, while anybody waits, a single task asks the store for its latest
revision (one row by its key), and when that moved, for the tasks that are waited for. Who comes new is asked for at
once, because the log may have grown since it was read: nothing is missed between a read and a wait.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from perdure.core import limits
from perdure.core.errors import StoreUnavailable
from perdure.store.reading import Reached


class _Waiter(NamedTuple):
    task_id: str
    number: int
    more: "asyncio.Future[bool]"


class Watcher:
    """Waits on behalf of all tails of a store."""

    def __init__(
        self,
        revision: Callable[[], Awaitable[int]],
        reached: Callable[[list[str]], Awaitable[dict[str, Reached]]],
    ) -> None:
        self._revision = revision
        self._reached = reached
        self._waiters: set[_Waiter] = set()
        self._new: set[str] = set()
        self._told = False
        self._kick = asyncio.Event()
        self._closed = False
        self._poller: asyncio.Task[None] | None = None

    async def past(self, task_id: str, number: int) -> bool:
        """Wait until the log reaches past `number`, or may do so; return False when it ends there or before.

        Raises `StoreUnavailable` when the store does not answer meanwhile or is closed.
        """
        if self._closed:
            raise _closed()
        waiter = _Waiter(task_id, number, asyncio.get_running_loop().create_future())
        self._waiters.add(waiter)
        self._new.add(task_id)
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll(), name="perdure-store-watcher")
            self._poller.add_done_callback(self._ended)
        self._kick.set()
        try:
            return await waiter.more
        finally:
            self._waiters.discard(waiter)

    def tell(self, task_id: str) -> None:
        """Let those who wait for this task look: somebody has written to its log."""
        self._told = True
        for waiter in self._waiters:
            if waiter.task_id == task_id and not waiter.more.done():
                waiter.more.set_result(True)

    async def close(self) -> None:
        """Stop asking; those who wait get `StoreUnavailable`."""
        self._closed = True
        for waiter in tuple(self._waiters):
            if not waiter.more.done():
                waiter.more.set_exception(_closed())
        if self._poller is not None:
            self._kick.set()
            await asyncio.wait([self._poller])

    async def _poll(self) -> None:
        seen, pause_ms, due_s = -1, float(limits.TAIL_POLL_FIRST_MS), 0.0
        clock = asyncio.get_running_loop().time
        while self._waiters and not self._closed:
            self._kick.clear()
            new, self._new = self._new, set()
            if new:
                await self._answer(new)
            if clock() >= due_s:
                revision = await self._revision()
                if revision != seen:
                    await self._answer({waiter.task_id for waiter in self._waiters})
                calm = self._told or revision == seen
                pause_ms = min(pause_ms * 1.5, limits.TAIL_POLL_MAX_MS) if calm else limits.TAIL_POLL_FIRST_MS
                seen, due_s = revision, clock() + pause_ms / 1000
            try:
                async with asyncio.timeout_at(due_s):
                    await self._kick.wait()
            except TimeoutError:
                continue
        self._poller = None  # in one step with the look at the waiters: whoever comes next starts another

    async def _answer(self, task_ids: set[str]) -> None:
        reached = await self._reached(sorted(task_ids)) if task_ids else {}
        for waiter in tuple(self._waiters):
            task = reached.get(waiter.task_id)
            if task is None or waiter.more.done():
                continue
            if task.contiguous > waiter.number:
                waiter.more.set_result(True)
            elif task.terminal_number is not None and task.terminal_number <= waiter.number:
                waiter.more.set_result(False)

    def _ended(self, poller: "asyncio.Task[None]") -> None:
        """Hand what cut the poll off to those who wait; it starts again with the next who does."""
        error = None if poller.cancelled() else poller.exception()
        if error is None and not poller.cancelled():
            return
        self._poller = None
        for waiter in tuple(self._waiters):
            if error is None:
                waiter.more.cancel()
            elif not waiter.more.done():
                waiter.more.set_exception(error)


def _closed() -> StoreUnavailable:
    return StoreUnavailable("the store was closed while its log was followed")
