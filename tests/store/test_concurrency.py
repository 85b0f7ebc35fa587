"""Many writers of one process at once: what they repeat is one write, of what conflicts one wins."""

import asyncio

from perdure.core.errors import MessageConflict, StoreAhead
from perdure.store import SqlStore, open_store
from tests.store.building import batch, header, message, new_task, numbers, reply, request, row, rows, tool_entry

WRITERS = 6


async def test_one_first_write_made_by_many_is_one_task(store: SqlStore, store_url: str) -> None:
    other = await open_store(store_url)
    first = batch("one", *rows(1, 3), header=header("one"), messages=(message("m"),), fence=1)
    await asyncio.gather(*(writer.write(first, 100) for writer in (store, other) for _ in range(WRITERS)))
    assert await numbers(store, "one") == [1, 2, 3]
    (task,), (context,) = await store.tasks(10), await store.contexts(10)
    assert (task.revision, context.revision) == (1, 1)
    await other.close()


async def test_new_tasks_in_new_contexts_do_not_wait_for_each_other_in_a_circle(store: SqlStore) -> None:
    made = [header(context_id=f"context-{n % 3}") for n in range(24)]
    await asyncio.gather(*(store.write(batch(new.task_id, row(1), header=new), 100) for new in made))
    listed = await store.tasks(100)
    assert sorted(task.revision for task in listed) == list(range(1, 25))
    newest = {context.context_id: context.revision for context in await store.contexts(10)}
    for task in listed:
        assert task.revision <= newest[task.header.context_id]


async def test_rows_written_in_any_order_at_once_leave_no_gap(store: SqlStore) -> None:
    task = await new_task(store)
    await asyncio.gather(*(store.write(batch(task, row(number)), 200) for number in range(40, 1, -1)))
    assert await numbers(store, task) == list(range(1, 41))


async def test_of_different_rows_under_one_number_one_stands(store: SqlStore) -> None:
    task = await new_task(store)
    writes = (store.write(batch(task, row(2, turn=turn)), 200) for turn in range(WRITERS))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [StoreAhead] * (WRITERS - 1)
    (stored,) = await store.events_after(task, 1, 10)
    assert outcomes[stored.event.turn] is None


async def test_of_different_messages_under_one_id_one_stands(store: SqlStore) -> None:
    task = await new_task(store)
    writes = (store.write(batch(task, messages=(message("m", str(n)),)), 200) for n in range(WRITERS))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [MessageConflict] * (WRITERS - 1)


async def test_of_different_replies_and_results_one_stands(store: SqlStore) -> None:
    task = await new_task(store)
    replies = await asyncio.gather(*(store.record_reply(task, 1, n, reply(str(n)), 200) for n in range(1, WRITERS)))
    assert len({recorded.digest for recorded in replies}) == 1
    asked = request(task)
    await store.begin_effect(batch(task), asked, 200)
    finish = (store.finish_effect(asked.key, 1, tool_entry(str(n)), 210) for n in range(WRITERS))
    outcomes = await asyncio.gather(*finish, store.close_effect(asked.key, 210))
    assert len({(outcome.verdict, outcome.digest) for outcome in outcomes}) == 1


async def test_of_a_stop_and_a_begin_the_first_decides(store: SqlStore) -> None:
    for _ in range(8):
        task = await new_task(store)
        begun, fenced = await asyncio.gather(
            store.begin_effect(batch(task), request(task), 200),
            store.write(batch(task, fence=1), 200),
            return_exceptions=True,
        )
        assert fenced is None
        assert len(await store.effects(task)) == (0 if isinstance(begun, BaseException) else 1)


async def test_a_cancelled_write_is_whole_or_absent(store: SqlStore) -> None:
    task = await new_task(store)
    for number in range(2, 40):
        writing = asyncio.create_task(store.write(batch(task, row(number), confirmed=number - 1), 200))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
        await store.write(batch(task, row(number), confirmed=number - 1), 200)
    assert await numbers(store, task) == list(range(1, 40))
