"""The fence (P9) against the attempt that it is for: started before the stop, and deaf to it.

A stop reaches a running attempt within milliseconds, mostly. Here it never does: what carries it is cut, as by a
network or a worker that hangs, and the attempt comes to the ledger after the stop was acknowledged.
"""

import asyncio
from typing import Any

import pytest

from perdure import Agent, Task, tool
from perdure.core.content import Entry
from perdure.core.ports import Ledgered, RecordedReply
from perdure.store import SqlStore, open_store
from perdure.temporal.activities import TaskActivities
from perdure.temporal.worker import running_worker
from perdure.testing import call, say
from tests.temporal.bench import WAIT_S, Bench, Gate, event

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


class Deaf(SqlStore):
    """A store whose beginnings wait behind a gate, and go on when they are told to stop."""

    def __init__(self, opened: SqlStore, gate: Gate, model: bool) -> None:
        super().__init__(opened._backend)
        self._gate = gate
        self._model = model

    async def begin_effect(self, *given: Any) -> Ledgered:
        await self._deafly(not self._model)
        return await super().begin_effect(*given)

    async def begin_model(self, *given: Any) -> RecordedReply | tuple[Entry, ...]:
        await self._deafly(self._model)
        return await super().begin_model(*given)

    async def _deafly(self, held: bool) -> None:
        passing = asyncio.create_task(self._gate.pass_through()) if held else None
        while passing is not None and not passing.done():
            try:
                await asyncio.shield(passing)
            except asyncio.CancelledError:
                continue


@pytest.mark.parametrize("model", [False, True], ids=["tool", "model"])
async def test_an_attempt_that_hears_of_no_stop_is_fenced(bench: Bench, model: bool) -> None:
    @tool(effect="once")
    async def touch() -> str:
        bench.outside.note("touch", "called")
        return "touched"

    def asked(_: object) -> Any:
        if model:
            bench.outside.note("touch", "asked")
        return call("touch")

    gate, agent = Gate(), bench.agent(asked, say("done"), tools=[touch])
    store = Deaf(await open_store(bench.settings.store_url), gate, model)
    try:
        async with _working(bench, agent, store):
            task = Task(await bench.start(agent), store, bench.tasks)
            await gate.wait_reached()
            assert await task.stop()
            gate.open.set()
            async with asyncio.timeout(WAIT_S):
                await event(task, "run.ended", end="stopped")
            assert [(noted.what, noted.key) for noted in bench.outside.all()] == []
            await bench.sound(task, store)
    finally:
        gate.open.set()
        await store.close()


def _working(bench: Bench, agent: Agent, store: SqlStore) -> Any:
    activities = TaskActivities(store, {agent.id: agent.live(store, "deaf", _now_ms)}, "deaf", _now_ms)
    return running_worker(bench.client, agent.id, activities, "deaf", 0.1)


def _now_ms() -> int:
    return 1
