"""R12: a task that kills its worker each time ends at its limit, and begins nothing beyond it."""

import asyncio

import pytest

from perdure.core import limits
from perdure.core.errors import RunFailed
from tests.crash import acting
from tests.crash.arena import WITHIN_S
from tests.crash.fleet import fleet
from tests.crash.world import World
from tests.temporal.bench import Bench

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def test_r12_a_task_that_kills_its_worker_each_time_ends_at_its_limit(bench: Bench) -> None:
    agent = bench.agent(tools=acting.agent.known_tools, model_heartbeat_timeout_s=acting.HEARTBEAT_S)
    async with bench.app(agent, worker=False) as app, fleet(bench, "", standby=False):
        task = await app.send("poison")
        ended = ""
        try:
            async with asyncio.timeout(WITHIN_S):
                await task.result()
        except RunFailed as failed:
            ended = failed.reason
        begun = len(World(bench.home / "world.db").arrivals(task.id))
        assert (begun, ended) == (limits.CRASHES_MAX, "crash_loop")
        await bench.sound(task, app.store)
