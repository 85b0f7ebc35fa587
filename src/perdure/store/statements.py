"""Run a statement: SQLAlchemy writes it for either database, and on SQLite the driver runs it.

SQLAlchemy's way from a compiled statement to its rows costs 14 µs, SQLite's own work for it 2 µs, and a turn has 28
statements; beside Temporal on two cores it was a sixth of what a turn costs more than its two activities. So the
statements on the path of every turn come here. What is bound late (`IN` over a list) does not fit, and needs not.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import Select


class _Prepared(NamedTuple):
    """A statement's text, the names of its parameters in their order with the values of those it brings itself."""

    text: str
    names: tuple[str, ...]
    brought: Mapping[str, object]
    row: Callable[..., Any]


Statement = Select[Any] | UpdateBase

_prepared: dict[tuple[Statement, tuple[str, ...]], _Prepared] = {}
"""Statements are constants of their modules: there are as many as their uses."""


def rows(connection: Connection, statement: Statement, parameters: Mapping[str, object]) -> Sequence[Any]:
    """Return the rows that the statement gives, with its columns as attributes."""
    if connection.dialect.name != "sqlite":
        return connection.execute(statement, parameters).all()
    prepared, cursor = _run(connection, statement, parameters)
    return [prepared.row(*row) for row in cursor.fetchall()]


def changed(connection: Connection, statement: Statement, parameters: Mapping[str, object]) -> int:
    """Return how many rows the statement inserted or changed."""
    if connection.dialect.name != "sqlite":
        return connection.execute(statement, parameters).rowcount
    _, cursor = _run(connection, statement, parameters)
    return cursor.rowcount


def _run(
    connection: Connection, statement: Statement, parameters: Mapping[str, object]
) -> tuple[_Prepared, sqlite3.Cursor]:
    names = tuple(parameters)
    prepared = _prepared.get((statement, names))
    if prepared is None:
        prepared = _prepared[statement, names] = _prepare(connection.dialect, statement, names)
    values = {**prepared.brought, **parameters}
    cursor: sqlite3.Cursor = connection.connection.cursor()  # type: ignore[assignment]
    try:
        return prepared, cursor.execute(prepared.text, [values[name] for name in prepared.names])
    except sqlite3.Error as error:
        raise DBAPIError(prepared.text, None, error) from error


def _prepare(dialect: Dialect, statement: Statement, names: tuple[str, ...]) -> _Prepared:
    columns = None if isinstance(statement, Select) else list(names)
    compiled = dialect.statement_compiler(dialect, statement, column_keys=columns)
    if compiled.post_compile_params:
        raise TypeError(f"not a statement whose text is fixed: {compiled}")
    return _Prepared(
        str(compiled),
        tuple(compiled.positiontup or ()),
        {name: bound.value for name, bound in compiled.binds.items() if bound.value is not None},
        namedtuple("Row", [name or "" for name in statement.exported_columns.keys()], rename=True),  # noqa: SIM118
    )
