"""Reports of a death against a completion that comes first, or late. The "dead" worker lives, in this process."""

import asyncio

import pytest

from perdure import Call, tool
from perdure.core.agent import RetryPolicy
from perdure.temporal.deaths import Death, DeathReport
from perdure.testing import call, results, say
from tests.temporal.bench import Bench, Gate, event, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def identity_in(bench: Bench, task_id: str) -> str:
    """Return the worker of the task's only pending attempt."""
    described = await bench.client.get_workflow_handle(task_id).describe()
    (pending,) = described.raw_description.pending_activities
    return str(pending.last_worker_identity)


async def test_a_completion_that_came_before_the_report_wins(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="idempotent")
    async def held(call: Call) -> str:
        bench.outside.note("held", call.idempotency_key)
        await gate.pass_through()
        return "done"

    agent = bench.agent(call("held"), lambda transcript: say(results(transcript)[0].text), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        death = Death(await identity_in(bench, task.id), held=frozenset({task.id}))
        report = DeathReport(bench.client, bench.queue, death)
        run_id, dead = await report._dead_attempts(task.id)
        gate.open.set()
        await event(task, "tool.finished")
        for attempt in dead:
            await report._fail(task.id, run_id, attempt)
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    assert (len(dead), report.reported.completed_first, report.reported.failed) == (1, 1, 0)
    assert rows_of(stored, "tool.failed") == []
    assert bench.outside.count("held") == 1


@pytest.mark.parametrize("held_known", [True, False])
async def test_a_completion_that_races_the_report_leaves_one_result(bench: Bench, held_known: bool) -> None:
    gates: dict[str, Gate] = {}

    @tool(effect="idempotent", retry=RetryPolicy(attempts_max=3, first_ms=20, factor=1.0))
    async def held(call: Call) -> str:
        if call.attempt == 1:
            await gates.setdefault(call.task_id, Gate()).pass_through()
        return "done"

    agent = bench.agent(call("held"), lambda transcript: say(results(transcript)[0].text), tools=[held], asks=False)
    async with bench.app(agent) as app:
        tasks = [await app.send("go") for _ in range(8)]
        await until(lambda: len(gates) == len(tasks))
        identity = await identity_in(bench, tasks[0].id)
        known = frozenset(task.id for task in tasks) if held_known else None
        report = DeathReport(bench.client, bench.queue, Death(identity, held=known))
        telling = asyncio.create_task(report.at_once())
        for gate in gates.values():
            gate.open.set()
            await asyncio.sleep(0)
        await telling
        for task in tasks:
            assert await task.result() == "done"
            stored = await bench.sound(task, app.store)
            assert len(rows_of(stored, "tool.finished")) == 1
            assert {row.data["failure"] for row in rows_of(stored, "tool.failed")} <= {"worker_died"}


async def test_a_death_counts_against_the_one_that_was_alone(bench: Bench) -> None:
    """R12: by what the worker had noted; an attempt that never reached it proves nothing."""
    gates: dict[str, Gate] = {}

    @tool(effect="idempotent")
    async def held(call: Call) -> str:
        # The attempts after the report are held too: a turn that ends takes a crash off again.
        await gates.setdefault(call.task_id, Gate()).pass_through()
        return "done"

    agent = bench.agent(call("held"), say("done"), tools=[held])
    async with bench.app(agent) as app:
        tasks = [await app.send("go") for _ in range(3)]
        await until(lambda: len(gates) == len(tasks))
        identity = await identity_in(bench, tasks[0].id)
        one = frozenset({tasks[0].id})
        reported = await DeathReport(bench.client, bench.queue, Death(identity, held=one)).go_through()
        assert (reported.failed, reported.tasks) == (3, {task.id for task in tasks})
        for task in tasks:
            await event(task, "tool.started", attempt=2)
        counts = [await bench.tasks.state(task.id) for task in tasks]
        for gate in gates.values():
            gate.open.set()
        for task in tasks:
            assert await task.result() == "done"
    assert [(state.crashes, state.shared_deaths) for state in counts] == [(1, 0), (0, 1), (0, 1)]


async def test_an_end_that_was_asked_for_counts_against_nobody(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="idempotent")
    async def held(call: Call) -> str:
        if call.attempt == 1:
            await gate.pass_through()
        return "done"

    agent = bench.agent(call("held"), say("done"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        death = Death(await identity_in(bench, task.id), "shutdown", frozenset({task.id}))
        await DeathReport(bench.client, bench.queue, death).at_once()
        assert await task.result() == "done"
        gate.open.set()
        state = await bench.tasks.state(task.id)
        stored = await bench.sound(task, app.store)
    assert (state.crashes, state.shared_deaths) == (0, 0)
    assert [row.data["failure"] for row in rows_of(stored, "tool.failed")] == ["shutdown"]
