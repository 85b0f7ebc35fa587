"""The same suite over SQLite and, where PERDURE_TEST_POSTGRES_URL names a server, over PostgreSQL."""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from perdure.store import SqlStore, open_store

SERVER = os.environ.get("PERDURE_TEST_POSTGRES_URL") or None


async def _run(url: str, *statements: str) -> None:
    """Run statements outside any transaction: databases are neither created nor dropped within one."""
    engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"), isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            for statement in statements:
                await connection.exec_driver_sql(statement)
    finally:
        await engine.dispose()


_EMPTY = """
DO $$ BEGIN
  IF to_regclass('public.revisions') IS NOT NULL THEN
    EXECUTE (
      SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ') FROM pg_tables
      WHERE schemaname = 'public' AND tablename NOT IN ('perdure_schema', 'revisions')
    );
    UPDATE revisions SET value = 0;
  END IF;
END $$
"""
"""Empty what a test before left, and keep the schema: making it anew for each test costs ten times the test."""


@pytest.fixture(scope="module")
def postgres_database() -> Iterator[str]:
    """A database of this module's own, dropped after it."""
    if SERVER is None:
        pytest.skip("set PERDURE_TEST_POSTGRES_URL to the URL of a PostgreSQL server whose user may create databases")
    name = f"perdure_{uuid.uuid1().hex}"
    asyncio.run(_run(SERVER, f"CREATE DATABASE {name}"))
    yield make_url(SERVER).set(database=name).render_as_string(hide_password=False)
    asyncio.run(_run(SERVER, f"DROP DATABASE {name} WITH (FORCE)"))


@contextlib.asynccontextmanager
async def new_database(server: str) -> AsyncIterator[str]:
    """Give the URL of a database that was just made, and drop it in the end."""
    name = f"perdure_{uuid.uuid1().hex}"
    await _run(server, f"CREATE DATABASE {name}")
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        await _run(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def postgres_url(postgres_database: str) -> str:
    """The URL of an empty PostgreSQL store."""
    await _run(postgres_database, _EMPTY)
    return postgres_database


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store/perdure.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
async def bare_postgres_url(postgres_database: str) -> str:
    """The URL of a PostgreSQL database without any table."""
    await _run(postgres_database, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return postgres_database


@pytest.fixture(params=["sqlite", "postgres"])
def bare_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without any table, once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store/perdure.db"
    url: str = request.getfixturevalue("bare_postgres_url")
    return url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[SqlStore]:
    """An open, empty store."""
    opened = await open_store(store_url)
    yield opened
    await opened.close()
