"""Temporal's limits on updates, ten at once and two thousand in one history, are nobody's problem.

The limit of a history is tried with a server that has a small one, and by hand with the real one.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.api.enums.v1 import EventType

from perdure import Task, tool
from perdure.core.errors import InvalidInput, MessageNotWaiting, RunFailed
from perdure.core.ports import ToolPort
from perdure.temporal.connection import temporal_client
from perdure.temporal.embedded_binary import find_binary
from perdure.temporal.embedded_launch import Launch, Ports
from perdure.temporal.settings import RemoteSettings
from perdure.testing import call, say
from tests.temporal.bench import Bench, Gate, ended, event, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SMALL = 20
"""Updates that the small server takes in one history."""


class SmallLaunch(Launch):
    """A server in memory that takes few updates in one history."""

    def _arguments(self, ports: Ports) -> list[str]:
        return [*super()._arguments(ports), "--dynamic-config-value", f"history.maxTotalUpdates={SMALL}"]


@pytest_asyncio.fixture(loop_scope="session")
async def small(tmp_path: Path) -> AsyncIterator[Bench]:
    launch = SmallLaunch(find_binary(None), None, None, ui=False, timeout_s=30.0, environment=os.environ)
    server, ports = await launch.first()
    address = f"127.0.0.1:{ports.frontend}"
    try:
        async with temporal_client(RemoteSettings(address=address, tls=False)) as client:
            yield Bench(address, tmp_path, client)
    finally:
        await server.stop(0)


def held(gate: Gate) -> ToolPort:
    @tool(effect="read", name="held")
    async def hold() -> str:
        await gate.pass_through()
        return "x"

    return hold


async def updates(bench: Bench, task: Task) -> list[int]:
    """Return how many updates each of the task's histories has taken."""
    accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    histories = await bench.histories(task.id)
    return [sum(each.event_type == accepted for each in history.events) for history in histories]


async def test_three_hundred_mixed_operations_at_once(bench: Bench) -> None:
    """P1: each is answered, by what it asked or by a refusal that names it, and every message is accounted for."""
    agent = bench.agent(
        call("ask_participant", {"question": "Which?"}), *([say("done")] * 400), after_answer="input_required"
    )
    async with bench.app(agent) as app:
        task = await app.send("go", message_id="m-first")
        question = await event(task, "help.requested")
        early = [f"e-{n}" for n in range(40)]
        await asyncio.gather(*(task.send("early", message_id=name, lane="queue") for name in early))
        late = [f"l-{n}" for n in range(150)]
        asked: list[Any] = []
        for number in range(300):
            match number % 15:
                case 0 | 1 | 2 | 3 | 4 | 5 | 6:
                    asked.append(task.send("late", message_id=late[len(asked) // 2], lane="queue"))
                case 7 | 8 | 9:
                    asked.append(task.steer(early[number % 40]))
                case 10 | 11:
                    asked.append(task.withdraw(early[(number * 7) % 40]))
                case 12 | 13:
                    asked.append(task.answer(question.help_id, f"answer {number}"))
                case _:
                    asked.append(task.stop())
        found = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in found if isinstance(each, BaseException)]
        assert all(isinstance(each, InvalidInput) for each in refused), refused
        for each in refused:
            assert isinstance(each, MessageNotWaiting) or each.field == "help_id", each  # type: ignore[attr-defined]
        assert [each for each in found if each is True], "one of the stops stopped the run"
        took = sum(await updates(bench, task))
        assert took < 30, f"300 operations took {took} updates"

        async def rests() -> bool:
            return not (await task.inbox()).runnable and (await task.row()).state == "input_required"

        await until(rests)
        inbox = await task.inbox()
        stored = await bench.sound(task, app.store, replays=False)
    admitted = [str(row.data["message_id"]) for row in rows_of(stored, "message.admitted")]
    promoted = [str(row.data["message_id"]) for row in rows_of(stored, "message.promoted")]
    withdrawn = [str(row.data["message_id"]) for row in rows_of(stored, "message.withdrawn")]
    waiting = [each.message_id for each in inbox.messages]
    assert len(set(admitted)) == len(admitted)
    assert sorted(promoted + withdrawn + waiting) == sorted(admitted)


async def test_a_history_that_takes_no_more_updates_takes_everything_else(small: Bench) -> None:
    """While a tool holds the task in one history: messages, moves, withdrawals and then a stop, all acknowledged."""
    gate = Gate()
    agent = small.agent(call("held"), *([say("done")] * 9), tools=[held(gate)], after_answer="input_required")
    async with small.app(agent) as app:
        task = await app.send("go", message_id="m-first")
        await gate.wait_reached()
        for number in range(SMALL):
            name = f"m-{number}"
            sent = await task.send("more", message_id=name, lane="queue")
            assert await task.send("more", message_id=name, lane="queue") == sent  # P1: a resend, by whatever way
            assert await task.steer(name) > sent
            if number % 2:
                await task.withdraw(name)
                with pytest.raises(MessageNotWaiting):
                    await task.withdraw(name)
        assert await updates(small, task) == [SMALL]
        assert await task.stop() is True
        with pytest.raises(RunFailed, match="stopped"):
            await task.result()
        assert [each.message_id for each in (await task.inbox()).parked] == [f"m-{n}" for n in range(0, SMALL, 2)]
        await task.send("go on", message_id="m-last")
        await event(task, "run.ended", end="answered")
        stored = await small.sound(task, app.store)
    promoted = [str(row.data["message_id"]) for row in rows_of(stored, "message.promoted")]
    assert sorted(promoted) == sorted(["m-first", "m-last", *(f"m-{n}" for n in range(0, SMALL, 2))])


async def test_a_task_that_continues_takes_updates_again_and_keeps_its_answers(small: Bench) -> None:
    """A stop by signal ends the run, and the task continues in a new history before the stop's answer is fetched."""
    gate = Gate()
    agent = small.agent(call("held"), *([say("done")] * 9), tools=[held(gate)], after_answer="input_required")
    async with small.app(agent) as app:
        task = app.task(await small.start(agent, history_events_max=100))
        await gate.wait_reached()
        for number in range(SMALL + 5):
            await task.send("more", message_id=f"m-{number}", lane="queue")
        assert await task.stop() is True

        async def continued() -> bool:
            return len(await small.histories(task.id)) > 1

        await until(continued)
        await task.withdraw("m-0")
        assert (await updates(small, task))[-1] >= 1
        await task.cancel()
        status = await ended(task, "canceled")
        assert len(status.data["unprocessed"]) == SMALL + 4  # type: ignore[arg-type] # a list of ids
        await small.sound(task, app.store)


async def test_a_cancel_is_taken_where_no_update_is(small: Bench) -> None:
    gate = Gate()
    agent = small.agent(call("held"), say("never"), tools=[held(gate)])
    async with small.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        for number in range(SMALL):
            await task.send("more", message_id=f"m-{number}")
        await task.cancel()
        await ended(task, "canceled")
        await small.sound(task, app.store)


@pytest.mark.full
async def test_two_and_a_half_thousand_operations_in_one_history(bench: Bench) -> None:
    """One after the other, as one client would, while a tool holds the task: more than Temporal takes as updates."""
    gate = Gate()
    agent = bench.agent(call("held"), *([say("done")] * 9), tools=[held(gate)], after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go", message_id="m-first")
        await gate.wait_reached()
        for number in range(500):
            name = f"m-{number}"
            await task.send("more", message_id=name, lane="queue")
            for _ in range(3):
                await task.steer(name)
            await task.withdraw(name)
        (taken,) = await updates(bench, task)
        assert taken == 2_000
        assert await task.stop() is True
        await event(task, "run.ended", end="stopped")
        assert (await task.inbox()).messages == ()
        stored = await bench.sound(task, app.store, replays=False)
    assert len(rows_of(stored, "message.withdrawn")) == 500
