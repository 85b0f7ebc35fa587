"""The customers' side of the app: it is started again whenever it was killed, and asked again what it did not answer.

A request that was not acknowledged when the app died is made again of the next one, under the same ids. Nobody but the
test ends an app: one that ends by itself is a failure.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perdure.cli.chaos.victims import children_of
from perdure.core import fleet_limits, limits
from tests.retail.killing import kill
from tests.retail.shop import wall_ms

ROOT = Path(__file__).parents[2]
END_WITHIN_S = limits.DRAIN_S + fleet_limits.WORKER_GRACE_S
LAST_WORDS_CHARS = 2000


class Keeper:
    """Keeps one app running while `keep` does. `asked_again` counts requests that were made again."""

    def __init__(self, environment: Mapping[str, str], home: Path) -> None:
        self.starts = 0
        self.asked_again = 0
        self.up = asyncio.Event()
        """Set while there is an app with a worker that is ready."""
        self.down_ms: list[int] = []
        """How long it took from each kill until there was one again."""
        self._environment = environment
        self._log = home / "app.log"
        self._process: asyncio.subprocess.Process | None = None
        self._killed = False
        self._killed_ms = 0
        self._ready: set[int] = set()
        self._open: dict[str, tuple[str, asyncio.Future[None]]] = {}

    # --- what customers and killers see -------------------------------------------------------------------------

    async def ask(self, task_id: str, text: str) -> None:
        """Hand a request in and return when it was acknowledged, by whichever app."""
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open[task_id] = (text, acknowledged)
        self._say(task_id)
        await acknowledged

    @property
    def workers(self) -> tuple[int, ...]:
        """The workers that are ready, by the app's word and the kernel's; none while no app is ready.

        A worker that is just starting is relied on by nobody yet, and the death of the first one ends its app.
        """
        return tuple(pid for pid in self.family() if pid in self._ready)

    async def kill(self) -> tuple[int, tuple[int, ...]]:
        """Kill the app; return its process number and those that died with it, all seen dead by the kernel."""
        pid, *with_it = self.family()
        self._killed, self._killed_ms = True, wall_ms()
        self._ready.clear()
        self.up.clear()
        await kill(pid, with_it)
        return pid, tuple(with_it)

    def family(self) -> tuple[int, ...]:
        """Return the app, the process that starts its workers, and the workers; nobody while it is not running."""
        process = self._process
        if process is None or process.returncode is not None or self._killed:
            return ()
        nurseries = children_of((process.pid,))
        return (process.pid, *nurseries, *children_of(nurseries))

    # --- keeping it ---------------------------------------------------------------------------------------------

    async def keep(self) -> None:
        """Start an app after the other; return never, and end the last one in order when this is cancelled.

        Raises `RuntimeError` when one ended by itself.
        """
        try:
            while True:
                await self._live()
        finally:
            await self._end()

    async def _live(self) -> None:
        """Start an app and stay until it is dead."""
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.retail.front"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        finally:
            os.close(log)
        self._process, self._killed = process, False
        self.starts += 1
        for task_id in self._open:
            self.asked_again += self.starts > 1
            self._say(task_id)
        if process.stdout is None:
            raise RuntimeError("the app has no standard output")
        async for line in process.stdout:
            self._take(json.loads(line))
        code = await process.wait()
        if not self._killed:
            words = await asyncio.to_thread(self._log.read_text, errors="replace")
            raise RuntimeError(f"the app ended with {code} by itself: {words[-LAST_WORDS_CHARS:]}")

    async def _end(self) -> None:
        process = self._process
        if process is None or process.returncode is not None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(END_WITHIN_S):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _say(self, task_id: str) -> None:
        """Tell the app that runs, if one does; the next one is told all that is open."""
        process = self._process
        if process is not None and process.stdin is not None and process.returncode is None and not self._killed:
            line = {"task_id": task_id, "text": self._open[task_id][0]}
            process.stdin.write(json.dumps(line).encode() + b"\n")

    def _take(self, said: dict[str, Any]) -> None:
        match said["event"]:
            case "acknowledged":
                _, acknowledged = self._open.pop(said["task_id"], ("", None))
                if acknowledged is not None and not acknowledged.done():
                    acknowledged.set_result(None)
            case "ready" if not self._killed:
                self._ready.add(said["pid"])
                if not self.up.is_set() and self.starts > 1:
                    self.down_ms.append(wall_ms() - self._killed_ms)
                self.up.set()
            case "died":
                self._ready.discard(said["pid"])
