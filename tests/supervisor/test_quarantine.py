"""A15, R12: a task that kills its worker each time, beside others in the same worker."""

import pytest

from perdure.core import limits
from tests.supervisor.fleet import watching
from tests.supervisor.test_deaths import result
from tests.temporal.bench import Bench, event, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

NEIGHBOURS = 8


async def test_r12_a_poison_task_ends_at_its_limit_and_its_neighbours_finish_uncounted(bench: Bench) -> None:
    async with watching(bench) as watch:
        quarantined = {child.pid for child in watch.supervisor.workers if child.part == "quarantine"}
        neighbours = [await watch.app.send("neighbour") for _ in range(NEIGHBOURS)]
        await until(lambda: bench.outside.count("neighbour") == NEIGHBOURS)
        shared = {noted.pid for noted in bench.outside.of("neighbour")}
        poison = await watch.app.send("poison")
        ended = await event(poison, "run.ended", end="failed")
        assert ended.data["reason"] == "crash_loop"
        watch.go()
        for task in neighbours:
            assert await result(task) == "ok: neighbour done"
        stored = await bench.sound(poison, watch.app.store)
        state = await bench.tasks.state(poison.id)
        for task in neighbours:
            await bench.sound(task, watch.app.store)
            assert (await bench.tasks.state(task.id)).crashes == 0
        after = await watch.app.send("talk")
        assert await result(after) == "talked"
    pids = [noted.pid for noted in bench.outside.of("poison")]
    assert len(set(pids)) == len(pids), "each attempt ran in a worker of its own"
    alone = [pid for pid in pids if pid not in shared]
    assert len(alone) == limits.CRASHES_MAX
    assert 1 <= len(pids) - len(alone) <= limits.SHARED_DEATHS_BEFORE_QUARANTINE
    assert pids[-1] not in shared
    assert quarantined & set(pids), "its last attempts ran in quarantine"
    assert [row.data["failure"] for row in rows_of(stored, "tool.failed")] == ["worker_died"] * len(pids)
    assert state.entries == 2, "the message and the reply that asked for the call: nothing grows with each try"
    hit = {noted.key for noted in bench.outside.of("neighbour.again")}
    assert hit, "the poison did cost its neighbours a worker"
    assert {task.id for task in neighbours} >= {key.partition("/")[0] for key in hit}
