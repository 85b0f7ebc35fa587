"""SQLite: one writing thread with its connection, a few reading ones, WAL, synced at every commit.

A transaction runs as a whole in its thread, on the standard driver. Driving it statement by statement from the event
loop cost four hand-overs each: twelve statements took 4.7 ms instead of 1.2, and 309 ms instead of 10 beside a busy
loop. It also lets no cancellation in between: a caller that is cancelled leaves a transaction that ends by itself.

Writers of several processes meet in `BEGIN IMMEDIATE`, which waits; a transaction that reads first and then wants to
write would fail at once instead.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from perdure.core import limits
from perdure.core.errors import StoreUnavailable
from perdure.store.backend import T, driver_errors
from perdure.store.migration import migrate, one_at_a_time

_BUSY_SHARE = 0.8
"""A writer waits this share of a write's time for others, so that it can still say why it gave up."""

_PRIVATE_FILE = 0o600
_PRIVATE_FOLDER = 0o700


class SqliteBackend:
    """A database file. Use `open`; one instance per process and file is enough."""

    def __init__(self, path: Path) -> None:
        self._place = str(path)
        self._writer = _engine(path, connections=1, begin="BEGIN IMMEDIATE", pragma="synchronous=FULL")
        self._reader = _engine(path, connections=limits.STORE_READERS_MAX, begin="BEGIN", pragma="query_only=ON")
        self._writing = ThreadPoolExecutor(1, "perdure-store-write")
        self._reading = ThreadPoolExecutor(limits.STORE_READERS_MAX, "perdure-store-read")
        self._connection: Connection | None = None  # of the writing thread; taking it from the pool costs a tenth
        self._closed = False

    @classmethod
    async def open(cls, path: Path) -> "SqliteBackend":
        """Create or open the file at the absolute `path` (0600, its folder 0700) and bring its schema up to date."""
        backend = cls(path)
        try:
            await backend._run(backend._writing, backend._prepare)
        except BaseException:
            await backend.close()
            raise
        return backend

    async def write(
        self, work: Callable[[Connection], T], *, synced: bool = True, committed: Callable[[], None] | None = None
    ) -> T:
        """Run `work` in a writing transaction; synced to disk when this returns, unless `synced` is off."""

        def job() -> T:
            result = self._change(work, synced)
            if committed is not None:
                committed()
            return result

        return await self._run(self._writing, job)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on one snapshot of the database."""
        return await self._run(self._reading, lambda: self._transact(self._reader, work))

    async def close(self) -> None:
        """Wait for running work and close the file."""
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._release)

    async def _run(self, executor: ThreadPoolExecutor, job: Callable[[], T]) -> T:
        if self._closed:
            raise StoreUnavailable(f"the store at {self._place} was closed")
        return await asyncio.get_running_loop().run_in_executor(executor, job)

    def _transact(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        with driver_errors(self._place), engine.begin() as connection:
            return work(connection)

    def _change(self, work: Callable[[Connection], T], synced: bool) -> T:
        """Write in the one connection: a second would find its pages stale after each commit of the first."""
        with driver_errors(self._place):
            if self._connection is None:
                self._connection = self._writer.connect()
            # In WAL mode NORMAL leaves the syncing to the next FULL commit, which syncs the same file.
            _on_driver(self._connection, f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
            with self._connection.begin():
                return work(self._connection)

    def _prepare(self) -> None:
        path = Path(self._place)
        with driver_errors(self._place), _held(path):
            _tighten(path)
            # Switching to WAL takes no part in busy waiting, hence under the lock and outside a transaction.
            with self._writer.connect() as connection:
                connection.connection.cursor().execute("PRAGMA journal_mode=WAL")
            with one_at_a_time, self._writer.begin() as connection:
                migrate(connection)

    def _release(self) -> None:
        self._writing.shutdown()
        self._reading.shutdown()
        if self._connection is not None:
            self._connection.close()
        self._writer.dispose()
        self._reader.dispose()


def _engine(path: Path, connections: int, begin: str, pragma: str) -> Engine:
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        connect_args={
            "timeout": _BUSY_SHARE * limits.STORE_WRITE_TIMEOUT_S,
            "check_same_thread": False,  # the reading threads share a pool; each connection serves one at a time
            "isolation_level": None,  # the driver begins nothing by itself; `begin` below does
        },
    )

    def connected(driver: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        driver.execute(f"PRAGMA {pragma}")

    def begun(connection: Connection) -> None:
        _on_driver(connection, begin)

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


def _on_driver(connection: Connection, statement: str) -> None:
    try:
        connection.connection.cursor().execute(statement)
    except sqlite3.Error as error:
        raise DBAPIError(statement, None, error) from error


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep other processes out while the file is created and its schema changed; the kernel releases it on death."""
    path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    lock = os.open(f"{path}.migrating", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _tighten(path: Path) -> None:
    """Create the file private, or make it so; SQLite gives `-wal` and `-shm` the modes of the file.

    A file that is there is not opened: closing it would drop every lock that this process's other connections hold on
    it, and the next process to leave would take itself for the last one and remove the log that they read.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE))
    for suffix in ("", "-wal", "-shm"):
        part = Path(f"{path}{suffix}")
        if part.exists() and part.stat().st_mode & 0o077:
            part.chmod(_PRIVATE_FILE)
