"""A store that does not take writes for a while: a real one, whose file another connection holds.

Nothing is lost, nothing is done twice, and it costs the task no attempt: it waits, is shown as degraded, and goes on.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator

import pytest

from perdure import Call, Task, tool
from perdure.core import limits
from perdure.core.errors import Unavailable
from perdure.core.ports import Store
from perdure.temporal.tasks import ANSWER_WITHIN_S
from perdure.testing import call, say
from tests.temporal.bench import Bench, Gate, event, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a write that is not taken fail soon: the settings, not the behaviour, are the test's."""
    monkeypatch.setattr(limits, "STORE_WRITE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(limits, "ACKNOWLEDGE_WITHIN_S", 0.6)
    monkeypatch.setattr(limits, "STORE_ASKED_AGAIN_S", 0.2)
    monkeypatch.setattr(limits, "BACKOFF_MAX_MS", 300)
    monkeypatch.setattr(limits, "RECORD_WITHIN_S", 0.3)


@contextlib.asynccontextmanager
async def held(bench: Bench) -> AsyncIterator[None]:
    """Hold the store's write lock, as a backup or a stuck process would."""
    connection = sqlite3.connect(bench.home / "store.db", isolation_level=None, timeout=10)
    try:
        await asyncio.to_thread(lambda: None)
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


async def degraded(task: Task) -> bool:
    return (await task.monitor()).degraded


async def test_a_run_waits_for_its_store_and_goes_on(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="read")
    async def look_up() -> str:
        await gate.pass_through()
        return "found"

    @tool(effect="once")
    async def act(call: Call) -> str:
        bench.outside.note("act", call.idempotency_key)
        return "ok"

    agent = bench.agent(call("look_up"), call("act"), say("done"), tools=[look_up, act])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        async with held(bench):
            gate.open.set()
            await until(lambda: degraded(task))
            assert bench.outside.all() == []
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store, replays=False)
    assert bench.outside.keys() == {f"{task.id}/2/0": 1}
    assert {row.data["failure"] for row in rows_of(stored, "tool.failed")} <= {"store", "timeout", "tool_raised"}


@contextlib.asynccontextmanager
async def at_work(bench: Bench, *answers: object) -> AsyncIterator[tuple[Task, Gate, Store]]:
    """Give a task whose reading call waits at a gate; then the model says these answers, and that it is done."""
    gate = Gate()

    @tool(effect="read")
    async def look_up() -> str:
        await gate.pass_through()
        return "found"

    async with bench.app(bench.agent(call("look_up"), *answers, say("done"), tools=[look_up])) as app:
        task = await app.send("go")
        await gate.wait_reached()
        yield task, gate, app.store


async def test_p9_the_pause_after_a_long_outage_keeps_nobody_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks meanwhile is told the reason, and the first who asks when the store is well again has it tried."""
    monkeypatch.setattr(limits, "BACKOFF_FIRST_MS", 50_000)
    monkeypatch.setattr(limits, "BACKOFF_MAX_MS", 60_000)
    async with at_work(bench) as (task, gate, store):
        async with held(bench):
            for _ in range(2):  # the second one comes into the pause
                with pytest.raises(Unavailable, match="not in the store yet"):
                    await task.send("more", message_id="m-2")
            assert await degraded(task)
        async with asyncio.timeout(ANSWER_WITHIN_S / 2):
            assert await task.stop()
        gate.open.set()
        await event(task, "run.ended", end="stopped")
        await bench.sound(task, store, replays=False)


async def test_who_asks_while_a_write_fails_has_it_tried_again_soon(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What that write did not take along yet waits for the next one, which must not come after a long pause."""
    monkeypatch.setattr(limits, "BACKOFF_FIRST_MS", 50_000)
    monkeypatch.setattr(limits, "BACKOFF_MAX_MS", 60_000)
    monkeypatch.setattr(limits, "STORE_WRITE_TIMEOUT_S", 1.5)
    monkeypatch.setattr(limits, "ACKNOWLEDGE_WITHIN_S", 10.0)
    async with at_work(bench) as (task, gate, _):
        async with held(bench):
            sending = asyncio.create_task(task.send("more", message_id="m-2"))
            await until(lambda: _admitted(bench, task.id, "m-2"))
            stopping = asyncio.create_task(task.stop())  # into the write that is under way
            await until(lambda: _ends(bench, task.id))
            await until(lambda: degraded(task))
        async with asyncio.timeout(ANSWER_WITHIN_S / 2):
            assert await stopping
            await asyncio.gather(sending, return_exceptions=True)
        gate.open.set()
        await event(task, "run.ended", end="stopped")


async def _admitted(bench: Bench, task_id: str, name: str) -> bool:
    return any(pending.message_id == name for pending in (await bench.tasks.state(task_id)).inbox)


async def _ends(bench: Bench, task_id: str) -> bool:
    run = (await bench.tasks.state(task_id)).run
    return run is None or run.ending is not None


async def test_p7_resends_in_an_outage_do_not_fill_the_history(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often somebody asks again, as they are told to: past the bound nothing of it is recorded."""
    monkeypatch.setattr(limits, "HISTORY_EVENTS_TAKEN_MAX", 150)
    async with at_work(bench, say("and")) as (task, gate, store):
        async with held(bench):
            for _ in range(16):
                with pytest.raises(Unavailable):
                    await task.send("more", message_id="m-2")
            (history,) = await bench.histories(task.id)
        gate.open.set()
        assert await task.result() == "done"
        stored = await bench.sound(task, store, replays=False)
    assert len(history.events) < 200
    assert [row.data["message_id"] for row in rows_of(stored, "message.promoted")][1:] == ["m-2"]


async def test_a_send_says_at_once_that_the_store_fails_and_a_resend_tells(bench: Bench) -> None:
    """B25: the message stays admitted and is acted on once; a resend gets its number."""
    agent = bench.agent(say("yes"), say("done"), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "run.ended")
        async with held(bench):
            with pytest.raises(Unavailable, match="not in the store yet"):
                await task.send("more", message_id="m-2")
            assert await degraded(task)
        numbers: list[int] = []

        async def resent() -> bool:
            # The write that was under way may fail yet, and the next one waits: both may take longer than an answer.
            with contextlib.suppress(Unavailable):
                numbers.append(await task.send("more", message_id="m-2"))
            return bool(numbers)

        await until(resent)
        (number,) = numbers
        await event(task, "run.ended", after=number)
        stored = await bench.sound(task, app.store, replays=False)
        assert not await degraded(task)
    assert [row.number for row in rows_of(stored, "message.admitted") if row.data["message_id"] == "m-2"] == [number]
    assert len(rows_of(stored, "message.promoted")) == 2


async def test_a_stop_is_not_acknowledged_before_its_fence_stands(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="read")
    async def look_up() -> str:
        await gate.pass_through()
        return "found"

    agent = bench.agent(call("look_up"), say("done"), tools=[look_up])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        async with held(bench):
            with pytest.raises(Unavailable, match="fence"):
                await task.stop()
        await event(task, "run.ended", end="stopped")
        assert await task.stop() is False
        await bench.sound(task, app.store, replays=False)
