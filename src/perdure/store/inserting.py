"""Insert the rows that are not there yet, in the one statement that both databases have for it."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from perdure.store.statements import changed

_statements: dict[tuple[str, str], Insert] = {}
"""One statement object per dialect and table, so that SQLAlchemy compiles each once."""


def insert_missing(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> int:
    """Insert `rows` whose key is free and return how many were; a row that stands is left as it is."""
    if not rows:
        return 0
    statement = _statement(connection.dialect.name, table)
    return sum(changed(connection, statement, row) for row in rows)


def _statement(dialect: str, table: Table) -> Insert:
    statement = _statements.get((dialect, table.name))
    if statement is None:
        if dialect == "postgresql":
            statement = postgres_insert(table).on_conflict_do_nothing()
        else:
            statement = sqlite_insert(table).on_conflict_do_nothing()
        _statements[dialect, table.name] = statement
    return statement
