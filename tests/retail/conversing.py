"""Where the conversations are held: a bounded number at once, again and again, each on its own copy of the data."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

from perdure import App
from tests.retail.data import Data, Task
from tests.retail.replaying import task_id_of
from tests.retail.shop import Shop, shop_path
from tests.retail.verdict import Ended

SEED_VARIABLE = "PERDURE_TEST_SEED"
FULL_VARIABLE = "PERDURE_TEST_FULL"
SEEDS = (20_240_611, 7, 4_711)

Ask = Callable[[str, str], Awaitable[object]]
"""Hands a request in under a task id; returns when it was acknowledged."""


def seeds() -> Sequence[int]:
    """Return the seed of the environment, or one; all with the full tier."""
    given = os.environ.get(SEED_VARIABLE)
    if given:
        return (int(given),)
    return SEEDS if os.environ.get(FULL_VARIABLE) == "1" else SEEDS[:1]


class Desk:
    """Where conversations are begun and followed, and where those that ended are kept.

    Requests are handed in with `ask`. They are followed in the store, by this process, which nobody kills.
    """

    def __init__(self, app: App, ask: Ask, tasks: Sequence[Task], data: Data, folder: Path) -> None:
        self.ended: list[Ended] = []
        self.over = asyncio.Event()
        self._app = app
        self._ask = ask
        self._data = data
        self._folder = folder
        self._count = len(tasks)
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

    @property
    def had_each(self) -> bool:
        """Whether every conversation has ended at least once."""
        return len({each.conversation_id for each in self.ended}) == self._count

    async def work(self, at_once: int, enough: Callable[[], bool]) -> None:
        """Have every conversation once, and go on from the first until it is enough; all that began also end."""
        self._enough = enough
        async with asyncio.TaskGroup() as lanes:
            for _ in range(at_once):
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
        await self._ask(task_id, task.request)
        events = tuple([event async for event in self._app.task(task_id).events()])
        del self._under_way[task_id]
        self.ended.append(Ended(task_id, task.id, events, shop))
