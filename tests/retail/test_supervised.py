"""Forty real conversations while a worker, the app or Temporal is killed every 2 to 4 seconds, judged by the shops.

*The app* is a process that takes the customers' requests, sends them as messages, and supervises four workers and their
standby (`front.py`): killed, it takes all its workers along. Whoever runs it here starts it again at once, and asks
again what was not acknowledged (`keeper.py`); the new app reports the deaths of the old one's workers. *Temporal* is
the embedded server, which belongs to this process; its owner starts it again on the same ports. The customers are in
this process too: they read their conversations from the store, and are never killed.

A call to a shop takes 0.2 to 1 s. The conversations begin anew, on fresh copies, until thirty kills have hit an open
`once` call, by the shops' own notes: it had come, and was not answered when the kill came. The kills go on until that
is so and all forty have ended; what was begun then is let end, and all is judged. The limit of crashes in a row is one
above the kills: they are this test's doing, and no task's own.
"""

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest

from perdure import Settings, open_app
from perdure.cli.signals import first_of
from perdure.temporal.settings import EmbeddedSettings
from tests.retail.clerk import Place, clerk
from tests.retail.conversing import SEED_VARIABLE, Desk, seeds
from tests.retail.data import Data, Task
from tests.retail.figures import Times, figures
from tests.retail.judge import Direct
from tests.retail.keeper import Keeper
from tests.retail.reporting import judged, print_logs, report
from tests.retail.storm import KILLS_MAX, Storm

CONVERSATIONS_AT_ONCE = 8
CALL_LOW_S, CALL_HIGH_S = 0.2, 1.0
HITS_MIN = 30
WITHIN_S = 540.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the app's workers in /proc"),
]


@pytest.mark.parametrize("seed", seeds())
async def test_no_kill_of_anyone_makes_a_difference(
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
    place = Place(retail, shops, seed, CALL_LOW_S, CALL_HIGH_S, crashes_max=KILLS_MAX + 1)
    settings = Settings.from_environment({}, home=home)
    assert isinstance(settings.temporal, EmbeddedSettings)
    told = {**place.environment, "PERDURE_HOME": str(home), "TEMPORAL_ADDRESS": "", "PERDURE_STORE_URL": ""}
    began = time.monotonic()
    async with open_app(clerk(place), settings=settings, worker=False) as app:
        keeper = Keeper(told, home)
        desk = Desk(app, keeper.ask, tasks, data, shops)
        storm = Storm(keeper, settings.temporal.database, desk.shops, Random(seed), KILLS_MAX)

        def enough() -> bool:
            return storm.hits >= HITS_MIN or storm.spent

        async def converse() -> None:
            async with asyncio.TaskGroup() as both:
                both.create_task(storm.rage(lambda: enough() and desk.had_each))
                both.create_task(desk.work(CONVERSATIONS_AT_ONCE, enough))

        try:
            async with asyncio.timeout(WITHIN_S):
                await first_of(converse(), keeper.keep())
        except TimeoutError:
            print_logs(home, "*.log")
            pytest.fail(f"not over after {WITHIN_S:g} s: {', '.join(desk.under_way)} have not ended")

    found = judged(desk.ended, expected, tasks)
    summary = figures(seed, time.monotonic() - began, storm.kills, desk.ended)
    down = asdict(Times.of(keeper.down_ms))
    report("retail-supervised", summary, found, record_property, app_kill_to_up=down, asked_again=keeper.asked_again)
    if found:
        print_logs(home, "*.log")
    assert not found, "\n".join(found)
    shutil.rmtree(shops)  # hundreds of megabytes, of use only where something went wrong
    assert len(desk.ended) >= len(tasks)
    assert storm.hits >= HITS_MIN
    assert set(summary.killed) == {"worker", "app", "temporal"}
