"""Wake those who wait for a task's log to grow, without a poll each.

Who writes tells it, in this process and through the channel in others, and those who follow that task look: also when
they were told while they were reading, so that nothing is missed between a read and a wait. Telling may be lost, and
some stores have no channel: so, while anybody waits, a single task asks the store every now and then for its latest
revision (one row by its key), and when that moved, or somebody has begun to wait, for the tasks that are waited for.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

from perdure.core import limits
from perdure.core.errors import StoreUnavailable
from perdure.store.reading import Reached


class Following:
    """One reader of a task's log. Clear `told` before reading: it says that there may be more since then."""

    def __init__(self, watcher: "Watcher", task_id: str) -> None:
        self.task_id = task_id
        self.told = False
        self.number = 0
        self.more: asyncio.Future[bool] | None = None
        self._watcher = watcher

    async def past(self, number: int) -> bool:
        """Wait until the log reaches past `number`, or may do so; return False when it ends there or before.

        Raises `StoreUnavailable` when the store does not answer meanwhile or is closed.
        """
        if self.told:
            return True
        self.number = number
        self.more = asyncio.get_running_loop().create_future()
        with self._watcher.waiting(self):
            return await self.more


class Watcher:
    """Waits on behalf of all tails of a store."""

    def __init__(
        self,
        revision: Callable[[], Awaitable[int]],
        reached: Callable[[list[str]], Awaitable[dict[str, Reached]]],
    ) -> None:
        self._revision = revision
        self._reached = reached
        self._followers: dict[str, set[Following]] = {}
        self._waiters: set[Following] = set()
        self._new: set[str] = set()
        self._told = False
        self._ending = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def following(self, task_id: str) -> Iterator[Following]:
        """Be told of a task's log until the context is left."""
        follower = Following(self, task_id)
        followers = self._followers.setdefault(task_id, set())
        followers.add(follower)
        try:
            yield follower
        finally:
            followers.discard(follower)
            if not followers and self._followers.get(task_id) is followers:
                del self._followers[task_id]

    @contextlib.contextmanager
    def waiting(self, follower: Following) -> Iterator[None]:
        """Count a follower among those who wait; raises `StoreUnavailable` where nobody will be told any more."""
        if self._ending.is_set():
            raise _closed()
        self._waiters.add(follower)
        self._new.add(follower.task_id)
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll(), name="perdure-store-watcher")
            self._poller.add_done_callback(self._ended)
        try:
            yield
        finally:
            self._waiters.discard(follower)

    def tell(self, task_id: str) -> None:
        """Let those who follow this task look: somebody has written to its log."""
        self._told = True
        for follower in self._followers.get(task_id, ()):
            follower.told = True
            _answer(follower, more=True)

    async def close(self) -> None:
        """Stop asking; those who wait get `StoreUnavailable`."""
        self._ending.set()
        for follower in tuple(self._waiters):
            _refuse(follower, _closed())
        if self._poller is not None:
            await asyncio.wait([self._poller])

    async def _poll(self) -> None:
        seen, pause_ms = -1, float(limits.TAIL_POLL_FIRST_MS)
        while self._waiters and not self._ending.is_set():
            revision = await self._revision()
            moved = revision != seen
            await self._ask({follower.task_id for follower in self._waiters} if moved else self._new)
            calm = self._told or not moved
            pause_ms = min(pause_ms * 1.5, limits.TAIL_POLL_MAX_MS) if calm else limits.TAIL_POLL_FIRST_MS
            seen = revision
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_ms / 1000):
                    await self._ending.wait()
        self._poller = None  # in one step with the look at the waiters: whoever comes next starts another

    async def _ask(self, task_ids: set[str]) -> None:
        self._new = set()
        reached = await self._reached(sorted(task_ids)) if task_ids else {}
        for follower in tuple(self._waiters):
            task = reached.get(follower.task_id)
            if task is None:
                continue
            if task.contiguous > follower.number:
                _answer(follower, more=True)
            elif task.terminal_number is not None and task.terminal_number <= follower.number:
                _answer(follower, more=False)

    def _ended(self, poller: "asyncio.Task[None]") -> None:
        """Hand what cut the poll off to those who wait; it starts again with the next who does."""
        error = None if poller.cancelled() else poller.exception()
        if error is None and not poller.cancelled():
            return
        self._poller = None
        for follower in tuple(self._waiters):
            if error is not None:
                _refuse(follower, error)
            elif follower.more is not None:
                follower.more.cancel()


def _answer(follower: Following, *, more: bool) -> None:
    if follower.more is not None and not follower.more.done():
        follower.more.set_result(more)


def _refuse(follower: Following, error: BaseException) -> None:
    if follower.more is not None and not follower.more.done():
        follower.more.set_exception(error)


def _closed() -> StoreUnavailable:
    return StoreUnavailable("the store was closed while its log was followed")
