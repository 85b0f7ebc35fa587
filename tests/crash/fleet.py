"""Supervised workers that die of their faults: the same supervisor as in earnest, with an armed environment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from perdure.app.faults import once_paths
from perdure.app.supervisor import Change, Fleet, Supervisor, supervised
from perdure.core.faults import read_faults
from tests.temporal.bench import Bench

FOLDER = Path(__file__).parents[2]
REFERENCE = "tests.crash.acting:agent"


class Workers:
    """The running workers of a bench; `changes` is what happened to them."""

    def __init__(self, bench: Bench, fault: str) -> None:
        self.changes: list[Change] = []
        self._once = bench.home / "died"
        self._faults = read_faults(fault)

    async def until(self, done: "asyncio.Task[str]") -> str:
        """Return what the task returns; workers that do not start any more fail it at once."""
        await asyncio.wait({done, self.watching}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            self.watching.result()
        return done.result()

    def watch(self, supervisor: Supervisor) -> None:
        self.watching = asyncio.create_task(supervisor.watch())

    def not_fired(self) -> list[str]:
        """Return the faults that have killed nobody so far."""
        paths = once_paths(self._once, self._faults)
        return [str(fault) for fault, path in zip(self._faults, paths, strict=True) if not path.exists()]


@contextlib.asynccontextmanager
async def fleet(bench: Bench, fault: str, *, standby: bool = True) -> AsyncIterator[Workers]:
    """Give workers that die of these faults, each fault once. Without a standby, one worker makes all calls."""
    workers = Workers(bench, fault)
    environment = {
        "PERDURE_HOME": str(bench.home),
        "PERDURE_TEST_PLACE": str(bench.home),
        "PERDURE_TEST_AGENT": bench.queue,
        "PERDURE_STORE_URL": bench.settings.store_url,
        "TEMPORAL_ADDRESS": bench.address,
        "TEMPORAL_TLS": "false",
        "PERDURE_FAULT": fault,
        "PERDURE_FAULT_ONCE": str(bench.home / "died"),
    }
    kept = Fleet(REFERENCE, bench.queue, FOLDER, bench.home / "workers.log", environment, int(standby), 0.1)
    async with supervised(kept, bench.client, workers.changes.append) as supervisor:
        workers.watch(supervisor)
        try:
            yield workers
        finally:
            workers.watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await workers.watching
