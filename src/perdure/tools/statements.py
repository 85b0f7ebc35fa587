"""A few plain statements on whichever connection a user has: SQLAlchemy's, or any driver's of PEP 249.

Nothing is imported for it. A connection is known by what it offers, and how a driver writes parameters by what its
module says.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any, Final, Protocol

from perdure.core.errors import ConfigurationError, InvalidInput


class RunsSync(Protocol):
    """An asynchronous connection or session of SQLAlchemy."""

    async def run_sync(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function on the synchronous one beneath."""
        ...


class Drives(Protocol):
    """A connection of SQLAlchemy."""

    def exec_driver_sql(self, statement: str, parameters: Any = ..., /) -> Any:
        """Execute SQL as its driver takes it."""
        ...


class HasConnection(Protocol):
    """A session of SQLAlchemy."""

    def connection(self) -> Any:
        """Return the connection of the session's transaction."""
        ...


class HasCursor(Protocol):
    """A plain DB-API connection (PEP 249): `sqlite3`, `psycopg` and the like."""

    def cursor(self) -> Any:
        """Open a cursor."""
        ...


def run(connection: Any, statement: str, *values: str, reads: bool = False) -> tuple[int, Any]:
    """Execute a statement with `?` for each value; return how many rows it changed, and its first row where it reads.

    Raises `InvalidInput` for what is no connection, and whatever the driver raises.
    """
    if hasattr(connection, "exec_driver_sql"):
        result = connection.exec_driver_sql(*_bound(statement, connection.dialect.paramstyle, values))
        return result.rowcount, result.first() if reads else None
    if not hasattr(connection, "cursor") and callable(getattr(connection, "connection", None)):
        return run(connection.connection(), statement, *values, reads=reads)
    cursor = _cursor(connection)
    try:
        cursor.execute(*_bound(statement, _paramstyle(connection), values))
        return cursor.rowcount, cursor.fetchone() if reads else None
    finally:
        cursor.close()


def _cursor(connection: Any) -> Any:
    opened = connection.cursor() if hasattr(connection, "cursor") else None
    if opened is None or inspect.isawaitable(opened) or inspect.iscoroutinefunction(opened.execute):
        raise InvalidInput(
            "connection",
            f"a {type(connection).__qualname__} is not taken; give a Connection, AsyncConnection, Session or "
            "AsyncSession of SQLAlchemy, or a synchronous DB-API connection",
        )
    return opened


def _paramstyle(connection: object) -> str:
    """Return how the connection's driver writes parameters: a global of its module, as PEP 249 has it."""
    for each in type(connection).__mro__:
        module = sys.modules.get(each.__module__.partition(".")[0])
        style = getattr(module, "paramstyle", None)
        if isinstance(style, str):
            return style
    raise InvalidInput(
        "connection", f"the module of {type(connection).__qualname__} has no paramstyle; use a DB-API driver (PEP 249)"
    )


_WRITTEN: Final[dict[str, Callable[[int], str]]] = {
    "qmark": lambda n: "?",
    "format": lambda n: "%s",
    "numeric": lambda n: f":{n}",
    "numeric_dollar": lambda n: f"${n}",
    "named": lambda n: f":p{n}",
    "pyformat": lambda n: f"%(p{n})s",
}
"""How the n-th parameter is written: PEP 249's styles, and that of PostgreSQL's own protocol."""


def _bound(statement: str, style: str, values: tuple[str, ...]) -> tuple[str, Any]:
    """Return the statement as that style writes it, with its parameters. Our statements hold no other `?`."""
    written = _WRITTEN[style]
    first, *rest = statement.split("?")
    text = first + "".join(f"{written(n)}{piece}" for n, piece in enumerate(rest, 1))
    if style in {"named", "pyformat"}:
        return text, {f"p{n}": value for n, value in enumerate(values, 1)}
    return text, values


def refuse_autocommit(connection: Any) -> None:
    """Refuse a connection whose key would be committed alone, before the effect."""
    if hasattr(connection, "exec_driver_sql"):
        driven = connection.connection.driver_connection
        try:
            alone = connection.dialect.detect_autocommit_setting(connection.connection.dbapi_connection)
        except NotImplementedError:  # not every dialect can tell
            return
    elif hasattr(connection, "cursor"):
        driven, said = connection, getattr(connection, "autocommit", None)
        # `sqlite3` says it by `autocommit` since Python 3.12, and by an `isolation_level` of None before and still.
        alone = said is True or (said is not False and getattr(connection, "isolation_level", "") is None)
    elif callable(getattr(connection, "connection", None)):
        refuse_autocommit(connection.connection())
        return
    else:
        return
    if alone and not _in_transaction(driven):
        raise ConfigurationError(
            "connection", "it commits each statement by itself, so that key and effect could part; begin a transaction"
        )


_IN_TRANSACTION: Final = 2
"""libpq's `PQTRANS_INTRANS`, as the drivers of PostgreSQL hand it on."""


def _in_transaction(driven: Any) -> bool:
    """Whether a transaction was begun by hand on a connection that else commits each statement by itself."""
    status = getattr(getattr(driven, "info", None), "transaction_status", None)
    return getattr(driven, "in_transaction", False) is True or bool(status == _IN_TRANSACTION)
