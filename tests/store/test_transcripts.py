"""Transcripts by reference: the whole, verified by its chain, whatever is cached."""

import pytest
from sqlalchemy import Connection, text

from perdure.core.errors import StoreAhead, StoreBehind
from perdure.core.log import LogEvent
from perdure.store import SqlStore, open_store
from perdure.store.transcripts import Prefix, TranscriptCache
from tests.store.building import batch, new_task, reply, reply_digest, row, talk, tool_entry


def _chain(rows: tuple[LogEvent, ...], upto: int) -> str:
    return rows[upto - 1].entries[0].chain


async def test_a_transcript_grows_and_every_prefix_stays_readable(store: SqlStore) -> None:
    task = await new_task(store)
    rows = talk(12, first_number=2)
    for upto in range(1, 13):
        await store.write(batch(task, rows[upto - 1]), 200)
        expected = tuple(tool_entry(f"result {entry}") for entry in range(1, upto + 1))
        assert await store.read_transcript(task, upto, _chain(rows, upto)) == expected
    for upto in (12, 3, 7, 1):
        assert len(await store.read_transcript(task, upto, _chain(rows, upto))) == upto
    assert await store.read_transcript(task, 0, "") == ()


async def test_missing_entries_and_another_chain_are_told_apart(store: SqlStore) -> None:
    task = await new_task(store)
    rows = talk(4, first_number=2)
    await store.write(batch(task, *rows[:2], rows[3]), 200)
    for _ in range(2):  # the second time with a cache
        assert len(await store.read_transcript(task, 2, _chain(rows, 2))) == 2
        with pytest.raises(StoreBehind):
            await store.read_transcript(task, 3, _chain(rows, 3))
        with pytest.raises(StoreBehind):
            await store.read_transcript(task, 4, _chain(rows, 4))
        for upto in (1, 2):
            with pytest.raises(StoreAhead):
                await store.read_transcript(task, upto, _chain(rows, 4))
    with pytest.raises(StoreBehind):
        await store.read_transcript("nowhere", 1, _chain(rows, 1))


async def test_an_entry_without_its_body_means_a_store_behind(store: SqlStore) -> None:
    task = await new_task(store)
    ref = talk(1)[0].entries[0].model_copy(update={"inline": None, "digest": reply_digest(reply())})
    await store.write(batch(task, row(2, entries=(ref,))), 200)
    with pytest.raises(StoreBehind, match="body"):
        await store.read_transcript(task, 1, ref.chain)
    await store.record_reply(task, 1, 1, reply(), 210)
    assert len(await store.read_transcript(task, 1, ref.chain)) == 1


async def test_a_cached_prefix_is_dropped_when_the_store_holds_another(store: SqlStore, store_url: str) -> None:
    task = await new_task(store)
    rows = talk(3, first_number=2)
    await store.write(batch(task, *rows), 200)
    await store.read_transcript(task, 3, _chain(rows, 3))

    def replace_tail(connection: Connection) -> None:  # as if the database had been restored beneath the process
        connection.execute(text("UPDATE transcript SET chain = 'x' || chain WHERE entry >= 2"))
        connection.execute(
            text(
                "UPDATE transcript SET digest = (SELECT digest FROM transcript WHERE entry = 1) "
                "WHERE entry = 2 AND task_id = :task"
            ),
            {"task": task},
        )

    other = await open_store(store_url)
    await other._backend.write(replace_tail)
    await other.close()
    read = await store.read_transcript(task, 3, "x" + _chain(rows, 3))
    assert read == (tool_entry("result 1"), tool_entry("result 1"), tool_entry("result 3"))
    with pytest.raises(StoreAhead):
        await store.read_transcript(task, 3, _chain(rows, 3))


def _prefix(*sizes: int) -> Prefix:
    entries = tuple(tool_entry(str(size)) for size in sizes)
    return Prefix(entries, tuple(f"chain-{n}" for n in range(len(sizes))), sizes)


def test_the_cache_keeps_the_longest_prefix_and_its_bound() -> None:
    cache = TranscriptCache(bytes_max=100)
    cache.put("a", _prefix(10, 20))
    cache.put("a", _prefix(10))
    assert len(cache.get("a").entries) == 2
    cache.put("b", _prefix(30))
    cache.put("a", _prefix(10, 20))
    cache.put("c", _prefix(50))
    assert [len(cache.get(task).entries) for task in "abc"] == [2, 0, 1]
    cache.put("d", _prefix(101))
    assert [len(cache.get(task).entries) for task in "abcd"] == [0, 0, 0, 0]
