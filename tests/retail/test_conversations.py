"""Forty real conversations through real workers that are killed at random, judged by the shops' own logs.

Each conversation has its own copy of the data. Eight run at a time on two workers; a worker is killed with SIGKILL
every 15 to 30 seconds and another started. The conversations begin anew, on fresh copies, until ten kills have cut a
call off; all that were begun are judged. The bound on it all is there to fail rather than hang.
"""

import asyncio
import shutil
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random

import pytest

from perdure import Settings, open_app
from perdure.app.processes import WorkerProcess
from tests.retail.clerk import REFERENCE, Place, clerk
from tests.retail.conversing import SEED_VARIABLE, Desk, seeds
from tests.retail.data import Data, Task
from tests.retail.figures import figures
from tests.retail.fleet import Fleet
from tests.retail.judge import Direct
from tests.retail.reporting import judged, print_logs, report

ROOT = Path(__file__).parents[2]
CONVERSATIONS_AT_ONCE = 8
WORKERS = 2
CALL_LOW_S, CALL_HIGH_S = 3.0, 8.0
HITS_MIN = 10
WITHIN_S = 540.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds())
async def test_no_kill_makes_a_difference(
    seed: int,
    retail: Path,
    data: Data,
    tasks: tuple[Task, ...],
    expected: dict[int, Direct],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    print(f"seed {seed} ({SEED_VARIABLE} sets another)")
    home, shops = tmp_path / "home", tmp_path / "shops"
    shops.mkdir()
    place = Place(retail, shops, seed, CALL_LOW_S, CALL_HIGH_S)
    boots = count(1)

    async def start() -> WorkerProcess:
        log = tmp_path / f"worker-{next(boots)}.log"
        return await WorkerProcess.start(REFERENCE, home, folder=ROOT, environment=place.environment, log=log)

    settings = Settings.from_environment({}, home=home)
    began = time.monotonic()
    async with open_app(clerk(place), settings=settings, worker=False) as app:
        desk = Desk(app, lambda task_id, text: app.send(text, task_id=task_id), tasks, data, shops)
        fleet = Fleet(start, desk.shops, Random(seed))
        try:
            async with asyncio.timeout(WITHIN_S):
                await fleet.open(WORKERS)
                async with asyncio.TaskGroup() as both:
                    both.create_task(fleet.storm(desk.over))
                    both.create_task(desk.work(CONVERSATIONS_AT_ONCE, lambda: fleet.hits >= HITS_MIN))
        except TimeoutError:
            pytest.fail(f"not over after {WITHIN_S:g} s: {', '.join(desk.under_way)} have not ended")
        finally:
            await fleet.close()

    found = judged(desk.ended, expected, tasks)
    summary = figures(seed, time.monotonic() - began, fleet.kills, desk.ended)
    report("retail-conversations", summary, found, record_property)
    if found:
        print_logs(tmp_path, "worker-*.log")
    assert not found, "\n".join(found)
    shutil.rmtree(shops)  # hundreds of megabytes, of use only where something went wrong
    assert len(desk.ended) >= len(tasks)
    assert fleet.hits >= HITS_MIN
