"""What became of calls that a stop cut, in a worker process: each is what it then is, and the model is told."""

import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure import App
from perdure.app.supervisor import Fleet, supervised
from perdure.core import limits
from tests.stopping import acting
from tests.supervisor.fleet import environment
from tests.temporal.bench import Bench, event, logged, results_of, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

FOLDER = Path(__file__).parents[2]
FIRST_RESULTS_S = 5.0
"""A stop takes a tenth of a second; this is for a machine that is busy with something else."""


@contextlib.asynccontextmanager
async def worked_on(bench: Bench) -> AsyncIterator[App]:
    """An app whose tasks a worker process works on."""
    fleet = Fleet(
        "tests.stopping.acting:agent", bench.queue, FOLDER, bench.home / "workers.log", environment(bench), drain_s=0.1
    )
    async with (
        bench.app(bench.agent(tools=acting.TOOLS), worker=False) as app,
        supervised(fleet, bench.client, lambda change: None),
    ):
        yield app


async def test_p9_of_parallel_calls_each_ends_as_what_it_then_is(bench: Bench) -> None:
    async with worked_on(bench) as app:
        task = await app.send("all")
        await until(lambda: all(bench.outside.count(name) == 1 for name in acting.AT_ONCE), 60)
        assert await task.stop() is True
        end = await event(task, "run.ended", end="stopped")
        # What is known when the run ends is in the log by then.
        known = rows_of(await logged(app.store, task.id), "tool.finished")
        told = {str(row.data["tool"]): row.data["status"] for row in known if row.number < end.number}
        assert told == {"finishes": "ok", "refuses": "error"}
        await task.send("and now?")
        answer = await task.result()
        stored = await bench.sound(task, app.store)
    statuses = {entry.result.tool: entry.result.status for entry in results_of(stored)}
    assert statuses == {
        "finishes": "ok",
        "refuses": "error",
        "checked": "not_begun",
        "gives_up": "unknown",
        "waits": "not_begun",
    }
    assert "finishes ok: finished in order" in answer
    assert "refuses error: undone" in answer
    assert [row.data["tool"] for row in rows_of(stored, "tool.in_doubt")] == ["gives_up"]
    for name in (*acting.AT_ONCE, "finishes.end"):
        assert bench.outside.count(name) == 1, name
    assert bench.outside.count("waits") == 0


async def test_p9_a_call_that_does_not_hear_is_waited_for_within_a_bound(bench: Bench) -> None:
    """The stop is acknowledged at once; the run ends without the call, whose result is known as soon as it is there."""
    async with worked_on(bench) as app:
        task = await app.send("deaf")
        await until(lambda: bench.outside.count("deaf") == 1, 60)
        began_s = time.monotonic()
        assert await task.stop() is True
        assert time.monotonic() - began_s < FIRST_RESULTS_S
        await until(lambda: bench.outside.count("deaf.told") == 1)
        await event(task, "run.ended", end="stopped")
        assert limits.STOP_GRACE_S <= time.monotonic() - began_s < limits.STOP_GRACE_S + FIRST_RESULTS_S
        (bench.home / "open").touch()
        await until(lambda: bench.outside.count("deaf.end") == 1)

        async def recorded() -> bool:
            (effect,) = await app.store.effects(task.id)
            return effect.outcome == "done"

        await until(recorded)
        await task.send("and now?")
        assert await task.result() == "deaf ok: done all the same"
        await bench.sound(task, app.store)
    assert bench.outside.count("deaf") == 1
