"""URLs, files and their modes; what a database that does not answer looks like."""

import asyncio
import fcntl
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from perdure.core import limits
from perdure.core.errors import ConfigurationError, StoreUnavailable
from perdure.store import open_store
from perdure.store.postgres import PostgresBackend
from tests.store.building import batch, new_task, numbers, row
from tests.store.conftest import new_database


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///relative.db", "four slashes"),
        ("sqlite:///:memory:", "four slashes"),
        ("sqlite://", "scheme 'sqlite'"),
        ("mysql://somewhere/db", "scheme 'mysql'"),
        ("perdure.db", "is not a URL"),
        ("", "is not a URL"),
    ],
)
async def test_a_url_that_cannot_work_names_what_would(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        await open_store(url)


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_the_file_and_its_folder_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20?" / "store"
    store = await open_store(f"sqlite:///{folder}/perdure.db")
    await new_task(store)
    assert _mode(folder) == 0o700
    files = {path.name: _mode(path) for path in folder.iterdir()}
    assert {"perdure.db", "perdure.db-wal", "perdure.db-shm"} <= set(files)
    assert set(files.values()) == {0o600}
    await store.close()


async def test_a_looser_file_is_tightened(tmp_path: Path) -> None:
    path = tmp_path / "perdure.db"
    path.touch(mode=0o644)
    path.chmod(0o644)
    store = await open_store(f"sqlite:///{path}")
    await new_task(store)
    assert _mode(path) == 0o600
    assert _mode(tmp_path / "perdure.db-wal") == 0o600
    await store.close()


async def test_every_commit_is_synced(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/perdure.db")

    write, read = store._backend.write, store._backend.read
    assert await write(lambda c: c.exec_driver_sql("PRAGMA synchronous").scalar()) == 2
    assert await write(lambda c: c.exec_driver_sql("PRAGMA journal_mode").scalar()) == "wal"
    assert await read(lambda c: c.exec_driver_sql("PRAGMA query_only").scalar()) == 1
    await store.close()


async def test_a_locked_file_is_unavailable_and_then_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_WRITE_TIMEOUT_S", 0.05)
    path = tmp_path / "perdure.db"
    store = await open_store(f"sqlite:///{path}")
    task = await new_task(store)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"perdure.db did not answer: database is locked"):
        await store.write(batch(task, row(2)), 200)
    assert await numbers(store, task) == [1]
    holder.execute("ROLLBACK")
    holder.close()
    await store.write(batch(task, row(2)), 200)
    assert await numbers(store, task) == [1, 2]
    await store.close()


async def test_a_full_disk_is_unavailable_and_leaves_nothing(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/perdure.db")
    task = await new_task(store)
    pages = await store._backend.write(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar())
    await store._backend.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count={pages}"))
    with pytest.raises(StoreUnavailable, match="full"):
        await store.write(batch(task, row(2, data={"long": "x" * 100_000})), 200)
    await store._backend.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count=1000000"))
    await store.write(batch(task, row(2)), 200)
    assert await numbers(store, task) == [1, 2]
    await store.close()


async def test_what_is_not_a_database_is_not_called_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "perdure.db"
    path.write_bytes(b"this is a text, not a database; " * 100)
    with pytest.raises(DatabaseError, match="file is not a database"):
        await open_store(f"sqlite:///{path}")
    assert path.read_bytes().startswith(b"this is a text")


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable, match=r"postgresql\+asyncpg://ada:\*\*\*@127.0.0.1:1/none"):
        await open_store("postgresql://ada:secret@127.0.0.1:1/none")


async def test_a_missing_database_names_the_fix(postgres_url: str) -> None:
    with pytest.raises(ConfigurationError, match="does not exist; correct the URL or create the database"):
        await open_store(f"{postgres_url}_missing")


async def test_new_databases_are_prepared_at_once_in_one_process(postgres_database: str, tmp_path: Path) -> None:
    async with new_database(postgres_database) as first, new_database(postgres_database) as second:
        urls = (first, f"sqlite:///{tmp_path}/perdure.db", second)
        stores = await asyncio.gather(*(open_store(url) for url in urls))
        for store in stores:
            assert await numbers(store, await new_task(store)) == [1]
            await store.close()


async def test_a_lost_connection_is_unavailable_and_then_works(postgres_url: str) -> None:
    store, other = await open_store(postgres_url), await open_store(postgres_url)
    task = await new_task(store)
    cut = text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await other._backend.write(lambda connection: connection.execute(cut).scalar())
    with pytest.raises(StoreUnavailable, match="did not answer"):
        await store.write(batch(task, row(2)), 200)
    await store.write(batch(task, row(2)), 200)
    assert await numbers(store, task) == [1, 2]
    await store.close()
    await other.close()


async def test_a_cancelled_caller_leaves_a_transaction_that_ends_by_itself(postgres_url: str) -> None:
    store = await open_store(postgres_url)
    backend = store._backend
    assert isinstance(backend, PostgresBackend)
    task = await new_task(store)
    writing = asyncio.create_task(store.write(batch(task, row(2)), 200))
    while not backend._running:  # noqa: ASYNC110 -- no event tells it
        await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await store.close()
    store = await open_store(postgres_url)
    assert await numbers(store, task) == [1, 2]
    await store.close()


async def test_one_process_at_a_time_prepares_the_file(tmp_path: Path) -> None:
    path = tmp_path / "perdure.db"
    holder = os.open(f"{path}.migrating", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(holder, fcntl.LOCK_EX)
    opening = asyncio.create_task(open_store(f"sqlite:///{path}"))
    done, _ = await asyncio.wait([opening], timeout=0.2)
    assert not done
    assert not path.exists()
    os.close(holder)
    store = await opening
    assert path.exists()
    await store.close()
