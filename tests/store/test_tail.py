"""Following a log: every row once and in order, from any number, until the task ends (P6)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import pytest

from perdure.core.errors import StoreUnavailable
from perdure.core.ports import StoredEvent
from perdure.store import SqlStore, open_store
from tests.store.building import batch, header, new_task, row, rows, status

WITHIN_S = 10


def follow(store: SqlStore, task_id: str, after: int) -> AsyncGenerator[StoredEvent, None]:
    return cast("AsyncGenerator[StoredEvent, None]", store.tail(task_id, after))


async def collected(store: SqlStore, task_id: str, after: int) -> list[int]:
    async with asyncio.timeout(WITHIN_S):
        return [stored.event.number async for stored in store.tail(task_id, after)]


async def next_number(tail: AsyncGenerator[StoredEvent, None]) -> int:
    async with asyncio.timeout(WITHIN_S):
        return (await anext(tail)).event.number


async def waiting(store: SqlStore, tails: int) -> None:
    async with asyncio.timeout(WITHIN_S):
        while len(store._watcher._waiters) < tails:  # noqa: ASYNC110 -- no event tells it
            await asyncio.sleep(0)


async def test_a_tail_yields_what_comes_and_ends_with_the_task(store: SqlStore) -> None:
    task = await new_task(store)
    async with aclosing(follow(store, task, 0)) as tail:
        assert await next_number(tail) == 1
        coming = asyncio.create_task(next_number(tail))
        await store.write(batch(task, row(3)), 200)  # beyond a gap: not shown
        await store.write(batch(task, row(2)), 210)
        assert await coming == 2
        assert await next_number(tail) == 3
        await store.write(batch(task, status(4, "working"), status(5, "completed")), 220)
        assert [await next_number(tail) for _ in range(2)] == [4, 5]
        with pytest.raises(StopAsyncIteration):
            await next_number(tail)


async def test_a_tail_of_an_ended_task_ends(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, *rows(2, 3), status(4, "failed")), 200)
    assert await collected(store, task, 0) == [1, 2, 3, 4]
    assert await collected(store, task, 2) == [3, 4]
    assert await collected(store, task, 4) == []
    assert await collected(store, task, 9) == []


async def test_many_tails_see_the_writes_of_another_store(store: SqlStore, store_url: str) -> None:
    other = await open_store(store_url)
    ids = [header().task_id for _ in range(8)]
    tails = [asyncio.create_task(collected(store, task_id, 0)) for task_id in ids for _ in range(3)]
    for number in range(1, 6):
        for task_id in ids:
            row_ = status(5, "completed") if number == 5 else row(number)
            await other.write(batch(task_id, row_, header=header(task_id)), 200)
    assert await asyncio.gather(*tails) == [[1, 2, 3, 4, 5]] * len(tails)
    await other.close()


async def test_a_tail_that_is_left_leaves_the_others(store: SqlStore) -> None:
    task = await new_task(store)
    left = asyncio.create_task(collected(store, task, 1))
    kept = asyncio.create_task(collected(store, task, 1))
    await waiting(store, 2)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    await store.write(batch(task, status(2, "canceled")), 200)
    assert await kept == [2]
    assert await collected(store, task, 0) == [1, 2]  # the watcher starts again


async def test_a_closed_store_ends_its_tails_with_an_error(store_url: str) -> None:
    store = await open_store(store_url)
    task = await new_task(store)
    tail = asyncio.create_task(collected(store, task, 1))
    await waiting(store, 1)
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await tail
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.tasks(1)
