"""Sharing what is costly to open: the first user opens it, the last one closes it, whatever happens in between.

A task of its own, the keeper, opens and closes, so that no user's cancellation cuts an opening that others wait for,
and so that what was entered is left in the same task. A key that is being closed is opened again only after that.

One registry serves one event loop: processes and sockets belong to the loop that opened them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class _Entry(Generic[T]):
    """One shared thing: its users, and the keeper that opens and closes it."""

    def __init__(self, opener: Callable[[], AbstractAsyncContextManager[T]], name: str) -> None:
        self.users = 0
        self.closing = False
        self.ready: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._unused = asyncio.Event()
        self.keeper = asyncio.create_task(self._keep(opener), name=f"perdure: keep {name}")

    async def _keep(self, opener: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        try:
            async with opener() as thing:
                self.ready.set_result(thing)
                await self._unused.wait()
        except Exception as error:
            self.closing = True
            if self.ready.done():
                raise
            self.ready.set_exception(error)
            self.ready.exception()  # seen: there may be no user left to take it

    def close(self) -> None:
        """Begin closing; `keeper` ends when that is done."""
        self.closing = True
        if self.ready.done():
            self._unused.set()
        else:
            self.keeper.cancel()


class Shared(Generic[T]):
    """Things by key, opened once each and counted."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, _Entry[T]]] = WeakKeyDictionary()

    @asynccontextmanager
    async def use(
        self, key: Hashable, opener: Callable[[], AbstractAsyncContextManager[T]], name: str
    ) -> AsyncIterator[T]:
        """Give the thing of `key`, opening it if nobody has; the last user to leave waits for its closing.

        A failed opening is reported to everyone who waits for it, and leaves nothing behind.
        """
        entries = self._loops.setdefault(asyncio.get_running_loop(), {})
        while (entry := entries.get(key)) is not None and entry.closing:
            await asyncio.wait([entry.keeper])
            if entries.get(key) is entry:
                del entries[key]
        if entry is None:
            entry = entries[key] = _Entry(opener, name)
        entry.users += 1
        try:
            yield await asyncio.shield(entry.ready)
        finally:
            entry.users -= 1
            if entry.users == 0:
                entry.close()
                await asyncio.wait([entry.keeper])
                if entries.get(key) is entry:
                    del entries[key]
                if not entry.keeper.cancelled() and (error := entry.keeper.exception()) is not None:
                    raise error

    def users(self, key: Hashable) -> int:
        """Return how many use the thing of `key` in the running loop."""
        entry = self._loops.get(asyncio.get_running_loop(), {}).get(key)
        return 0 if entry is None else entry.users
