"""`call.once`: key and effect commit together, on every kind of connection, whoever is killed (P3, P4)."""

import asyncio
import sqlite3
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from perdure import ONCE_TABLE, Call, Check, once_check
from perdure.core import limits
from perdure.core.errors import BegunError, ConfigurationError, Fenced, InvalidInput
from perdure.core.ports import Execution
from perdure.tools.statements import run
from tests.store.conftest import SERVER, _run
from tests.tools.bench import TASK, Bench
from tests.tools.books import POSTGRES_KINDS, SQLITE_KINDS, Books

ROOT = Path(__file__).parents[2]
WITHIN_S = 60
KEY, NEXT_KEY = f"{TASK}/1/0", f"{TASK}/1/0/2"
FIVE = '{"refunded": 5}'


def calling(key: str = KEY) -> Call:
    return Call(idempotency_key=key, attempt=1, task_id=TASK, tool="refund")


@pytest.fixture(scope="module")
def postgres_place() -> Iterator[str]:
    """A database of these tests' own, dropped after them."""
    if SERVER is None:
        pytest.skip("set PERDURE_TEST_POSTGRES_URL to the URL of a PostgreSQL server whose user may create databases")
    name = f"perdure_books_{uuid.uuid1().hex}"
    asyncio.run(_run(SERVER, f"CREATE DATABASE {name}"))
    yield make_url(SERVER).set(database=name).render_as_string(hide_password=False)
    asyncio.run(_run(SERVER, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture(params=[*SQLITE_KINDS, *POSTGRES_KINDS])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """How the books are written, and where they are."""
    if request.param in POSTGRES_KINDS:
        return request.param, request.getfixturevalue("postgres_place")
    return request.param, str(tmp_path / "books.db")


@pytest.fixture
async def books(kept: tuple[str, str]) -> AsyncIterator[Books]:
    opened = Books(*kept)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_books(postgres_place: str) -> AsyncIterator[Books]:
    opened = Books("postgres connection", postgres_place)
    await opened.open()
    yield opened
    await opened.close()


# --- one call ---------------------------------------------------------------------------------------------------


async def test_the_same_call_again_changes_nothing_and_is_told_so(books: Books) -> None:
    assert await books.refund(5, calling()) == {"refunded": 5}
    assert await books.refund(5, calling()) == {"refunded": 5}
    assert await books.refund(6, calling(NEXT_KEY)) == {"refunded": 6}
    assert await books.refunds() == [(KEY, 5), (NEXT_KEY, 6)]
    assert await books.keys() == [(KEY, "happened", FIVE), (NEXT_KEY, "happened", '{"refunded": 6}')]


async def test_what_is_rolled_back_leaves_no_key(books: Books) -> None:
    def breaks(moment: str) -> None:
        raise OSError(moment)

    books.at = breaks
    with pytest.raises(OSError, match="before_commit"):
        await books.refund(5, calling())
    assert (await books.refunds(), await books.keys()) == ([], [])


async def test_the_check_reads_what_happened_and_closes_what_did_not(books: Books) -> None:
    await books.refund(5, calling())
    assert await books.tool.check(calling()) == Check.happened({"refunded": 5})
    assert await books.tool.check(calling(NEXT_KEY)) == Check.never()
    assert await books.tool.check(calling(NEXT_KEY)) == Check.never()
    assert await books.keys() == [(KEY, "happened", FIVE), (NEXT_KEY, "never", None)]


async def test_p3_a_request_that_comes_after_its_key_was_closed_changes_nothing(books: Books) -> None:
    assert await books.tool.check(calling()) == Check.never()
    with pytest.raises(Fenced, match=f"P3: a check has closed {KEY}"):
        await books.refund(5, calling())
    assert (await books.refunds(), await books.keys()) == ([], [(KEY, "never", None)])


# --- killed -----------------------------------------------------------------------------------------------------


async def killed(bench: Bench, books: Books, store_url: str, moment: str) -> None:
    """Make the first attempt in a process of its own that is killed at that moment."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.tools.books", books.kind, books.place, store_url, moment), cwd=ROOT
    )
    async with asyncio.timeout(WITHIN_S):
        assert await process.wait() == -9
    assert await bench.outcome() == ("open", [1])


async def test_p3_killed_between_effect_and_commit_nothing_happened_and_it_begins_anew(
    bench: Bench, books: Books, store_url: str
) -> None:
    await killed(bench, books, store_url, "before_commit")
    assert await books.refunds() == []
    assert await bench.execute(books.tool, {"amount": 5}, attempt=2) == Execution(outcome="closed")
    again = await bench.execute(books.tool, {"amount": 5}, attempt=3, generation=2)
    assert (await bench.result(again)).text == FIVE
    assert await books.refunds() == [(NEXT_KEY, 5)]
    assert await books.keys() == [(KEY, "never", None), (NEXT_KEY, "happened", FIVE)]


async def test_p3_killed_after_the_commit_it_happened_once_with_its_result(
    bench: Bench, books: Books, store_url: str
) -> None:
    await killed(bench, books, store_url, "after_commit")
    assert await books.refunds() == [(KEY, 5)]
    second = await bench.execute(books.tool, {"amount": 5}, attempt=2)
    assert (await bench.result(second)).text == FIVE
    assert await bench.execute(books.tool, {"amount": 5}, attempt=3) == second
    assert await books.refunds() == [(KEY, 5)]
    assert await books.keys() == [(KEY, "happened", FIVE)]


# --- two at once ------------------------------------------------------------------------------------------------


async def test_p3_of_two_transactions_with_one_key_the_second_waits_for_the_first(postgres_books: Books) -> None:
    async with postgres_books.engine.begin() as first:
        once = await calling().once(first)
        second = asyncio.create_task(postgres_books.refund(7, calling()))
        asked = asyncio.ensure_future(postgres_books.tool.check(calling()))
        await until_blocked(postgres_books, 2)
        assert once
        await once.record("by the first")
    async with asyncio.timeout(WITHIN_S):
        assert await second == "by the first"
        assert await asked == Check.happened("by the first")
    assert await postgres_books.refunds() == []


async def test_p4_a_check_waits_for_a_transaction_that_is_rolled_back_and_closes_the_key(postgres_books: Books) -> None:
    connection = await postgres_books.engine.connect()
    assert await calling().once(connection)
    asked = asyncio.ensure_future(postgres_books.tool.check(calling()))
    await until_blocked(postgres_books, 1)
    await connection.rollback()
    async with asyncio.timeout(WITHIN_S):
        assert await asked == Check.never()
    await connection.close()


async def until_blocked(books: Books, count: int) -> None:
    """Wait until so many transactions wait for a lock."""
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    async with asyncio.timeout(WITHIN_S):
        while True:
            async with books.audited() as read:
                if (await read(query))[0][0] >= count:
                    return
            await asyncio.sleep(0.01)


# --- refused ----------------------------------------------------------------------------------------------------


def plain(path: Path, **settings: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = sqlite3.connect(path / "plain.db", **settings)
    connection.execute(ONCE_TABLE)
    connection.commit()
    return connection


def test_a_connection_that_commits_by_itself_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    connection = plain(tmp_path, isolation_level=None)
    with pytest.raises(ConfigurationError, match="connection: it commits each statement by itself"):
        calling().once(connection)
    assert connection.execute("SELECT * FROM perdure_effects").fetchall() == []
    connection.execute("BEGIN IMMEDIATE")
    assert calling().once(connection), "a transaction that was begun by hand is one"
    connection.execute("ROLLBACK")
    connection.close()


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_an_engine_in_autocommit_is_refused(tmp_path: Path, kind: str) -> None:
    plain(tmp_path).close()
    books = Books(kind, str(tmp_path / "plain.db"))
    books.engine = create_engine(f"sqlite:///{tmp_path}/plain.db", isolation_level="AUTOCOMMIT")
    with pytest.raises(ConfigurationError, match="begin a transaction"):
        asyncio.run(books.refund(5, calling()))
    books.engine.dispose()


async def test_an_asynchronous_engine_in_autocommit_is_refused(postgres_books: Books) -> None:
    engine = create_async_engine(postgres_books.engine.url, isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        with pytest.raises(ConfigurationError, match="begin a transaction"):
            await calling().once(connection)
    await engine.dispose()
    assert await postgres_books.keys() == []


async def test_without_its_table_it_says_what_to_create(bench: Bench, books: Books) -> None:
    async with books.audited() as read:
        await read("DROP TABLE perdure_effects")
    fix = "perdure_effects: there is no such table; create it: perdure.ONCE_TABLE"
    with pytest.raises(ConfigurationError, match=fix):
        await books.refund(5, calling())
    with pytest.raises(BegunError, match=fix):
        await bench.execute(books.tool, {"amount": 5})
    doubtful = await bench.execute(books.tool, {"amount": 5}, attempt=2)
    assert doubtful.outcome == "in_doubt"
    assert fix in doubtful.reason


def test_other_errors_of_a_driver_go_on_as_they_are(tmp_path: Path) -> None:
    connection = plain(tmp_path)
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        calling().once(connection)


@pytest.mark.parametrize("given", [object(), "sqlite:///books.db", None])
def test_what_is_no_connection_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"connection: a .* is not taken; give a Connection, AsyncConnection"):
        calling().once(given)


def test_results_are_small_json_and_recorded_once(tmp_path: Path) -> None:
    connection = plain(tmp_path)
    once = calling().once(connection)
    with pytest.raises(InvalidInput, match="the limit is"):
        once.record("x" * limits.ONCE_RESULT_BYTES_MAX)
    with pytest.raises(InvalidInput, match=r"result: .*JSON"):
        once.record(float("nan"))
    once.record({"note": "caf\u00e9 \x00 \ud800"})
    again = calling().once(connection)
    assert not again
    assert again.result == {"note": "caf\u00e9 \x00 \ud800"}
    with pytest.raises(InvalidInput, match="was recorded by an earlier call"):
        again.record(1)
    connection.close()


def test_a_check_of_what_does_not_connect_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="once_check, connect"):
        once_check("sqlite:///books.db")

    async def connect() -> None: ...

    coroutine = connect()
    with pytest.raises(ConfigurationError, match="it connects asynchronously"):
        once_check(lambda: coroutine)(KEY)
    coroutine.close()


# --- how drivers write parameters -------------------------------------------------------------------------------


class Driver:
    """A driver's module with a parameter style, that keeps what it was asked to execute."""

    def __init__(self, style: str) -> None:
        self.statements: list[tuple[str, Any]] = []
        module = ModuleType(f"driver_{style}")
        module.paramstyle = style  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module
        driver = self

        class Cursor:
            rowcount = 1

            def execute(self, statement: str, parameters: Any) -> None:
                driver.statements.append((statement, parameters))

            def close(self) -> None: ...

        class Connection:
            __module__ = f"{module.__name__}.connections"

            def cursor(self) -> Cursor:
                return Cursor()

        self.connection = Connection()


@pytest.mark.parametrize(
    ("style", "written", "parameters"),
    [
        ("qmark", "SET a = ? WHERE b = ?", ("x", "y")),
        ("format", "SET a = %s WHERE b = %s", ("x", "y")),
        ("numeric", "SET a = :1 WHERE b = :2", ("x", "y")),
        ("named", "SET a = :p1 WHERE b = :p2", {"p1": "x", "p2": "y"}),
        ("pyformat", "SET a = %(p1)s WHERE b = %(p2)s", {"p1": "x", "p2": "y"}),
    ],
)
def test_statements_are_written_as_the_driver_takes_them(style: str, written: str, parameters: Any) -> None:
    driver = Driver(style)
    assert run(driver.connection, "SET a = ? WHERE b = ?", "x", "y") == (1, None)
    assert driver.statements == [(written, parameters)]


@pytest.mark.parametrize(("status", "taken"), [(0, False), (2, True)])
def test_a_transaction_begun_by_hand_on_a_connection_in_autocommit_is_one(status: int, taken: bool) -> None:
    driver = Driver("pyformat")
    connection: Any = driver.connection
    connection.autocommit, connection.info = True, SimpleNamespace(transaction_status=status)
    if taken:
        assert calling().once(connection)
    else:
        with pytest.raises(ConfigurationError, match="begin a transaction"):
            calling().once(connection)
    assert len(driver.statements) == taken


def test_a_driver_that_hides_its_style_is_refused() -> None:
    class Connection:
        def cursor(self) -> Any:
            return sqlite3.connect(":memory:").cursor()

    Connection.__module__ = "nowhere"
    with pytest.raises(InvalidInput, match="has no paramstyle"):
        run(Connection(), "SELECT ?", "x")
