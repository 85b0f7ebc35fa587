"""One worker child, kept running while a command needs it: started again when it dies, ended with the command.

The least that lets a task go on after its worker was killed; what the death cut off is noticed by the heartbeat
timeout of the call.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from perdure.app.processes import WorkerProcess
from perdure.core import limits
from perdure.core.errors import Unavailable

RESTART_DELAY_S = 0.5


class KeptWorker:
    """A running worker child and whoever replaces it. Get one from `kept_worker`."""

    def __init__(self, reference: str, home: Path, folder: Path, log: Path, on_change: Callable[[str], None]) -> None:
        self._reference = reference
        self._home = home
        self._folder = folder
        self._log = log
        self._on_change = on_change
        self._process: WorkerProcess | None = None

    @property
    def pid(self) -> int | None:
        """The process number of the worker that runs now; None while there is none."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the child and wait until it takes tasks; raises what `WorkerProcess.start` raises."""
        self._process = await WorkerProcess.start(self._reference, self._home, folder=self._folder, log=self._log)

    async def watch(self) -> None:
        """Replace the child whenever it dies; returns never.

        Raises `Unavailable` when `WORKER_RESTARTS_MAX` of them died in a row, naming their log.
        """
        deaths = 0
        while True:
            began_s = time.monotonic()
            died = await self._next_death()
            deaths = deaths + 1 if time.monotonic() - began_s < limits.WORKER_STEADY_S else 1
            if deaths > limits.WORKER_RESTARTS_MAX:
                raise Unavailable(f"the worker died {deaths} times in a row, the last time {died}; see {self._log}")
            delay_s = 0.0 if deaths == 1 else RESTART_DELAY_S * 2 ** min(deaths - 2, 16)
            self._on_change(f"the worker {died}; another one is started")
            await asyncio.sleep(min(delay_s, limits.WORKER_RESTART_DELAY_MAX_S))

    async def _next_death(self) -> str:
        if self._process is None:
            try:
                await self.start()
            except Unavailable as error:
                return f"did not start ({error})"
            self._on_change(f"worker {self.pid} goes on")
        process = self._process
        if process is None:
            raise Unavailable("the worker was ended while it was started")
        code = await process.wait()
        self._process = None
        return f"{process.pid} {_ending(code)}"

    async def end(self) -> None:
        """Ask the child to end: it drains, and is reaped before this returns."""
        if self._process is not None:
            await self._process.end()
            self._process = None


@contextlib.asynccontextmanager
async def kept_worker(
    reference: str, home: Path, *, folder: Path, log: Path, on_change: Callable[[str], None]
) -> AsyncIterator[KeptWorker]:
    """Start a worker for `module:agent` (found in `folder`) over the data folder; drain it on leaving.

    `on_change` is told of deaths and replacements, in words, while `watch` runs.

    Raises:
        ConfigurationError: The worker refuses its agent or settings.
        Unavailable: It ended before it was ready; the text has its last words.
    """
    kept = KeptWorker(reference, home, folder, log, on_change)
    await kept.start()
    try:
        yield kept
    finally:
        await kept.end()


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was killed ({signal.Signals(-code).name})"
    except ValueError:
        return f"was killed (signal {-code})"
