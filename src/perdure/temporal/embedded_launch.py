"""One launch of the embedded server: its command line, its ports, and waiting until it answers.

A launch keeps its ports. A server that is started again by the same launch listens where the first one did, so that
every address that was given out stays valid.

Durable: `journal_mode=WAL` with `synchronous=FULL`. SQLite then syncs its log to the disk within each commit, before
Temporal acknowledges what it committed: an acknowledged start, update or completion survives the death of the server,
and a power cut as well, as far as the disk keeps its own promise to have written what it was told to sync. `NORMAL`
would survive the former only. It had no cost that could be measured in sequential runs.
"""

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio.service import ConnectConfig, RPCError, ServiceClient

from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.embedded_server import ServerProcess
from perdure.temporal.listeners import listens
from perdure.temporal.sdk_runtime import sdk_runtime

HOST: Final = "127.0.0.1"

PORT_ATTEMPTS_MAX = 3
"""A port that was free can be taken before the server binds it; three times in a row is not chance."""

PORT_TAKEN = "address already in use"

POLL_S = 0.01
HEALTH_TIMEOUT = timedelta(seconds=2)

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
class Ports:
    """Where a server listens; its own services take random ones beside these."""

    frontend: int
    http: int
    metrics: int
    ui: int


@dataclass(frozen=True)
class Launch:
    """What to start: `binary` on `database` (None: in memory), with the descriptor of the database's lock."""

    binary: Path
    database: Path | None
    lock_fd: int | None
    ui: bool
    timeout_s: float
    environment: Mapping[str, str]

    async def first(self) -> tuple[ServerProcess, Ports]:
        """Start the server on free ports, and again on others when someone took one meanwhile.

        Raises:
            EmbeddedTemporalError: It did not answer in time; the text has its last words. Nothing is left running.
        """
        attempt = 1
        while True:
            ports = Ports(*free_ports(4))
            try:
                return await self.on(ports), ports
            except EmbeddedTemporalError as error:
                if attempt == PORT_ATTEMPTS_MAX or PORT_TAKEN not in str(error):
                    raise
            attempt += 1

    async def on(self, ports: Ports) -> ServerProcess:
        """Start the server on these ports and return once it answers; raises as `first` does."""
        command = [str(self.binary), *self._arguments(ports)]
        folder = None if self.database is None else self.database.parent
        try:
            server = await ServerProcess.spawn(command, folder, self.lock_fd, self.environment)
        except OSError as error:
            raise EmbeddedTemporalError(f"the embedded Temporal's guard could not be started: {error}") from error
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(server.stop)
            try:
                async with asyncio.timeout(self.timeout_s):
                    await _ready(server, ports.frontend)
            except TimeoutError as error:
                raise EmbeddedTemporalError(
                    f"the embedded Temporal did not answer within {self.timeout_s:g} s (startup_timeout_s); "
                    f"its last words:\n{server.last_words()}"
                ) from error
            undo.pop_all()
        return server

    def _arguments(self, ports: Ports) -> list[str]:
        arguments = ["server", "start-dev", "--disable-config-file", "--disable-config-env", "--ip", HOST]
        arguments += ["--port", str(ports.frontend), "--http-port", str(ports.http)]
        arguments += ["--metrics-port", str(ports.metrics)]
        arguments += ["--ui-ip", HOST, "--ui-port", str(ports.ui)] if self.ui else ["--headless"]
        if self.database is not None:
            arguments += ["--db-filename", str(self.database)]
            for pragma in PRAGMAS:
                arguments += ["--sqlite-pragma", pragma]
        for key, value in DYNAMIC_CONFIG.items():
            arguments += ["--dynamic-config-value", f"{key}={value}"]
        return arguments


async def _ready(server: ServerProcess, port: int) -> None:
    """Wait until the server serves on `port`, or has ended; the caller bounds it.

    Whoever else holds the port may take connections and never answer: the server's end must not be missed by that.
    """
    serving = asyncio.ensure_future(_serves(server, port))
    ended = asyncio.ensure_future(server.exited.wait())
    try:
        await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            server.check_running()
        await serving
    finally:
        serving.cancel()
        ended.cancel()
        await asyncio.gather(serving, ended, return_exceptions=True)


async def _serves(server: ServerProcess, port: int) -> None:
    """Wait until the server serves on `port`.

    An answer alone proves nothing, since a race for the port may have been lost to another Temporal: the listener
    must be the server's own, by the kernel's word or else by the server's.
    """
    pid = await server.known_pid()
    await _healthy(server, f"{HOST}:{port}")
    if not listens(pid, port):
        await server.announced(port)


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
