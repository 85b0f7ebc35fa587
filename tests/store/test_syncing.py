"""What is synced to disk before a write returns: everything, but beginnings on which nothing depends."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from perdure.core.agent import EffectClass
from perdure.core.content import ModelReply
from perdure.core.effects import EffectRequest
from perdure.core.log import Batch
from perdure.core.ports import RecordedReply
from perdure.store import SqlStore
from perdure.store.backend import Backend
from tests.store.building import header, request

T = TypeVar("T")

TASK = "task-1"


class Noting:
    """The real backend, with a note of how each write asked to be committed."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.synced: list[bool] = []

    async def write(
        self, work: Callable[[Connection], T], *, synced: bool = True, committed: Callable[[], None] | None = None
    ) -> T:
        self.synced.append(synced)
        return await self.backend.write(work, synced=synced, committed=committed)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self.backend.read(work)

    async def close(self) -> None:
        await self.backend.close()


@pytest.fixture
def noting(store: SqlStore) -> Noting:
    noting = Noting(store._backend)
    store._backend = noting
    return noting


def begun(effect: EffectClass, attempt: int) -> EffectRequest:
    return request(TASK, effect=effect, attempt=attempt)


async def test_only_a_model_calls_first_attempt_waits_for_its_end(store: SqlStore, noting: Noting) -> None:
    await store.write(Batch(task_id=TASK, header=header(TASK)), 1)
    assert await store.begin_model(Batch(task_id=TASK), 1, 1, 1, "w", 2) == ()
    assert await store.begin_model(Batch(task_id=TASK), 1, 1, 2, "w", 3) == ()
    await store.record_reply(TASK, 1, 2, ModelReply(text="hi"), 4)
    assert noting.synced == [True, False, True, True]


async def test_what_finds_a_recorded_reply_is_synced_all_the_same(store: SqlStore, noting: Noting) -> None:
    await store.write(Batch(task_id=TASK, header=header(TASK)), 1)
    assert await store.begin_model(Batch(task_id=TASK), 1, 1, 1, "w", 2) == ()
    await store.record_reply(TASK, 1, 1, ModelReply(text="hi"), 3)
    noting.synced.clear()
    assert isinstance(await store.begin_model(Batch(task_id=TASK), 1, 1, 1, "w", 4), RecordedReply)
    assert noting.synced == [False, True]


@pytest.mark.parametrize(
    ("effect", "attempt", "synced"),
    [("read", 1, False), ("read", 2, True), ("idempotent", 1, True), ("once", 1, True)],
)
async def test_a_beginning_that_a_resolution_may_ask_for_is_synced(
    store: SqlStore, noting: Noting, effect: EffectClass, attempt: int, synced: bool
) -> None:
    await store.write(Batch(task_id=TASK, header=header(TASK)), 1)
    noting.synced.clear()
    ledgered = await store.begin_effect(Batch(task_id=TASK), begun(effect, attempt), 2)
    assert ledgered.verdict == "begin"
    assert noting.synced == [synced]
