"""Workers that were taken for lost by their heartbeat and come back: refused, fenced, and told to stop."""

import os
import signal

import pytest

from tests.supervisor.fleet import stop, watching
from tests.supervisor.test_deaths import result
from tests.temporal.bench import Bench, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def test_a_zombies_late_result_is_refused_and_it_stops_its_attempt(bench: Bench) -> None:
    async with watching(bench) as watch:
        task = await watch.app.send("zombie")
        victim = await watch.pid_of("zombie")
        stop(victim)
        await until(lambda: bench.outside.count("zombie.again") == 1)
        assert await result(task) == "ok: done elsewhere"
        os.kill(victim, signal.SIGCONT)
        await until(lambda: bench.outside.count("zombie.cancelled") == 1)
        stored = await bench.sound(task, watch.app.store)
        (effect,) = await watch.app.store.effects(task.id)
    assert bench.outside.of("zombie.cancelled")[0].pid == victim
    assert [row.data["failure"] for row in rows_of(stored, "tool.failed")] == ["worker_lost"]
    assert len(effect.begun) == 2
    assert not [change for change in watch.changes if change.kind == "died" and not change.asked]


async def test_a_zombie_that_had_not_begun_begins_nothing(bench: Bench) -> None:
    """P3: its `begun` finds what the attempt after it has done."""
    async with watching(bench) as watch:
        task = await watch.app.send("late")
        victim = await watch.pid_of("stopping")
        assert await result(task) == "ok: late done"
        os.kill(victim, signal.SIGCONT)
        # It answers nobody any more; when its worker has drained it has asked the ledger, or was told to stop.
        await bench.sound(task, watch.app.store)
        (effect,) = await watch.app.store.effects(task.id)
        assert len(effect.begun) == 1
    (noted,) = bench.outside.of("late")
    assert noted.pid != victim
