"""Batches: rows, gaps, messages, status, snapshot; each write twice, each conflict once (P1, P5, P6)."""

from typing import Any

import pytest

from perdure.core.errors import InvalidInput, StoreAhead, StoreBehind
from perdure.core.log import Batch, EntryRef, LogEvent
from perdure.core.ports import Store
from perdure.store import SqlStore
from perdure.store.bodies import encode
from tests.store.building import (
    batch,
    header,
    inline,
    message,
    new_task,
    numbers,
    row,
    rows,
    status,
    talk,
    tool_entry,
)


def _implements(store: SqlStore) -> Store:
    return store


async def test_rows_come_back_as_they_were_written(store: SqlStore) -> None:
    task = await new_task(store)
    written = row(2, kind="model.failed", run=3, turn=4, data={"b": [1, 2.5, None], "a": {"é": "𝄞"}})
    await store.write(batch(task, written), 200)
    (stored,) = await store.events_after(task, 1, 10)
    assert stored.event == written
    assert stored.event.digest() == written.digest() == encode(written, "row").digest


async def test_a_batch_written_twice_changes_nothing(store: SqlStore) -> None:
    made = header()
    whole = batch(
        made.task_id,
        *talk(3),
        header=made,
        messages=(message("m1"),),
        fence=2,
        snapshot={"last_number": 3, "mode": "idle"},
    )
    await store.write(whole, 100)
    before = await store.task(made.task_id), await store.events_after(made.task_id, 0, 10)
    await store.write(whole, 999)
    assert (await store.task(made.task_id), await store.events_after(made.task_id, 0, 10)) == before


async def test_another_row_under_the_same_number_refuses_the_whole_batch(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, row(2)), 200)
    with pytest.raises(StoreAhead, match="P6: the store has another row 2"):
        await store.write(batch(task, row(2, turn=9), row(3), messages=(message("m1"),), fence=7), 300)
    assert await numbers(store, task) == [1, 2]
    assert await store.admission(task, "m1") is None


async def test_readers_get_the_contiguous_prefix_only(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, *rows(2, 6)), 200)
    await store.write(batch(task, row(8)), 300)
    await store.write(batch(task, *rows(10, 11)), 310)
    assert await numbers(store, task) == [1, 2, 3, 4, 5, 6]
    stored = await store.task(task)
    assert stored is not None
    assert stored.last_number == 6
    await store.write(batch(task, row(7)), 320)
    assert await numbers(store, task, 5) == [6, 7, 8]
    await store.write(batch(task, row(9), confirmed=8), 330)
    assert await numbers(store, task, 7) == [8, 9, 10, 11]
    assert await numbers(store, task, 3, limit=2) == [4, 5]
    assert await numbers(store, task, 11) == []


async def test_a_batch_that_bridges_gaps_is_taken_in_any_order(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, row(4)), 200)
    await store.write(batch(task, row(5), row(3), row(2), row(4)), 300)
    assert await numbers(store, task) == [1, 2, 3, 4, 5]


async def test_a_store_that_lost_confirmed_rows_is_behind(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, row(4)), 200)
    with pytest.raises(StoreBehind, match=r"rows 1 to 1 of task .*, but it confirmed 4"):
        await store.write(batch(task, *rows(2, 5), confirmed=4), 300)
    assert await numbers(store, task) == [1]
    with pytest.raises(StoreBehind, match="no task nowhere"):
        await store.write(batch("nowhere", row(1)), 300)


async def test_another_header_is_refused(store: SqlStore) -> None:
    task = await new_task(store)
    with pytest.raises(StoreAhead, match="another context, agent or principal, or sharing"):
        await store.write(batch(task, header=header(task, context_id="other")), 200)
    with pytest.raises(InvalidInput, match="belongs to another principal"):
        await store.write(batch("stranger", header=header("stranger", principal="bob")), 200)
    assert await store.task("stranger") is None


# --- transcript entries -----------------------------------------------------------------------------------------


async def test_an_entry_comes_with_one_row_only(store: SqlStore) -> None:
    task = await new_task(store)
    first = inline(1, "a", "")
    await store.write(batch(task, row(2, entries=(first,))), 200)
    for again in (first, inline(1, "b", "")):
        with pytest.raises(StoreAhead, match=r"entry 1 of task .* came with row 2 already, and again with row 3"):
            await store.write(batch(task, row(3, entries=(again,))), 300)
    second = inline(2, "a", first.chain)
    with pytest.raises(StoreAhead, match="came with row 3 already, and again with row 4"):
        await store.write(batch(task, row(3, entries=(second,)), row(4, entries=(second,))), 300)
    assert await numbers(store, task) == [1, 2]


async def test_an_inline_body_must_have_the_digest_that_names_it(store: SqlStore) -> None:
    task = await new_task(store)
    ref = inline(1, "a", "").model_copy(update={"digest": "0" * 64})
    with pytest.raises(InvalidInput, match=r"row 2.entries\[1\]: has digest 0{64}, its inline body has"):
        await store.write(batch(task, row(2, entries=(ref,))), 200)


async def test_events_bring_their_entries_in_order(store: SqlStore) -> None:
    task = await new_task(store)
    one = inline(1, "one", "")
    two = inline(2, "two", one.chain)
    same = inline(3, "one", two.chain)
    await store.write(batch(task, row(2, entries=(one, two)), row(3), row(4, entries=(same,))), 200)
    stored = await store.events_after(task, 1, 10)
    assert [event.entries for event in stored] == [(tool_entry("one"), tool_entry("two")), (), (tool_entry("one"),)]


async def test_an_event_whose_entry_has_no_body_is_an_error(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, row(2, entries=(EntryRef(entry=1, kind="tool", digest="d", chain="c"),))), 200)
    with pytest.raises(StoreBehind, match="lacks the body of an entry that came with row 2"):
        await store.events_after(task, 0, 10)


# --- status and end ---------------------------------------------------------------------------------------------


async def test_the_latest_status_by_number_is_shown(store: SqlStore) -> None:
    task = await new_task(store)
    created = await store.task(task)
    assert created is not None
    assert (created.state, created.reason) == ("submitted", "")
    await store.write(batch(task, status(4, "input_required", "asked")), 200)
    await store.write(batch(task, status(2, "working"), row(3)), 300)
    shown = await store.task(task)
    assert shown is not None
    assert (shown.state, shown.reason, shown.last_number) == ("input_required", "asked", 4)


async def test_nothing_follows_a_terminal_status(store: SqlStore) -> None:
    task = await new_task(store)
    end = status(3, "completed")
    await store.write(batch(task, end), 200)
    await store.write(batch(task, row(2), end), 210)
    for late in (row(4), status(4, "failed")):
        with pytest.raises(StoreAhead, match="P5"):
            await store.write(batch(task, late), 300)
    with pytest.raises(StoreAhead, match="P5"):
        await store.write(batch(task, status(5, "failed"), row(6)), 300)
    shown = await store.task(task)
    assert shown is not None
    assert (shown.state, shown.last_number) == ("completed", 3)


async def test_a_terminal_status_cannot_come_before_stored_rows(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, row(5)), 200)
    with pytest.raises(StoreAhead, match=r"P5: .* ends with row 3, but there is a row 5"):
        await store.write(batch(task, status(3, "failed")), 300)
    with pytest.raises(StoreAhead, match=r"P5: .* has ended with row 6 already"):
        await store.write(batch(task, status(6, "failed"), status(7, "completed")), 300)


async def test_a_snapshot_is_replaced_by_later_ones_only(store: SqlStore) -> None:
    task = await new_task(store)
    kept = [
        ({"last_number": 5, "a": 1}, {"last_number": 5, "a": 1}),
        ({"last_number": 4, "a": 2}, {"last_number": 5, "a": 1}),
        ({"last_number": 5, "a": 3}, {"last_number": 5, "a": 3}),
        ({"last_number": 6}, {"last_number": 6}),
    ]
    for written, expected in kept:
        await store.write(batch(task, snapshot=written), 200)
        stored = await store.task(task)
        assert stored is not None
        assert stored.snapshot == expected
    assert [listed.snapshot for listed in await store.tasks(10)] == [None]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"rows": (row(2), row(2, turn=1))}, "batch.rows"),
        ({"header": header("other")}, "batch.header.task_id"),
        ({"snapshot": {"mode": "idle"}}, "batch.snapshot.last_number"),
        ({"rows": (LogEvent(number=2, kind="task.status", at_ms=1),)}, "row 2.data.state"),
        ({"rows": (row(2, data={"x": float("nan")}),)}, "row 2"),
    ],
)
async def test_a_batch_that_contradicts_itself_names_the_field(
    store: SqlStore, wrong: dict[str, Any], field: str
) -> None:
    task = await new_task(store)
    with pytest.raises(InvalidInput) as caught:
        await store.write(Batch(task_id=task, **wrong), 200)
    assert caught.value.field == field
    assert await numbers(store, task) == [1]
