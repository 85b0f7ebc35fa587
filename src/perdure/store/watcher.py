"""Wake those who wait for a task's log to grow: one poll per process, however many wait.

While anybody waits, a single task asks the store for its latest revision (one row by its key), and only when that
moved, or somebody new waits, for the tasks that are waited for. A write of this process asks at once. The question is
always "does the log reach past the number you have?", so that nothing is missed between a read and a wait.
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
        self._unasked = False
        self._kick = asyncio.Event()
        self._closed = False
        self._poller: asyncio.Task[None] | None = None

    async def past(self, task_id: str, number: int) -> bool:
        """Wait until the log reaches past `number`; return False when it ends there or before.

        Raises `StoreUnavailable` when the store does not answer meanwhile or is closed.
        """
        if self._closed:
            raise _closed()
        waiter = _Waiter(task_id, number, asyncio.get_running_loop().create_future())
        self._waiters.add(waiter)
        self._unasked = True
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll(), name="perdure-store-watcher")
            self._poller.add_done_callback(self._ended)
        self._kick.set()
        try:
            return await waiter.more
        finally:
            self._waiters.discard(waiter)

    def kick(self) -> None:
        """Ask the store now: this process has written to it."""
        self._kick.set()

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
        seen, pause_ms = -1, float(limits.TAIL_POLL_FIRST_MS)
        while self._waiters and not self._closed:
            self._kick.clear()
            revision = await self._revision()
            if revision != seen or self._unasked:
                self._unasked = False
                await self._answer()
            pause_ms = limits.TAIL_POLL_FIRST_MS if revision != seen else min(pause_ms * 1.5, limits.TAIL_POLL_MAX_MS)
            seen = revision
            try:
                async with asyncio.timeout(pause_ms / 1000):
                    await self._kick.wait()
            except TimeoutError:
                continue
        self._poller = None  # in one step with the look at the waiters: whoever comes next starts another

    async def _answer(self) -> None:
        task_ids = sorted({waiter.task_id for waiter in self._waiters})
        reached = await self._reached(task_ids) if task_ids else {}
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
