"""The schema: made from nothing, upgraded once, refused when it is not ours or newer than this code."""

import asyncio
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text

import perdure.store.migration as migration_module
from perdure.core.errors import ConfigurationError
from perdure.store import open_store
from perdure.store.schema import REVISIONS, VERSION_TABLE, metadata
from tests.store.building import batch, header, numbers, row, status


async def test_an_empty_database_gets_the_schema_that_the_code_describes(bare_url: str) -> None:
    def differences(connection: Connection) -> list[object]:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    store = await open_store(bare_url)
    assert await store._backend.read(differences) == []
    await store.close()


async def test_opening_again_changes_nothing(bare_url: str) -> None:
    for number in range(1, 4):
        store = await open_store(bare_url)
        await store.write(batch("one", row(number), header=header("one")), 100)
        await store.close()
    store = await open_store(bare_url)
    assert await numbers(store, "one") == [1, 2, 3]
    await store.close()


async def test_several_may_open_a_new_store_at_once(bare_url: str) -> None:
    stores = await asyncio.gather(*(open_store(bare_url) for _ in range(6)))
    for number, store in enumerate(stores, 1):
        await store.write(batch("one", row(number), header=header("one")), 100)
    assert await numbers(stores[0], "one") == [1, 2, 3, 4, 5, 6]
    for store in stores:
        await store.close()


async def test_several_new_stores_may_be_opened_at_once(tmp_path: Path) -> None:
    stores = await asyncio.gather(*(open_store(f"sqlite:///{tmp_path}/{name}.db") for name in range(6)))
    assert [await store.tasks(1) for store in stores] == [()] * 6
    for store in stores:
        await store.close()


async def test_a_newer_database_is_refused_and_untouched(bare_url: str) -> None:
    store = await open_store(bare_url)
    await store._backend.write(lambda c: c.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")))
    with pytest.raises(ConfigurationError, match="has schema 9999, this release knows 0001 to"):
        await open_store(bare_url)
    version = await store._backend.read(lambda c: c.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar())
    assert version == "9999"
    await store.close()


async def test_tables_of_something_else_are_refused(bare_url: str) -> None:
    store = await open_store(bare_url)
    await store._backend.write(lambda c: c.execute(text(f"DROP TABLE {VERSION_TABLE}")))
    await store.close()
    with pytest.raises(ConfigurationError, match="tables of something else"):
        await open_store(bare_url)


async def test_a_migration_that_fails_halfway_leaves_nothing(bare_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = migration_module.migrate

    def cut_off(connection: Connection) -> None:
        complete(connection)
        raise RuntimeError("killed here")

    for module in ("sqlite", "postgres"):
        monkeypatch.setattr(f"perdure.store.{module}.migrate", cut_off)
    with pytest.raises(RuntimeError, match="killed here"):
        await open_store(bare_url)
    monkeypatch.undo()
    store = await open_store(bare_url)  # would meet its own tables if any had stayed
    assert await store.tasks(1) == ()
    await store.close()


def _config() -> Config:
    config = Config()
    folder = Path(migration_module.__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder))
    config.set_main_option("path_separator", "os")
    return config


async def test_a_store_of_earlier_code_goes_on_and_its_model_calls_name_no_model(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    engine, config = create_engine(url), _config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
        connection.execute(text("INSERT INTO model_calls VALUES ('t', 1, 1, 1, 'worker-1', 200)"))
    engine.dispose()
    store = await open_store(url)
    (call,) = await store.model_calls("t")
    assert (call.worker, call.model) == ("worker-1", "")
    await store.close()


async def test_tasks_that_had_ended_before_stay_in_the_order_in_which_they_did(tmp_path: Path) -> None:
    """By the time of their end, before all that end later; an open one has no place."""
    url = f"sqlite:///{tmp_path}/store.db"
    engine, config = create_engine(url), _config()
    told = "state, reason, status_number, contiguous, last_number, terminal_number, fence, revision, status_at_ms"
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0007")
        for task_id, values in (
            ("second", "'completed', '', 2, 2, 2, 2, 0, 3, 20"),
            ("first", "'failed', 'model', 2, 2, 2, 2, 0, 4, 10"),
            ("open", "'working', '', 1, 1, 1, NULL, 0, 5, 5"),
        ):
            names = f"task_id, context_id, agent_id, principal, created_at_ms, updated_at_ms, {told}"
            of = f"'{task_id}', 'context', 'shop', 'ada', 1, 1, {values}"
            connection.execute(text(f"INSERT INTO tasks ({names}) VALUES ({of})"))
        connection.execute(text("INSERT INTO contexts VALUES ('context', 'ada', 1, 1, 1)"))
        connection.execute(text("UPDATE revisions SET value = 5"))
    engine.dispose()
    store = await open_store(url)
    assert await store.ended_tasks("context", "ada", "shop", 9) == ("first", "second")
    await store.write(batch("open", status(2, "completed")), 1)
    await store.write(batch("first", fence=1), 1)
    assert await store.ended_tasks("context", "ada", "shop", 9) == ("first", "second", "open")
    await store.close()


def test_the_code_names_every_revision_in_order() -> None:
    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    assert tuple(reversed([script.revision for script in scripts])) == REVISIONS
