"""Worker processes that are killed at seeded moments, and what the shops say that each kill hit.

The moments are drawn beforehand and know nothing of what the workers do. The victim is drawn among the workers that
have a call open at that moment, by the shops' own notes of arrivals; among all when none has. Whether the kill hit
is judged afterwards, by the same notes: a call of the dead process that came and never left.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from perdure.app.processes import WorkerProcess
from tests.retail.shop import Arrival, Shop, wall_ms

INTERVAL_LOW_S, INTERVAL_HIGH_S = 15.0, 30.0


@dataclass(frozen=True)
class Kill:
    """A SIGKILL: when, whom, and the calls that it cut off."""

    at_ms: int
    pid: int
    cut: tuple[Arrival, ...]


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
        open_at = await asyncio.to_thread(self._open_calls)
        busy = [worker for worker in self._workers if open_at.get(worker.pid)]
        victim = self._random.choice(busy or self._workers)
        self._workers.remove(victim)
        at_ms = wall_ms()
        os.kill(victim.pid, signal.SIGKILL)
        await victim.wait()
        cut = (await asyncio.to_thread(self._open_calls)).get(victim.pid, ())
        self.kills.append(Kill(at_ms, victim.pid, tuple(cut)))

    def _open_calls(self) -> dict[int, list[Arrival]]:
        calls: dict[int, list[Arrival]] = {}
        for shop in tuple(self._shops()):
            for arrival in shop.arrivals():
                if arrival.left_ms is None:
                    calls.setdefault(arrival.pid, []).append(arrival)
        return calls
