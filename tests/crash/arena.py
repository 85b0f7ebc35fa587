"""Where many crash cases share one set of workers: one after the other, each task with faults of its own.

All faults of all cases are armed in every worker from its start; a fault names the one task that it concerns and
kills once. So a case costs a death and a recovery, and not two starts of a process; and it is alone, so that its
death cuts off nothing else and what must come of it is known exactly.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from temporalio.client import Client

from perdure import App, Task
from perdure.app.judging import broken_promises
from tests.crash import acting
from tests.crash.expected import Outcome, seen
from tests.crash.fleet import Workers, fleet
from tests.crash.world import World
from tests.temporal.bench import Bench, event, until

WITHIN_S = 90.0
ASK = " ask"
APPROVED = "approved"
"""The tool whose calls are approved as soon as they wait."""


class Arena:
    """One agent's workers, with the faults of all cases: from a case's name to the points at which it dies."""

    def __init__(self, bench: Bench, app: App, workers: Workers, faults: Mapping[str, str]) -> None:
        self._bench = bench
        self._app = app
        self._workers = workers
        self._faults = faults
        self.world = World(bench.home / "world.db")

    async def play(self, case: str, text: str) -> Outcome:
        """Run one case of one call to its end, and return what came of it."""
        answer = await self.finish(case, text)
        return seen(self.world, self.task_of(case), answer)

    async def finish(self, case: str, text: str) -> str:
        """Run one case to its end, check that it died where it should and what its records show; return the answer."""
        task = await self._app.send(text, task_id=self.task_of(case))
        if text.endswith(ASK) or text == APPROVED:
            question = await event(task, "help.requested")
            await task.answer(question.help_id, "approve" if text == APPROVED else "yes")
        answer = (await self._result(task)).removesuffix(" | ok: yes")
        # The answer is heard where it is committed, and some deaths come right behind that.
        with contextlib.suppress(TimeoutError):
            await until(lambda: not self._left(case))
        assert self._left(case) == [], "it was not killed there"
        events = [found async for found in task.events()]
        assert broken_promises(events, await self._app.store.effects(task.id)) == ()
        await self._bench.sound(task, self._app.store)
        return answer

    def _left(self, case: str) -> list[str]:
        left = set(self._workers.not_fired())
        return [fault for fault in self._faults[case].split(",") if fault in left]

    def task_of(self, case: str) -> str:
        """Return the id of a case's task."""
        return task_of(self._bench, case)

    async def _result(self, task: Task) -> str:
        waiting = asyncio.create_task(task.result())
        try:
            async with asyncio.timeout(WITHIN_S):
                return await self._workers.until(waiting)
        finally:
            waiting.cancel()


def task_of(bench: Bench, case: str) -> str:
    """Return the id of a case's task."""
    return f"{bench.queue}-{case}"


@contextlib.asynccontextmanager
async def arena(server: tuple[str, Client], home: Path, points: Mapping[str, str]) -> AsyncIterator[Arena]:
    """Give an arena whose cases die at these points: from a case's name to one point or several, by commas."""
    address, client = server
    bench = Bench(address, home, client)
    faults = {
        case: ",".join(f"{point}:{task_of(bench, case)}" for point in names.split(","))
        for case, names in points.items()
    }
    agent = bench.agent(tools=acting.agent.known_tools, model_heartbeat_timeout_s=acting.HEARTBEAT_S)
    async with bench.app(agent, worker=False) as app, fleet(bench, ",".join(faults.values())) as workers:
        yield Arena(bench, app, workers, faults)
