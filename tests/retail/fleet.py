"""Worker processes without a supervisor, which are killed at seeded moments and started again by the test.

The moments are drawn beforehand and know nothing of what the workers do. The victim is drawn among the workers that
have a call open at that moment, by the shops' own notes of arrivals; among all when none has.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from random import Random

from perdure.app.processes import WorkerProcess
from tests.retail.killing import Kill, open_calls
from tests.retail.shop import Shop, wall_ms

INTERVAL_LOW_S, INTERVAL_HIGH_S = 15.0, 30.0


class Fleet:
    """The workers. `shops` gives the shops of the conversations that are under way."""

    def __init__(
        self,
        start: Callable[[], Awaitable[WorkerProcess]],
        shops: Callable[[], Iterable[Shop]],
        random: Random,
    ) -> None:
        self.kills: list[Kill] = []
        self._start = start
        self._shops = shops
        self._random = random
        self._workers: list[WorkerProcess] = []

    @property
    def hits(self) -> int:
        """How many kills cut a call off."""
        return sum(bool(kill.cut) for kill in self.kills)

    async def open(self, count: int) -> None:
        """Start so many workers."""
        for _ in range(count):
            self._workers.append(await self._start())

    async def close(self) -> None:
        """Kill what is left."""
        while self._workers:
            await self._workers.pop().kill()

    async def storm(self, over: asyncio.Event) -> None:
        """Kill a worker and start another, again and again, until it is over."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += self._random.uniform(INTERVAL_LOW_S, INTERVAL_HIGH_S)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await over.wait()
            if over.is_set():
                return
            await self._kill_one()
            self._workers.append(await self._start())

    async def _kill_one(self) -> None:
        gone = [worker.pid for worker in self._workers if worker.returncode is not None]
        if gone:
            raise RuntimeError(f"workers {gone} ended by themselves; their logs say why")
        open_now = await asyncio.to_thread(open_calls, self._shops())
        busy = [worker for worker in self._workers if open_now.get(worker.pid)]
        victim = self._random.choice(busy or self._workers)
        self._workers.remove(victim)
        at_ms = wall_ms()
        os.kill(victim.pid, signal.SIGKILL)
        await victim.wait()
        cut = (await asyncio.to_thread(open_calls, self._shops())).get(victim.pid, ())
        self.kills.append(Kill(at_ms, victim.pid, tuple(cut)))
