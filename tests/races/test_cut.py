"""A19: the line to Temporal is cut in the middle of a run, for long, and then it is slow: no loss and no duplicate."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

import pytest

from perdure import App, Settings, open_app
from perdure.app.supervisor import Fleet, supervised
from perdure.core.errors import Unavailable
from perdure.temporal.settings import RemoteSettings
from tests.crash.without import GUARD
from tests.races import stepping
from tests.races.proxy import How, Line, line_to
from tests.supervisor.fleet import FOLDER, environment
from tests.temporal.bench import Bench, event, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

FULL = os.environ.get("PERDURE_TEST_FULL") == "1"
CUT_S = 20.0 if FULL else 3.0
SLOW_S = 0.1 if FULL else 0.03
WITHIN_S = 120.0


@contextlib.asynccontextmanager
async def behind(bench: Bench, line: Line, without: str = "") -> AsyncIterator[App]:
    """Give an app and a worker that both know Temporal by the line only.

    A worker that finds no Temporal for long gives up, as its successors do, until there is one again.
    """
    there = Settings(
        home=bench.home,
        temporal=RemoteSettings(address=line.address, tls=False),
        store_url=bench.settings.store_url,
    )
    given = environment(bench) | {"TEMPORAL_ADDRESS": line.address, GUARD: without}
    agent = bench.agent(
        tools=stepping.agent.tools,
        after_answer="input_required",
        model_heartbeat_timeout_s=stepping.HEARTBEAT_S,
        model_retry=stepping.PATIENT,
    )
    kept = Fleet("tests.races.stepping:agent", bench.queue, FOLDER, bench.home / "workers.log", given, 0, 0.1)
    async with (
        open_app(agent, settings=there, worker=False) as app,
        supervised(kept, bench.client, lambda change: None),
    ):
        yield app


async def cut_off(bench: Bench, how: How, without: str = "") -> None:
    async with line_to(bench.address) as line, behind(bench, line, without) as app:
        task = await app.send("first", message_id="m-1")
        await until(lambda: bench.outside.count("step") == stepping.STEPS)
        line.cut(how)
        sending = asyncio.create_task(sent(app, task.id))
        await asyncio.sleep(CUT_S)  # the cut's length is the thing itself
        told = bench.outside.count("step")
        line.mend(SLOW_S)
        assert told == stepping.STEPS, "something went on without Temporal"
        async with asyncio.timeout(WITHIN_S):
            assert await sending > 0
            await event(task, "run.ended", end="answered")
            assert await task.result() == "first second"
        stored = await bench.sound(task, app.store)
    assert [row.data["message_id"] for row in rows_of(stored, "message.promoted")] == ["m-1", "m-2"]
    keys = bench.outside.keys()
    twice = [key for key, count in keys.items() if count > 1]
    assert not twice, f"P3: begun twice: {twice}"
    assert len(keys) == 2 * stepping.STEPS
    assert rows_of(stored, "tool.in_doubt") == []


async def sent(app: App, task_id: str) -> int:
    """Send until it is acknowledged, under one id."""
    while True:
        with contextlib.suppress(Unavailable):
            return await app.task(task_id).send("second", message_id="m-2", lane="queue")


@pytest.mark.parametrize("how", ["torn", pytest.param("dead", marks=pytest.mark.full)])
async def test_a19_cut_off_and_then_slow_nothing_is_lost_and_nothing_is_done_twice(bench: Bench, how: How) -> None:
    await cut_off(bench, how)


@pytest.mark.full
async def test_a19_without_the_look_into_the_ledger_the_cut_call_is_made_twice(bench: Bench) -> None:
    with pytest.raises(AssertionError, match="P3: begun twice"):
        await cut_off(bench, "torn", "ledger lookup")
