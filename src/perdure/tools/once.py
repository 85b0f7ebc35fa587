"""Effects on one's own database, guarded by their key in the same transaction (P3).

A call that writes to a database of its own needs no check that searches for traces: it writes its key into the table
`perdure_effects` beside the effect, and both commit or neither does. What became of a call is then one row:

- no row: it did not happen. The check writes `never` in its place, which closes the key: a request that is still on
  its way finds it and is refused, so "did not happen" stays true;
- `happened`: it did, with the result that was recorded. The same call again is told so and changes nothing.

Two transactions with one key meet at the table's primary key. The second waits for the first and sees what it left.

Nothing here begins, commits or rolls back on a connection that was given: the transaction is the caller's.
"""

import inspect
import json
import re
from collections.abc import Callable
from typing import Any, Final

from pydantic import JsonValue

from perdure.core import limits
from perdure.core.errors import ConfigurationError, Fenced, InvalidInput, OutcomeUnknown
from perdure.core.ports import Check
from perdure.tools.results import as_json
from perdure.tools.statements import RunsSync, refuse_autocommit, run

ONCE_TABLE: Final = """\
CREATE TABLE IF NOT EXISTS perdure_effects (
    key TEXT NOT NULL PRIMARY KEY,
    outcome TEXT NOT NULL,
    result TEXT
)"""
"""The table, in the database that is to be guarded: run it once, or copy it into a migration. SQLite, PostgreSQL."""

_INSERT: Final = "INSERT INTO perdure_effects (key, outcome) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
_SELECT: Final = "SELECT outcome, result FROM perdure_effects WHERE key = ?"
_RECORD: Final = "UPDATE perdure_effects SET result = ? WHERE key = ?"
_NO_TABLE: Final = re.compile(r'no such table: perdure_effects|relation "[^"]*perdure_effects" does not exist')


class Once:
    """What a key's row says to the call that wrote it or found it; true the first time.

    `result` is what an earlier call recorded; None the first time.
    """

    def __init__(self, connection: object, key: str, *, first: bool, result: JsonValue = None) -> None:
        self._connection = connection
        self._key = key
        self._first = first
        self.result = result

    def __bool__(self) -> bool:
        return self._first

    def record(self, result: object) -> None:
        """Record a small result in the same transaction: what the same call gets if it comes again, and its check.

        Raises `InvalidInput` for one that is not JSON or over `ONCE_RESULT_BYTES_MAX`, and where an earlier call has
        recorded its own.
        """
        run(self._connection, _RECORD, self._recordable(result), self._key)

    def _recordable(self, result: object) -> str:
        if not self._first:
            raise InvalidInput("record", f"{self._key} was recorded by an earlier call; return `once.result`")
        try:
            text = json.dumps(as_json(result), allow_nan=False)
        except ValueError as error:
            raise InvalidInput("result", f"{error}; record what JSON can express") from error
        if len(text) > limits.ONCE_RESULT_BYTES_MAX:
            raise InvalidInput(
                "result",
                f"it has {len(text)} bytes of JSON, the limit is {limits.ONCE_RESULT_BYTES_MAX}; record where it is",
            )
        return text


class AsyncOnce:
    """`Once` on an asynchronous connection."""

    def __init__(self, connection: RunsSync, once: Once) -> None:
        self._connection = connection
        self._once = once
        self.result = once.result

    def __bool__(self) -> bool:
        return bool(self._once)

    async def record(self, result: object) -> None:
        """Record a small result in the same transaction; see `Once.record`."""
        once = self._once
        await self._connection.run_sync(lambda _: once.record(result))


def write_key(connection: object, key: str) -> Once:
    """Write the key in the connection's transaction, or return what stands under it.

    Raises:
        Fenced: A check has closed the key; nothing may happen under it any more.
        ConfigurationError: The connection commits each statement by itself, or has no such table.
        InvalidInput: It is no connection that this takes.
    """
    refuse_autocommit(connection)
    if _inserted(connection, key, "happened"):
        return Once(connection, key, first=True)
    outcome, result = _standing(connection, key)
    if outcome == "never":
        raise Fenced(f"P3: a check has closed {key}, because it had not happened; it may not happen any more")
    return Once(connection, key, first=False, result=result)


async def write_key_async(connection: RunsSync, key: str) -> AsyncOnce:
    """Write the key in an asynchronous connection's transaction; see `write_key`."""
    once: Once = await connection.run_sync(write_key, key)
    return AsyncOnce(connection, once)


def once_check(connect: Any) -> Callable[[str], object]:
    """Return a check for tools that use `call.once`: it reads the key's row, and closes a key that has none.

    Both in a transaction of its own, so that its answer is final: `Check.happened` with the recorded result, or
    `Check.never`. It waits for a transaction that still holds the key, so the tool may set `settle_s=0`.

    Args:
        connect: An `Engine`, `AsyncEngine` or session maker of SQLAlchemy; or a function that opens a connection, which
            is closed afterwards: `lambda: sqlite3.connect("shop.db")`.
    """
    begin = getattr(connect, "begin", None)
    if begin is None and not callable(connect):
        raise ConfigurationError("once_check, connect", f"{connect!r}: give an engine, or a function that connects")

    def check(key: str) -> object:
        if begin is None:
            return _asked_of(connect(), key)
        transaction = begin()
        if hasattr(transaction, "__aenter__"):
            return _asked_later(transaction, key)
        with transaction as connection:
            return _ask(connection, key)

    return check


def _asked_of(connection: Any, key: str) -> Check:
    if inspect.isawaitable(connection) or hasattr(connection, "run_sync"):
        raise ConfigurationError("once_check, connect", "it connects asynchronously; give the AsyncEngine itself")
    try:
        answer = _ask(connection, key)
        connection.commit()
    finally:
        connection.close()
    return answer


async def _asked_later(transaction: Any, key: str) -> Check:
    async with transaction as connection:
        answer: Check = await connection.run_sync(_ask, key)
        return answer


def _ask(connection: object, key: str) -> Check:
    if _inserted(connection, key, "never"):
        return Check.never()
    outcome, result = _standing(connection, key)
    return Check.never() if outcome == "never" else Check.happened(result)


# --- rows -------------------------------------------------------------------------------------------------------


def _inserted(connection: object, key: str, outcome: str) -> bool:
    try:
        count, _ = run(connection, _INSERT, key, outcome)
    except Exception as error:
        # Drivers have no error in common; whatever it is goes on, and only the missing table gets its fix named.
        if _NO_TABLE.search(str(error)):
            raise ConfigurationError(
                "perdure_effects", "there is no such table; create it: perdure.ONCE_TABLE"
            ) from error
        raise
    return count == 1


def _standing(connection: object, key: str) -> tuple[str, JsonValue]:
    _, row = run(connection, _SELECT, key, reads=True)
    if row is None:
        raise OutcomeUnknown(key, "its row stands, and this transaction is too old to see it")
    outcome, result = row
    return outcome, None if result is None else json.loads(result)
