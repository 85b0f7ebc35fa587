"""Continue-as-new: a long task moves to a new history, and nothing of it is lost, doubled or forgotten."""

import asyncio
import contextlib

import pytest
from temporalio.client import Client
from temporalio.service import RPCError

from perdure import Task, tool
from perdure.core.content import UserEntry
from perdure.core.errors import StoreUnavailable, TaskClosed, Unavailable
from perdure.core.log import Batch
from perdure.temporal.contracts import InboxItem
from perdure.testing import call, calls, say
from tests.temporal.bench import Bench, Gate, ended, entries_of, event, item, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

BOUND = 250
"""Events of one history in these tests: about twenty turns."""


@tool(effect="read")
async def look_up(word: str) -> str:
    """Look a word up."""
    return f"meaning of {word}"


LOOK = call("look_up", {"word": "dusk"})


async def resent(bench: Bench, task_id: str, what: InboxItem) -> int:
    """Send until it is acknowledged, as a front door's client would."""
    while True:
        try:
            receipt = await bench.tasks.send(task_id, what)
        except Unavailable:
            await asyncio.sleep(0.02)
            continue
        assert receipt.number is not None
        return receipt.number


@pytest.mark.slow
async def test_sixty_turns_over_several_histories_are_one_task(bench: Bench) -> None:
    turns = 61
    agent = bench.agent(*([LOOK] * (turns - 1)), say("done"), tools=[look_up])
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=BOUND))
        numbers = {}
        for index in range(12):
            await event(task, "model.answered", count=1 + 4 * index)
            numbers[f"m-{index}"] = await resent(bench, task.id, item(f"m-{index}", lane="steer"))
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
        histories = await bench.histories(task.id)
    assert len(histories) > 2
    for history in histories:
        assert len(history.events) < BOUND + 60
        started = history.events[0].workflow_execution_started_event_attributes
        assert started.workflow_task_timeout.ToSeconds() == 2
    admitted = {row.data["message_id"]: row.number for row in rows_of(stored, "message.admitted")}
    assert {name: admitted[name] for name in numbers} == numbers
    said = [entry.message.message_id for entry in entries_of(stored) if isinstance(entry, UserEntry)]
    assert said == ["m-first", *numbers]
    assert len(rows_of(stored, "model.answered")) == turns
    assert len(rows_of(stored, "run.started")) == 1


async def test_a_resting_task_continues_between_runs(bench: Bench) -> None:
    agent = bench.agent(*([say("yes")] * 40), after_answer="input_required")
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=60))
        for index in range(7):
            await event(task, "run.ended", count=index + 1)
            await resent(bench, task.id, item(f"m-{index}"))
        await event(task, "run.ended", count=8)
        stored = await bench.sound(task, app.store)
        # How often it finds itself idle depends on how soon the next message comes: at least once.
        assert len(await bench.histories(task.id)) >= 2
        # P1: what an earlier history admitted is recognised in a later one.
        admitted = {row.data["message_id"]: row.number for row in rows_of(stored, "message.admitted")}
        assert await resent(bench, task.id, item("m-0")) == admitted["m-0"]
        assert (await bench.tasks.state(task.id)).last_number == len(stored)
    assert len(rows_of(stored, "run.ended")) == 8


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(3))
async def test_a_stop_among_the_rolls_stops(bench: Bench, round_: int) -> None:
    agent = bench.agent(*([LOOK] * 99), tools=[look_up])
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=40))
        await event(task, "model.answered", count=5 + 2 * round_)
        while True:
            try:
                assert await task.stop()
            except Unavailable:
                continue
            break
        begun = len(rows_of(await bench.sound(task, app.store), "model.started"))
        await event(task, "run.ended", end="stopped")
        await resent(bench, task.id, item("m-next"))
        await event(task, "run.started", count=2)
        await task.cancel()
        await ended(task, "canceled")
        stored = await bench.sound(task, app.store)
        assert [row for row in rows_of(stored, "model.started") if row.run == 1][begun:] == []
        assert len(await bench.histories(task.id)) > 1


async def test_a_write_that_failed_just_before_it_rolls_holds_nothing_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later rows reached the store before the one whose write failed; the next history must know that they did."""
    gates, written = (Gate(), Gate()), Gate()

    @tool(effect="idempotent")
    async def wait(index: int) -> str:
        await gates[index].pass_through()
        return "x"

    agent = bench.agent(calls(*(call("wait", {"index": index}) for index in range(2))), say("done"), tools=[wait])
    async with bench.halves(agent) as halves, halves.writing():
        task = halves.task(await bench.start(agent, history_events_max=10))
        await gates[0].wait_reached()
        write = halves.store.write

        async def fails_once(batch: Batch, at_ms: int) -> None:
            if not written.reached.is_set():
                await written.pass_through()
                raise StoreUnavailable("for a moment")
            await write(batch, at_ms)

        monkeypatch.setattr(halves.store, "write", fails_once)
        await bench.client.get_workflow_handle(task.id).signal("child_done", args=["t-child", "completed"])
        await written.wait_reached()
        gates[0].open.set()
        await gates[1].wait_reached()
        written.open.set()
        await until(lambda: degraded(task))
        gates[1].open.set()
        assert await task.result() == "done"
        await until(lambda: closed(bench, task.id))
        await bench.sound(task, halves.store)
        assert len(await bench.histories(task.id)) > 1


async def degraded(task: Task) -> bool:
    return (await task.monitor()).degraded


# --- while it waits to roll: a handler that the store keeps waiting -------------------------------------------


async def rolling(bench: Bench, task: Task) -> "asyncio.Task[object]":
    """Bring the task to where it wants to roll, kept from it by an update whose store write nobody does."""
    await event(task, "model.answered", count=2)
    sending = asyncio.create_task(bench.inbox(task.id, item("m-held")))

    async def held() -> bool:
        monitor = await task.monitor()
        return not monitor.flights and monitor.history_events >= 60

    await until(held)
    return sending


async def test_updates_are_refused_as_retryable_while_it_rolls(bench: Bench) -> None:
    agent = bench.agent(*([LOOK] * 10), say("done"), tools=[look_up])
    async with bench.halves(agent) as halves:
        async with halves.writing():
            task = halves.task(await bench.start(agent, history_events_max=60))
            await event(task, "model.answered")
        sending = await rolling(bench, task)
        for request in (task.stop(), task.send("more", message_id="m-refused"), task.cancel()):
            with pytest.raises(Unavailable, match="send again"):
                await request
        async with halves.writing():
            await sending
            await resent(bench, task.id, item("m-refused", "more"))
            assert await task.result() == "done"
            stored = await bench.sound(task, halves.store)
    said = [entry.message.message_id for entry in entries_of(stored) if isinstance(entry, UserEntry)]
    assert said == ["m-first", "m-held", "m-refused"]


@pytest.mark.parametrize("how", ["signal", "temporal"])
async def test_a_cancel_while_it_rolls_is_not_lost(bench: Bench, client: Client, how: str) -> None:
    agent = bench.agent(*([LOOK] * 10), say("done"), tools=[look_up])
    async with bench.halves(agent) as halves:
        async with halves.writing():
            task = halves.task(await bench.start(agent, history_events_max=60))
            await event(task, "model.answered")
        sending = await rolling(bench, task)
        handle = client.get_workflow_handle(task.id)
        await (handle.signal("cancel") if how == "signal" else handle.cancel())
        async with halves.writing():
            await ended(task, "canceled")
            with contextlib.suppress(TaskClosed, RPCError):
                await sending
            await until(lambda: closed(bench, task.id))
            stored = await bench.sound(task, halves.store)
    assert rows_of(stored, "task.status")[-1].data["unprocessed"] == ["m-held"]


async def closed(bench: Bench, task_id: str) -> bool:
    description = await bench.client.get_workflow_handle(task_id).describe()
    return description.close_time is not None
