"""Forty real conversations through real workers that are killed at random, judged by the shops' own logs.

Each conversation has its own copy of the data. Eight run at a time on two workers; a worker is killed with SIGKILL
every 15 to 30 seconds and another started. The conversations begin anew, on fresh copies, until ten kills have cut a
call off; all that were begun are judged. The bound on it all is there to fail rather than hang.
"""

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import pytest

from perdure import App, Settings, open_app
from perdure.app.processes import WorkerProcess
from tests.retail.clerk import HOLD_SEED_VARIABLE, REFERENCE, SHOPS_VARIABLE, clerk
from tests.retail.data import FOLDER_VARIABLE, Data, Task, conversation
from tests.retail.figures import figures
from tests.retail.judge import Direct, direct
from tests.retail.killing import Fleet
from tests.retail.replaying import task_id_of
from tests.retail.shop import Shop, shop_path
from tests.retail.verdict import Ended, faults

ROOT = Path(__file__).parents[2]
CONVERSATIONS_AT_ONCE = 8
WORKERS = 2
HITS_MIN = 10
WITHIN_S = 540.0

SEED_VARIABLE = "PERDURE_TEST_SEED"
FULL_VARIABLE = "PERDURE_TEST_FULL"
REPORT_VARIABLE = "PERDURE_TEST_REPORT_DIR"
SEEDS = (20_240_611, 7, 4_711)


def seeds() -> Sequence[int]:
    """Return the seed of the environment, or one; all with the full tier."""
    given = os.environ.get(SEED_VARIABLE)
    if given:
        return (int(given),)
    return SEEDS if os.environ.get(FULL_VARIABLE) == "1" else SEEDS[:1]


class Desk:
    """Where conversations are begun, a bounded number at once, and where those that ended are kept."""

    def __init__(self, app: App, tasks: Sequence[Task], data: Data, folder: Path) -> None:
        self.ended: list[Ended] = []
        self.over = asyncio.Event()
        self._app = app
        self._data = data
        self._folder = folder
        self._under_way: dict[str, Shop] = {}
        self._waiting: Iterator[tuple[int, Task]] = ((number, task) for number in count(1) for task in tasks)
        self._enough: Callable[[], bool] = lambda: True

    def shops(self) -> Sequence[Shop]:
        """Return the shops of the conversations under way."""
        return tuple(self._under_way.values())

    @property
    def under_way(self) -> Sequence[str]:
        """The tasks that have not ended."""
        return tuple(self._under_way)

    async def work(self, enough: Callable[[], bool]) -> None:
        """Have every conversation once, and go on from the first until it is enough; all that began also end."""
        self._enough = enough
        async with asyncio.TaskGroup() as lanes:
            for _ in range(CONVERSATIONS_AT_ONCE):
                lanes.create_task(self._lane())
        self.over.set()

    async def _lane(self) -> None:
        for number, task in self._waiting:
            if number > 1 and self._enough():
                return
            await self._converse(task_id_of(task.id, number), task)

    async def _converse(self, task_id: str, task: Task) -> None:
        shop = await asyncio.to_thread(Shop.create, shop_path(self._folder, task_id), self._data)
        self._under_way[task_id] = shop
        handle = await self._app.send(task.request, task_id=task_id)
        events = tuple([event async for event in handle.events()])
        del self._under_way[task_id]
        self.ended.append(Ended(task_id, task.id, events, shop))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds())
async def test_no_kill_makes_a_difference(
    seed: int,
    retail: Path,
    data: Data,
    tasks: tuple[Task, ...],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    print(f"seed {seed} ({SEED_VARIABLE} sets another)")
    home, shops, straight = tmp_path / "home", tmp_path / "shops", tmp_path / "direct"
    for folder in (shops, straight):
        folder.mkdir()
    expected = {task.id: await asyncio.to_thread(direct, task, data, straight / f"{task.id}.db") for task in tasks}
    environment = {SHOPS_VARIABLE: str(shops), HOLD_SEED_VARIABLE: str(seed), FOLDER_VARIABLE: str(retail)}
    boots = count(1)

    async def start() -> WorkerProcess:
        log = tmp_path / f"worker-{next(boots)}.log"
        return await WorkerProcess.start(REFERENCE, home, folder=ROOT, environment=environment, log=log)

    settings = Settings.from_environment({}, home=home)
    began = time.monotonic()
    async with open_app(clerk(retail, shops, seed), settings=settings, worker=False) as app:
        desk = Desk(app, tasks, data, shops)
        fleet = Fleet(start, desk.shops, Random(seed))
        try:
            async with asyncio.timeout(WITHIN_S):
                await fleet.open(WORKERS)
                async with asyncio.TaskGroup() as both:
                    both.create_task(fleet.storm(desk.over))
                    both.create_task(desk.work(lambda: fleet.hits >= HITS_MIN))
        except TimeoutError:
            pytest.fail(f"not over after {WITHIN_S:g} s: {', '.join(desk.under_way)} have not ended")
        finally:
            await fleet.close()

    found = [fault for ended in desk.ended for fault in _judged(ended, expected, tasks)]
    summary = figures(seed, time.monotonic() - began, fleet.kills, desk.ended)
    _report(summary.lines(), partial(json.dumps, {**asdict(summary), "faults": found}), seed, record_property)
    if found:
        _print_logs(tmp_path)
    assert not found, "\n".join(found)
    shutil.rmtree(shops)  # hundreds of megabytes, of use only where something went wrong
    assert len(desk.ended) >= len(tasks)
    assert fleet.hits >= HITS_MIN


def _judged(ended: Ended, expected: dict[int, Direct], tasks: Sequence[Task]) -> list[str]:
    task = next(task for task in tasks if task.id == ended.conversation_id)
    return faults(ended, expected[task.id], conversation(task)[1])


def _report(
    lines: Sequence[str], as_json: Callable[[], str], seed: int, record_property: Callable[[str, object], None]
) -> None:
    print("\n".join(lines))
    for line in lines:
        record_property(*line.split(": ", 1))
    folder = os.environ.get(REPORT_VARIABLE)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"retail-conversations-{seed}.json").write_text(as_json() + "\n", encoding="utf-8")


def _print_logs(folder: Path) -> None:
    for log in sorted(folder.glob("worker-*.log")):
        print(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")
