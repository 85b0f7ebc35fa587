"""Push configurations in the store: cursors that only their deliverer moves, and a lease that one holds."""

import pytest

from perdure.core import push_limits
from perdure.core.errors import InvalidInput
from perdure.core.pushes import Lease, PushConfig
from perdure.store import SqlStore, open_store
from tests.store.building import batch, header, new_task, row, status

KEY = "key-1"


def config(task_id: str, config_id: str = "mine", sealed: bytes = b"sealed", key_id: str = KEY) -> PushConfig:
    return PushConfig(task_id=task_id, config_id=config_id, key_id=key_id, sealed=sealed)


async def saved(store: SqlStore, task_id: str, config_id: str = "mine", after: int | None = None) -> PushConfig:
    return await store.pushes.save(config(task_id, config_id), header(task_id), after, 100)


async def held(store: SqlStore, holder: str = "one") -> Lease:
    return await store.pushes.beat(KEY, holder, (await store.pushes.pulse(KEY)).lease)


async def test_a_new_one_begins_after_the_tasks_last_event_or_where_it_is_told(store: SqlStore) -> None:
    task_id = await new_task(store)
    assert (await saved(store, task_id)).cursor == 1
    assert (await saved(store, task_id, "early", after=0)).cursor == 0
    due = await store.pushes.due(KEY, 1_000, 10)
    assert [each.config_id for each in due.configs] == ["early"]
    await store.write(batch(task_id, row(2)), 200)
    due = await store.pushes.due(KEY, 1_000, 10)
    assert {each.config_id for each in due.configs} == {"early", "mine"}
    assert (await store.pushes.due("key-2", 1_000, 10)).configs == ()


async def test_events_beyond_a_gap_are_not_due(store: SqlStore) -> None:
    task_id = await new_task(store)
    await saved(store, task_id)
    await store.write(batch(task_id, row(3)), 200)
    assert (await store.pushes.due(KEY, 1_000, 10)).configs == ()


async def test_one_that_stands_is_replaced_and_keeps_its_cursor(store: SqlStore) -> None:
    task_id = await new_task(store)
    first = await saved(store, task_id, after=0)
    await held(store)
    gave_up = first.model_copy(update={"state": "given_up", "attempts": 5})
    assert await store.pushes.settle(first, gave_up, "one")
    assert (await store.pushes.due(KEY, 1_000, 10)).configs == ()
    again = await store.pushes.save(config(task_id, sealed=b"other"), header(task_id), None, 100)
    assert (again.cursor, again.state, again.attempts, again.sealed) == (0, "active", 0, b"other")
    assert await store.pushes.of_task(task_id) == (again,)


async def test_one_of_a_task_that_has_ended_has_nothing_to_deliver(store: SqlStore) -> None:
    task_id = await new_task(store)
    await store.write(batch(task_id, status(2, "completed")), 200)
    assert (await saved(store, task_id)).state == "done"
    assert (await saved(store, task_id, "early", after=0)).state == "active"


async def test_a_write_of_a_deliverer_stands_only_if_nothing_was_changed(store: SqlStore) -> None:
    task_id = await new_task(store)
    was = await saved(store, task_id, after=0)
    now = was.model_copy(update={"cursor": 1})
    assert not await store.pushes.settle(was, now, "one")
    await held(store)
    assert await store.pushes.standing(was, "one")
    assert not await store.pushes.standing(was, "two")
    assert not await store.pushes.settle(was, now, "two")
    await store.pushes.save(config(task_id, sealed=b"other"), header(task_id), None, 100)
    assert not await store.pushes.settle(was, now, "one")
    replaced = await store.pushes.find(task_id, "mine")
    assert replaced is not None
    assert await store.pushes.settle(replaced, replaced.model_copy(update={"cursor": 1}), "one")
    assert not await store.pushes.settle(replaced, now, "one")
    await store.pushes.delete(task_id, "mine", 300)
    await store.pushes.delete(task_id, "mine", 300)
    assert not await store.pushes.standing(replaced, "one")
    assert await store.pushes.find(task_id, "mine") is None


async def test_saving_and_deleting_move_the_task_and_delivering_does_not(store: SqlStore) -> None:
    task_id = await new_task(store)

    async def revision() -> int:
        found = await store.task(task_id)
        assert found is not None
        return found.revision

    before = await revision()
    was = await saved(store, task_id, after=0)
    after_saving = await revision()
    await held(store)
    assert await store.pushes.settle(was, was.model_copy(update={"cursor": 1}), "one")
    after_settling = await revision()
    await store.pushes.delete(task_id, "mine", 300)
    assert before < after_saving == after_settling < await revision()


async def test_those_that_fail_do_not_hide_the_others(store: SqlStore) -> None:
    task_id = await new_task(store)
    await held(store)
    for number in range(4):
        was = await saved(store, task_id, f"failing-{number}", after=0)
        assert await store.pushes.settle(was, was.model_copy(update={"attempts": 1, "next_at_ms": 10}), "one")
    fresh = await saved(store, task_id, "fresh", after=0)
    later = await saved(store, task_id, "later", after=0)
    assert await store.pushes.settle(later, later.model_copy(update={"attempts": 1, "next_at_ms": 5_000}), "one")
    due = await store.pushes.due(KEY, 1_000, 2)
    assert [each.attempts for each in due.configs] == [0, 1, 1]
    assert due.configs[0] == fresh
    assert due.wake_at_ms == 5_000


async def test_a_task_has_so_many_and_no_more(store: SqlStore) -> None:
    task_id = await new_task(store)
    for number in range(push_limits.CONFIGS_PER_TASK_MAX):
        await saved(store, task_id, f"p-{number}")
    with pytest.raises(InvalidInput, match="delete one"):
        await saved(store, task_id, "one-more")
    await saved(store, task_id, "p-0")


async def test_of_two_that_want_the_lease_one_gets_it(store_url: str) -> None:
    """Between two processes' stores: whoever saw what stands, takes it; the other is told."""
    one, two = await open_store(store_url), await open_store(store_url)
    seen = (await two.pushes.pulse(KEY)).lease
    assert await one.pushes.beat(KEY, "one", seen) == Lease(holder="one", beat=1)
    assert await two.pushes.beat(KEY, "two", seen) == Lease(holder="one", beat=1)
    await two.pushes.release(KEY, "two")
    assert (await two.pushes.pulse(KEY)).lease.holder == "one"
    await one.pushes.release(KEY, "one")
    assert await two.pushes.beat(KEY, "two", Lease(holder="", beat=1)) == Lease(holder="two", beat=2)
    await one.close()
    await two.close()


async def test_one_principal_does_not_hide_the_others(store: SqlStore) -> None:
    """Of each the longest waiting before any second one, whether they failed or not; and whose they are is told."""
    for number in range(6):
        task_id = f"adas-{number}"
        await store.write(batch(task_id, row(1), header=header(task_id)), 100)
        await store.pushes.save(config(task_id).model_copy(update={"next_at_ms": number}), header(task_id), 0, 100)
    for name in ("bob", "eve"):
        theirs = header(f"{name}s", context_id=name, principal=name)
        await store.write(batch(theirs.task_id, row(1), header=theirs), 100)
        await store.pushes.save(config(theirs.task_id).model_copy(update={"next_at_ms": 50}), theirs, 0, 100)
    due = await store.pushes.due(KEY, 1_000, 4)
    assert [each.task_id for each in due.configs[:1]] == ["adas-0"]
    assert {each.task_id for each in due.configs[:3]} == {"adas-0", "bobs", "eves"}
    assert [each.task_id for each in due.configs[3:]] == ["adas-1"]
    assert due.principals == {"adas-0": "ada", "adas-1": "ada", "bobs": "bob", "eves": "eve"}
