"""PostgreSQL through asyncpg: for stores that more than one host writes to.

READ COMMITTED is enough, because a write locks its task's row before it reads anything beneath it.

A transaction runs in a task of its own, so that a caller that is cancelled leaves one that ends by itself: the same as
in SQLite, and no connection is given up in the middle of an answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from sqlalchemy import URL, Connection, NullPool, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from perdure.core import limits
from perdure.core.errors import ConfigurationError, StoreUnavailable
from perdure.store.backend import T, driver_errors, sqlstate
from perdure.store.migration import migrate, one_at_a_time

_MIGRATION_LOCK = 0x5045_5244_5552_4501
"""Any number that no one else in the database takes an advisory lock on: "PERDURE" and a 1."""

_UNSYNCED = text("SET LOCAL synchronous_commit = off")

_SETTINGS = {"application_name": "perdure", "synchronous_commit": "on"}
"""A commit that returns is on disk, whatever the server's or the role's default is."""


@contextlib.asynccontextmanager
async def _alone_here() -> AsyncIterator[None]:
    """Hold this process's lock over migrations without holding up its loop: another of the loop's may have it."""
    while not one_at_a_time.acquire(blocking=False):  # noqa: ASYNC110 - SQLite takes it in a thread
        await asyncio.sleep(limits.MIGRATION_PAUSE_S)
    try:
        yield
    finally:
        one_at_a_time.release()


class PostgresBackend:
    """A database on a server. Use `open`."""

    def __init__(self, url: URL) -> None:
        self._place = url.render_as_string(hide_password=True)
        self._closed = False
        self._running: set[asyncio.Task[Any]] = set()
        self._engine = create_async_engine(
            url,
            pool_size=limits.STORE_CONNECTIONS_MAX,
            max_overflow=0,
            pool_timeout=limits.STORE_WRITE_TIMEOUT_S,
            connect_args={
                "timeout": limits.STORE_WRITE_TIMEOUT_S,
                "command_timeout": limits.STORE_WRITE_TIMEOUT_S,
                "server_settings": _SETTINGS,
            },
        )

    @classmethod
    async def open(cls, url: URL) -> "PostgresBackend":
        """Connect and bring the schema up to date; several processes may do so at once."""
        # A connection of its own: waiting for another process's migration may take longer than any other command.
        engine = create_async_engine(url, poolclass=NullPool, connect_args={"timeout": limits.STORE_WRITE_TIMEOUT_S})
        try:
            with driver_errors(url.render_as_string(hide_password=True)):
                async with _alone_here(), engine.begin() as connection:
                    await connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"))
                    await connection.run_sync(migrate)
        except DBAPIError as error:
            if str(sqlstate(error)).startswith(("28", "3D")):  # authorization, no such database
                raise ConfigurationError("store", f"{error.orig}; correct the URL or create the database") from error
            raise
        finally:
            await engine.dispose()
        return cls(url)

    async def write(
        self, work: Callable[[Connection], T], *, synced: bool = True, committed: Callable[[], None] | None = None
    ) -> T:
        """Run `work` in a transaction; on the server's disk when this returns, unless `synced` is off."""
        if self._closed:
            raise StoreUnavailable(f"the store at {self._place} was closed")
        running = asyncio.create_task(self._transact(work, synced, committed))
        self._running.add(running)
        running.add_done_callback(self._ended)
        return await asyncio.shield(running)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction."""
        return await self.write(work)

    async def close(self) -> None:
        """Wait for running work and close the connections."""
        self._closed = True
        if self._running:
            await asyncio.wait(self._running)
        await self._engine.dispose()

    async def _transact(self, work: Callable[[Connection], T], synced: bool, committed: Callable[[], None] | None) -> T:
        with driver_errors(self._place):
            async with self._engine.begin() as connection:
                if not synced:
                    await connection.execute(_UNSYNCED)
                result = await connection.run_sync(work)
        if committed is not None:
            committed()
        return result

    def _ended(self, running: asyncio.Task[Any]) -> None:
        self._running.discard(running)
        if not running.cancelled():
            running.exception()  # taken note of: a caller that was cancelled does not hear of it
