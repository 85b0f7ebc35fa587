"""What travels beside the log between processes: that it has grown, and drafts; and what is lost without harm."""

import asyncio
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.core.deltas import Draft
from perdure.store import SqlStore, open_store
from perdure.store.local_channel import LocalChannel
from tests.store.building import batch, new_task, row
from tests.store.test_tail import follow, next_number, waiting

WITHIN_S = 10


@pytest.fixture
async def other(store: SqlStore, store_url: str) -> AsyncIterator[SqlStore]:
    """The same store as another process has it, one that works."""
    opened = await open_store(store_url)
    yield opened
    await opened.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not holds():  # noqa: ASYNC110 -- no event tells it
            await asyncio.sleep(0.005)


async def hears(store: SqlStore, other: SqlStore) -> None:
    """Wait until the store hears what the other one says."""
    store.drafts.watch("probe", lambda: None)
    async with asyncio.timeout(WITHIN_S):
        attempt = 0
        while store.drafts.of("probe") is None:
            other.drafts.say("probe", 1, attempt := attempt + 1, "?")
            await asyncio.sleep(0.02)


async def test_an_event_of_another_process_is_told_and_not_only_found(
    store: SqlStore, other: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TAIL_POLL_FIRST_MS", 60_000)
    monkeypatch.setattr(limits, "TAIL_POLL_MAX_MS", 60_000)
    task = await new_task(other)
    await hears(store, other)
    tail = follow(store, task, 0)
    assert await next_number(tail) == 1
    for number in (2, 3, 4):
        coming = asyncio.create_task(next_number(tail))
        await waiting(store, 1)
        await other.write(batch(task, row(number)), 200)
        assert await coming == number
    await tail.aclose()


async def test_a_draft_grows_where_it_is_followed_and_a_later_attempt_replaces_it(
    store: SqlStore, other: SqlStore
) -> None:
    await hears(store, other)
    changes: list[Draft | None] = []
    leave = store.drafts.watch("t", lambda: changes.append(store.drafts.of("t")))
    text = ""
    for word in ["it", "was", "a", "dark", "and", "stormy", "night"]:
        text += f"{word} "
        other.drafts.say("t", 4, 1, f"{word} ")
    await until(lambda: store.drafts.of("t") == Draft(4, 1, text))
    other.drafts.say("t", 4, 2, "anew")
    await until(lambda: store.drafts.of("t") == Draft(4, 2, "anew"))
    assert all(change is not None and (text.startswith(change.text) or change.attempt == 2) for change in changes)
    leave()
    seen = len(changes)
    other.drafts.say("t", 4, 2, " again")
    await until(lambda: store.drafts.of("t") == Draft(4, 2, "anew again"))
    assert len(changes) == seen


async def test_a_store_sees_its_own_drafts_at_once(store: SqlStore) -> None:
    store.drafts.say("t", 1, 1, "one")
    store.drafts.say("t", 1, 1, " two")
    assert store.drafts.of("t") == Draft(1, 1, "one two")
    store.drafts.say("t", 1, 1, "x" * limits.DRAFT_CHARS_MAX)
    draft = store.drafts.of("t")
    assert draft is not None
    assert len(draft.text) == limits.DRAFT_CHARS_MAX


# --- one machine ----------------------------------------------------------------------------------------------------


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store/perdure.db"


async def test_who_comes_in_the_middle_gets_the_beginning(sqlite_url: str) -> None:
    speaking = await open_store(sqlite_url)
    speaking.drafts.say("t", 1, 1, "said " * 5_000)  # more than a datagram, and more than wait in the kernel
    late = await open_store(sqlite_url)
    late.drafts.watch("t", lambda: None)
    speaking.drafts.say("t", 1, 1, "end")
    await until(lambda: late.drafts.of("t") == Draft(1, 1, "said " * 5_000 + "end"))
    await late.close()
    await speaking.close()


async def test_a_folder_deeper_than_a_sockets_address(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / ('deep' * 30)}/perdure.db"
    store, other = await open_store(url), await open_store(url)
    await hears(store, other)
    await other.close()
    await store.close()


async def test_the_folder_is_private_and_is_left_empty(tmp_path: Path, sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    folder = tmp_path / "store" / "perdure.db.listeners"
    assert not folder.exists()  # who only writes needs none
    store.drafts.watch("t", lambda: None)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.iterdir())) == 1
    await store.close()
    assert list(folder.iterdir()) == []


async def test_a_listener_that_was_killed_is_forgotten_and_one_that_never_reads_holds_nobody_up(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "listeners"
    killed, deaf, sender = LocalChannel(folder), LocalChannel(folder), LocalChannel(folder)
    killed.listen(lambda _: None)
    deaf.listen(lambda _: None)
    assert killed._listening is not None
    asyncio.get_running_loop().remove_reader(killed._listening)
    killed._listening.close()  # what a kill leaves: a socket without a process
    assert len(sender.peers()) == 2
    for peer in sender.peers():
        assert sender.send(peer, b"w")
    assert sender.peers() == (deaf._name,)
    taken = [sender.send(deaf._name, b"w") for _ in range(2_000)]  # in one step: nobody reads meanwhile
    assert not all(taken)
    for each in (deaf, sender):
        await each.close()
