"""Messages: stored once under their id, whichever of body and admission comes first (P1, R3)."""

import pytest

from perdure.core.content import Message, UserEntry
from perdure.core.errors import MessageConflict, StoreAhead, StoreBehind, StoreUnavailable
from perdure.core.log import LogEvent
from perdure.core.ports import Admission
from perdure.store import SqlStore
from tests.store.building import batch, message, message_digest, new_task, numbers, row


def admitted(number: int, said: Message) -> LogEvent:
    data = {"message_id": said.message_id, "digest": message_digest(said), "lane": "queue"}
    return row(number, kind="message.admitted", data=data)


async def test_a_message_is_stored_once_and_shown_with_its_admission(store: SqlStore) -> None:
    task = await new_task(store)
    said = message("m1", "my blender cracked")
    await store.write(batch(task, admitted(2, said), messages=(said,)), 200)
    await store.write(batch(task, admitted(2, said), messages=(said, said)), 300)
    assert await store.admission(task, "m1") == Admission(digest=message_digest(said), number=2)
    assert await store.admission(task, "m2") is None
    (stored,) = await store.events_after(task, 1, 10)
    assert stored.subject == UserEntry(message=said)
    assert await store.read_entry(task, message_digest(said)) == UserEntry(message=said)


async def test_an_admission_may_come_before_its_body(store: SqlStore) -> None:
    task = await new_task(store)
    said = message("m1")
    await store.write(batch(task, admitted(2, said)), 200)
    assert [stored.subject for stored in await store.events_after(task, 1, 10)] == [None]
    with pytest.raises(StoreBehind):
        await store.read_entry(task, message_digest(said))
    with pytest.raises(MessageConflict):
        await store.write(batch(task, messages=(message("m1", "else"),)), 210)
    await store.write(batch(task, messages=(said,)), 220)
    assert [stored.subject for stored in await store.events_after(task, 1, 10)] == [UserEntry(message=said)]
    assert await store.admission(task, "m1") == Admission(digest=message_digest(said), number=2)


async def test_a_body_may_come_before_its_admission(store: SqlStore) -> None:
    task = await new_task(store)
    said = message("m1")
    await store.write(batch(task, messages=(said,)), 200)
    with pytest.raises(StoreUnavailable, match="its admission not yet; ask again"):
        await store.admission(task, "m1")
    with pytest.raises(StoreAhead, match=r"P1: .* with other content"):
        await store.write(batch(task, admitted(2, message("m1", "else"))), 210)
    await store.write(batch(task, admitted(2, said)), 220)
    assert await store.admission(task, "m1") == Admission(digest=message_digest(said), number=2)


async def test_a_message_id_with_other_content_is_refused(store: SqlStore) -> None:
    task, other = await new_task(store), await new_task(store)
    await store.write(batch(task, messages=(message("m1", "one"),)), 200)
    await store.write(batch(other, messages=(message("m1", "two"),)), 200)
    for repeated in ((message("m1", "two"),), (message("m2", "x"), message("m2", "y"))):
        with pytest.raises(MessageConflict):
            await store.write(batch(task, row(2), messages=repeated), 300)
    assert await numbers(store, task) == [1]
    assert await store.admission(task, "m2") is None


async def test_a_message_is_admitted_once(store: SqlStore) -> None:
    task = await new_task(store)
    said = message("m1")
    await store.write(batch(task, admitted(2, said)), 200)
    with pytest.raises(StoreAhead, match=r"P1: .* by row 3, but stands in the store with row 2"):
        await store.write(batch(task, admitted(3, said)), 210)


async def test_equal_texts_under_two_ids_are_two_messages(store: SqlStore) -> None:
    task = await new_task(store)
    one, two = message("m1"), message("m2")
    await store.write(batch(task, admitted(2, one), admitted(3, two), messages=(one, two)), 200)
    assert [stored.subject for stored in await store.events_after(task, 1, 10)] == [
        UserEntry(message=one),
        UserEntry(message=two),
    ]
