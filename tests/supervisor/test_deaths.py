"""A worker dies: what it had in hand goes on at once, what it had started dies with it, and nothing else does."""

import asyncio
import os
import signal

import pytest
from temporalio.api.enums.v1 import EventType, TaskQueueKind

from perdure import Task
from perdure.app.supervisor import Fleet, supervised
from perdure.core.errors import ConfigurationError
from tests.supervisor.fleet import FOLDER, environment, is_gone, kill, state_of, stop, watching
from tests.temporal.bench import Bench, logged, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

AT_ONCE_S = 8.0
"""Far above what a busy machine needs. A held call's heartbeat timeout is longer than a test, and finds nothing."""


async def result(task: Task) -> str:
    async with asyncio.timeout(60):
        return await task.result()


async def test_p10_a_death_is_acted_on_at_once_and_takes_what_was_started_along(bench: Bench) -> None:
    async with watching(bench) as watch:
        task = await watch.app.send("spawning")
        victim = await watch.pid_of("spawning")
        sleeper = int(next(noted.what for noted in bench.outside.all() if noted.what.startswith("sleeper")).split()[1])
        assert not is_gone(sleeper)
        kill(victim)
        await until(lambda: bench.outside.count("spawning") == 2, AT_ONCE_S)
        await until(lambda: is_gone(sleeper), AT_ONCE_S)
        again = bench.outside.of("spawning")[-1].pid
        watch.go()
        assert await result(task) == "ok: spawning done"
        stored = await bench.sound(task, watch.app.store)
        await watch.supervisor.full()
        assert victim not in {child.pid for child in watch.supervisor.workers}
        assert len(watch.supervisor.workers) == 4
    assert again != victim
    assert [row.data["failure"] for row in rows_of(stored, "tool.failed")] == ["worker_died"]
    died = [change for change in watch.changes if change.kind == "died" and not change.asked]
    assert [(change.pid, change.code) for change in died] == [(victim, -signal.SIGKILL)]
    assert all(is_gone(child.pid) for child in watch.supervisor.workers)


async def test_p10_no_workflow_task_is_kept_for_a_dead_worker(bench: Bench) -> None:
    """Its sticky queue is cleared before its attempts fail: what they wake is for any worker, from the first."""
    async with watching(bench) as watch:
        task = await watch.app.send("held")
        await watch.pid_of("held")
        # Both, so that whichever of them has the workflow cached is dead.
        for pid in [child.pid for child in watch.supervisor.workers if child.part == "calls"]:
            kill(pid)
        await until(lambda: bench.outside.count("held") == 2, AT_ONCE_S)
        watch.go()
        assert await result(task) == "ok: held done"
        (history,) = await bench.histories(task.id)
    kinds = [each.event_type for each in history.events]
    failed = kinds.index(EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED)
    woken = history.events[kinds.index(EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, failed)]
    queue = woken.workflow_task_scheduled_event_attributes.task_queue
    assert TaskQueueKind.Name(queue.kind) == "TASK_QUEUE_KIND_NORMAL"
    assert queue.name == bench.queue


async def test_an_idle_workers_death_costs_the_next_message_no_timeout(bench: Bench) -> None:
    """Its sticky queue is cleared too, though it had no attempt in hand."""
    async with watching(bench) as watch:
        task = await watch.app.send("held")
        await watch.pid_of("held")
        before = bench.outside.count("held")
        for pid in [child.pid for child in watch.supervisor.workers if child.part == "calls"]:
            kill(pid)
        await until(lambda: bench.outside.count("held") > before, AT_ONCE_S)
        watch.go()
        assert await result(task) == "ok: held done"
        await bench.sound(task, watch.app.store)


async def test_a_stopped_worker_is_never_declared_dead(bench: Bench) -> None:
    """It is slow, for all that anybody knows: its attempt is its own until it answers or its heartbeat is missed."""
    async with watching(bench) as watch:
        task = await watch.app.send("held")
        victim = await watch.pid_of("held")
        stop(victim)
        # Longer than a report with all its sweeps would take: whole tasks are done by the others meanwhile.
        for _ in range(3):
            assert await result(await watch.app.send("talk")) == "talked"
        rows = await logged(watch.app.store, task.id)
        assert rows_of(rows, "tool.failed") == []
        assert state_of(victim) == "T"
        watch.go()
        os.kill(victim, signal.SIGCONT)
        assert await result(task) == "ok: held done"
        await bench.sound(task, watch.app.store)
    assert [bench.outside.count(what) for what in ("held", "held.end")] == [1, 1]
    assert not [change for change in watch.changes if change.kind == "died" and not change.asked]


async def test_when_the_nursery_is_killed_its_workers_are_and_the_work_goes_on(bench: Bench) -> None:
    async with watching(bench) as watch:
        task = await watch.app.send("held")
        await watch.pid_of("held")
        before, nursery = {child.pid for child in watch.supervisor.workers}, watch.supervisor.nursery_pid
        kill(nursery or 0)
        await until(lambda: bench.outside.count("held") == 2, 20)
        watch.go()
        assert await result(task) == "ok: held done"
        await bench.sound(task, watch.app.store)
        assert watch.supervisor.nursery_pid != nursery
    assert all(is_gone(pid) for pid in before)


async def test_what_the_workers_refuse_is_named(bench: Bench) -> None:
    fleet = Fleet("tests.supervisor.watched:nothing", bench.queue, FOLDER, bench.home / "log", environment(bench))
    with pytest.raises(ConfigurationError, match="has no 'nothing'"):
        async with supervised(fleet, bench.client, lambda change: None):
            raise AssertionError("it started")
