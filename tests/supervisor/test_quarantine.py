"""A15, R12: a task that kills its worker each time, beside others in the same worker."""

import asyncio

import pytest
from temporalio.api.enums.v1 import EventType

from perdure import Task
from perdure.core import limits
from perdure.core.failure import Failure
from tests.supervisor.fleet import Watch, watching
from tests.supervisor.test_deaths import result
from tests.temporal.bench import Bench, event, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

NEIGHBOURS_MIN = 8
ROOM_S = 60.0
"""A bound for filling both workers: Temporal hands each task to whichever asks."""


async def test_r12_a_poison_task_ends_at_its_limit_and_its_neighbours_finish_uncounted(bench: Bench) -> None:
    async with watching(bench) as watch:
        quarantined = {child.pid for child in watch.supervisor.workers if child.part == "quarantine"}
        neighbours = await in_every_worker(watch)
        shared = pids_of_neighbours(watch)
        poison = await watch.app.send("poison")
        ended = await event(poison, "run.ended", end="failed")
        assert ended.data["reason"] == "crash_loop"
        watch.go()
        # Before their last turn: one without a crash takes a count off.
        lost = {task.id: await open_and_uncounted(bench, task) for task in neighbours}
        for task in neighbours:
            asked = await event(task, "help.requested")
            assert asked.data["text"] == "neighbour done, and now?"
            await task.answer(asked.help_id, "nothing more")
            assert await result(task) == "ok: nothing more"
        stored = await bench.sound(poison, watch.app.store)
        poisoned = await bench.tasks.state(poison.id)
        for task in neighbours:
            await bench.sound(task, watch.app.store)
            state = await bench.tasks.state(task.id)
            assert (state.crashes, state.shared_deaths) == (0, 0)
        after = await watch.app.send("talk")
        assert await result(after) == "talked"
        claims = await failures(bench, poison.id)
    pids = [noted.pid for noted in bench.outside.of("poison")]
    assert len(set(pids)) == len(pids), "each attempt ran in a worker of its own"
    alone = [pid for pid in pids if claims[pid].alone]
    assert len(alone) == limits.CRASHES_MAX
    assert not shared & set(alone), "a death among neighbours was held against it"
    assert 1 <= len(pids) - len(alone) <= limits.SHARED_DEATHS_BEFORE_QUARANTINE
    assert pids[-1] not in shared
    assert quarantined & set(pids), "its last attempts ran in quarantine"
    assert {claim.kind for claim in claims.values()} == {"worker_died"}
    assert {row.data["failure"] for row in rows_of(stored, "tool.failed")} == {"worker_died"}
    assert poisoned.entries == 2, "the message and the reply that asked for the call: nothing grows with each try"
    hit = {noted.key for noted in bench.outside.of("neighbour.again")}
    assert hit, "the poison did cost its neighbours a worker"
    assert {task for task, deaths in lost.items() if deaths} == {key.partition("/")[0] for key in hit}


async def open_and_uncounted(bench: Bench, task: Task) -> int:
    """See that a neighbour, while its run is open, has the deaths that it shared counted as that; return how many."""
    await event(task, "help.requested")
    deaths, state = await failures(bench, task.id), await bench.tasks.state(task.id)
    assert state.run is not None
    assert (state.crashes, state.shared_deaths) == (0, len(deaths))
    assert not any(death.alone for death in deaths.values())
    return len(deaths)


async def in_every_worker(watch: Watch) -> list[Task]:
    """Start neighbours until there is one in each worker that takes calls, so that the poison is beside some."""
    workers = {child.pid for child in watch.supervisor.workers if child.part == "calls"}
    begun: list[Task] = []
    async with asyncio.timeout(ROOM_S):
        while len(begun) < NEIGHBOURS_MIN or not workers <= pids_of_neighbours(watch):
            begun.append(await watch.app.send("neighbour"))
            await until(lambda: watch.bench.outside.count("neighbour") == len(begun))
    return begun


def pids_of_neighbours(watch: Watch) -> set[int]:
    return {noted.pid for noted in watch.bench.outside.of("neighbour")}


async def failures(bench: Bench, task_id: str) -> dict[int, Failure]:
    """Return what was told of each worker in which the task had an attempt, by its process number."""
    (history,) = await bench.histories(task_id)
    found: dict[int, Failure] = {}
    for each in history.events:
        if each.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED:
            told = each.activity_task_failed_event_attributes.failure.application_failure_info.details
            (detail,) = await bench.client.data_converter.decode(told.payloads)
            failure = Failure.model_validate(detail)
            found[int(failure.worker.partition("@")[0])] = failure
    return found
