"""Model calls: a start row per attempt, the first reply wins (P2), fences (P9)."""

import pytest

from perdure.core.errors import Fenced, StoreBehind
from perdure.core.ports import RecordedReply
from perdure.store import SqlStore
from tests.store.building import batch, new_task, numbers, reply, reply_digest, row, status


async def test_the_first_reply_stands_and_later_attempts_get_it(store: SqlStore) -> None:
    task = await new_task(store)
    assert await store.begin_model(batch(task, row(2)), 1, 1, 1, "worker-1", 200) == ()
    assert await store.begin_model(batch(task, row(2)), 1, 1, 1, "worker-1", 201) == ()
    assert await store.begin_model(batch(task, row(3)), 1, 1, 2, "worker-2", 210) == ()
    second = await store.record_reply(task, 1, 2, reply("second"), 220)
    first = await store.record_reply(task, 1, 1, reply("first"), 230)
    expected = RecordedReply(digest=reply_digest(reply("second")), reply=reply("second"), attempt=2)
    assert second == first == expected
    assert await store.begin_model(batch(task, row(4)), 1, 1, 3, "worker-1", 240) == expected
    assert await numbers(store, task) == [1, 2, 3, 4]


async def test_a_recorded_reply_is_served_behind_a_fence_and_to_older_attempts(store: SqlStore) -> None:
    task = await new_task(store)
    await store.begin_model(batch(task), 1, 1, 2, "worker-1", 200)
    recorded = await store.record_reply(task, 1, 2, reply(), 210)
    await store.write(batch(task, fence=1), 220)
    assert await store.begin_model(batch(task), 1, 1, 1, "worker-2", 230) == recorded


async def test_equal_replies_of_two_turns_are_two_records(store: SqlStore) -> None:
    task = await new_task(store)
    one = await store.record_reply(task, 1, 1, reply(), 200)
    two = await store.record_reply(task, 2, 3, reply(), 210)
    assert (one.digest, one.attempt, two.attempt) == (two.digest, 1, 3)


async def test_a_stop_or_a_later_attempt_refuses_with_the_batch(store: SqlStore) -> None:
    task = await new_task(store)
    await store.begin_model(batch(task), 1, 1, 2, "worker-1", 200)
    with pytest.raises(Fenced, match="P2: attempt 2 of turn 1"):
        await store.begin_model(batch(task, row(2)), 1, 1, 1, "worker-2", 210)
    await store.write(batch(task, fence=1), 220)
    with pytest.raises(Fenced, match="P9: run 1"):
        await store.begin_model(batch(task, row(2)), 1, 2, 1, "worker-2", 230)
    assert await numbers(store, task) == [1]
    assert await store.begin_model(batch(task, row(2)), 2, 2, 1, "worker-2", 240) == ()


async def test_an_ended_task_calls_no_model(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, status(2, "failed")), 200)
    with pytest.raises(Fenced, match="P5"):
        await store.begin_model(batch(task), 5, 1, 1, "worker-1", 210)


async def test_a_reply_of_an_unknown_task_means_a_store_behind(store: SqlStore) -> None:
    with pytest.raises(StoreBehind):
        await store.record_reply("nowhere", 1, 1, reply(), 200)


async def test_start_rows_are_read_in_the_order_of_turn_and_attempt(store: SqlStore) -> None:
    task = await new_task(store)
    for turn, attempt, worker in ((2, 1, "worker-1"), (1, 1, "worker-1"), (1, 2, "worker-2")):
        assert await store.begin_model(batch(task), 1, turn, attempt, worker, 200) == ()
    calls = await store.model_calls(task)
    assert [(call.turn, call.attempt, call.worker) for call in calls] == [
        (1, 1, "worker-1"),
        (1, 2, "worker-2"),
        (2, 1, "worker-1"),
    ]
    assert await store.model_calls("nowhere") == ()
