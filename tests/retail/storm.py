"""Kills of whoever there is: a worker, the app with all its workers, or the embedded Temporal.

The seed shuffles whom and draws when. Of six kills in a row four take a worker, one the app and one Temporal, as if one
of the processes were drawn. One follows the other after 2 to 4 seconds, at a moment that knows nothing of when calls
begin and end. What is rare is worth waiting for: a moment at which no `once` call is open is passed over for a later
one, up to the fourth second. So the moments inside the calls stay random, and most kills meet one.

While the app is just starting, a kill of it or of its workers could hit nothing, and ends nobody's work: their interval
begins when it is up. Temporal is killed meanwhile, too.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

from perdure.temporal.embedded import find_record
from tests.retail.keeper import Keeper
from tests.retail.killing import Kill, Target, kill, open_at, open_calls
from tests.retail.shop import ONCE_NAMES, Arrival, Shop, wall_ms

TARGETS: tuple[Target, ...] = ("worker", "worker", "worker", "worker", "app", "temporal")
INTERVAL_LOW_S, INTERVAL_HIGH_S = 2.0, 4.0
FIRST_LOOK_S = 1.0
"""The first moment is drawn within this long after the interval's low end, the others leave room up to its high end."""

LOOK_AGAIN_S = 0.5
"""The next moment is drawn within this long; a call takes up to a second."""

KILLS_MAX = 120
"""So many kills without enough hits are a defect of the storm; and a task's limit of crashes is one above them."""


class Storm:
    """Kills until it is told that all is over. `shops` gives the shops of the conversations under way."""

    def __init__(
        self, keeper: Keeper, database: Path, shops: Callable[[], Iterable[Shop]], random: Random, kills_max: int
    ) -> None:
        self.kills: list[Kill] = []
        self._keeper = keeper
        self._database = database
        self._shops = shops
        self._random = random
        self._kills_max = kills_max

    @property
    def hits(self) -> int:
        """How many kills hit an open `once` call."""
        return sum(bool(kill.once) for kill in self.kills)

    @property
    def spent(self) -> bool:
        """Whether there are no kills left."""
        return len(self.kills) >= self._kills_max

    async def rage(self, over: Callable[[], bool]) -> None:
        """Kill again and again until it is over, or all kills are spent."""
        loop = asyncio.get_running_loop()
        since_s = loop.time()
        for target in self._targets():
            if target != "temporal" and not self._keeper.up.is_set():
                await self._keeper.up.wait()
                since_s = loop.time()
            latest_s = since_s + INTERVAL_HIGH_S
            moment_s = since_s + INTERVAL_LOW_S + self._random.uniform(0.0, FIRST_LOOK_S)
            while True:
                await asyncio.sleep(moment_s - loop.time())  # a moment of chance, not a wait for something
                if over():
                    return
                since_s = loop.time()
                if await self._tried(target, anyway=since_s >= latest_s):
                    break
                moment_s = loop.time() + self._random.uniform(0.0, LOOK_AGAIN_S)
                if loop.time() < latest_s < moment_s:
                    moment_s = latest_s

    def _targets(self) -> Iterator[Target]:
        """Give whom to kill next: shuffled, so that every few kills have all; a free draw may go without for long."""
        while True:
            hand = list(TARGETS)
            self._random.shuffle(hand)
            for target in hand:
                if self.spent:
                    return
                yield target

    async def _tried(self, target: Target, *, anyway: bool) -> bool:
        """Kill if the target is there and a `once` call is open, or anyway; return whether somebody was killed."""
        alive = self._keeper.family()
        calls = await asyncio.to_thread(open_calls, self._shops())
        once = [pid for pid in alive if any(arrival.tool in ONCE_NAMES for arrival in calls.get(pid, ()))]
        if not once and not anyway:
            return False
        match target:
            case "worker":
                return await self._kill_worker(once, [pid for pid in alive if pid in calls])
            case "app":
                return await self._kill_app()
            case "temporal":
                return await self._kill_temporal()

    async def _kill_worker(self, once: list[int], busy: list[int]) -> bool:
        workers = self._keeper.workers
        for wanted in (once, busy, workers):
            there = [pid for pid in workers if pid in wanted]
            if there:
                victim = self._random.choice(there)
                at_ms = wall_ms()
                if not await kill(victim):
                    return False
                self.kills.append(Kill(at_ms, victim, await self._cut((victim,))))
                return True
        return False

    async def _kill_app(self) -> bool:
        if not self._keeper.workers:
            return False
        at_ms = wall_ms()
        pid, with_it = await self._keeper.kill()
        self.kills.append(Kill(at_ms, pid, await self._cut(with_it), "app"))
        return True

    async def _kill_temporal(self) -> bool:
        record = find_record(self._database)
        if record is None or record.server_pid is None or record.address is None:
            return False
        alive, at_ms = self._keeper.family(), wall_ms()
        if not await kill(record.server_pid):
            return False
        spared = await asyncio.to_thread(open_at, at_ms, alive, self._shops())
        self.kills.append(Kill(at_ms, record.server_pid, (), "temporal", spared))
        return True

    async def _cut(self, pids: Iterable[int]) -> tuple[Arrival, ...]:
        calls = await asyncio.to_thread(open_calls, self._shops())
        return tuple(arrival for pid in pids for arrival in calls.get(pid, ()))
