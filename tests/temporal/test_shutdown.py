"""An orderly end in the middle of a run: it resumes, and no crash is counted (B3, A14)."""

from typing import Literal

import pytest

from perdure import Call, tool
from perdure.core.content import Entry
from perdure.testing import call, results, say
from perdure.testing.script import Step
from tests.temporal.bench import FAST, Bench, Gate, event, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def test_during_a_model_call(bench: Bench) -> None:
    def slow_once(transcript: tuple[Entry, ...]) -> Step:
        bench.outside.note("asked")
        return say("done", delay_s=30.0 if bench.outside.count("asked") == 1 else 0.0)

    agent = bench.agent(slow_once)
    async with bench.app(agent) as app:
        task = await app.send("go")
        await until(lambda: bench.outside.count("asked") == 1)
    async with bench.app(agent) as app:
        task = app.task(task.id)
        await event(task, "model.started", attempt=2)
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
        assert (await bench.tasks.state(task.id)).crashes == 0
    assert [row.data["failure"] for row in rows_of(stored, "model.failed")] == ["shutdown"]
    assert bench.outside.count("asked") == 2


@pytest.mark.parametrize(
    ("effect", "called", "answer"), [("read", 2, "ok"), ("idempotent", 2, "ok"), ("once", 1, "unknown")]
)
async def test_during_a_call_that_outlasts_the_drain(
    bench: Bench, effect: Literal["read", "idempotent", "once"], called: int, answer: str
) -> None:
    gate = Gate()

    @tool(effect=effect, retry=FAST)
    async def held(call: Call) -> str:
        bench.outside.note("held", call.idempotency_key)
        await gate.pass_through()
        return "done"

    agent = bench.agent(call("held"), lambda transcript: say(results(transcript)[0].status), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
    gate.open.set()
    async with bench.app(agent) as app:
        task = app.task(task.id)
        assert await task.result() == answer
        stored = await bench.sound(task, app.store)
    assert bench.outside.keys() == {f"{task.id}/1/0": called}
    (failed,) = rows_of(stored, "tool.failed")
    assert failed.data["failure"] == "shutdown"


async def test_a_call_that_ends_within_the_drain_is_done(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="once")
    async def held() -> str:
        await gate.pass_through()
        bench.outside.note("held")
        return "done"

    agent = bench.agent(call("held"), lambda transcript: say(results(transcript)[0].text), tools=[held])
    async with bench.app(agent, drain_s=10) as app:
        task = await app.send("go")
        await gate.wait_reached()
        gate.open.set()
    async with bench.app(agent) as app:
        task = app.task(task.id)
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    assert rows_of(stored, "tool.failed") == []
    assert bench.outside.count("held") == 1
