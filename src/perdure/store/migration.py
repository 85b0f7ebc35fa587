"""Bring a database to the schema of this code, in the caller's transaction.

The caller holds a lock that keeps other processes out, and the whole migration is one transaction, on SQLite too:
a process killed in the middle leaves the schema as it was. Alembic is imported only when there is something to do,
because its import costs more than opening a store.
"""

import threading
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, Table, Text, inspect, select

from perdure.core.errors import ConfigurationError
from perdure.store.schema import REVISIONS, VERSION_TABLE, metadata

one_at_a_time = threading.Lock()
"""Held while a database is migrated: Alembic keeps what it works on in globals, one migration to a process."""

_version = Table(VERSION_TABLE, MetaData(), Column("version_num", Text))


def migrate(connection: Connection) -> None:
    """Create or upgrade the tables; changes nothing when they are up to date.

    Raises `ConfigurationError` for a database that a newer release has upgraded, or that holds tables of something
    else under our names.
    """
    current = _revision(connection)
    if current == REVISIONS[-1]:
        return
    from alembic import command  # noqa: PLC0415 -- see the module's text
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    names = set(inspect(connection).get_table_names())
    if VERSION_TABLE not in names:
        foreign = sorted(names & set(metadata.tables))
        if foreign:
            raise ConfigurationError(
                "store",
                f"the database holds tables of something else ({', '.join(foreign)}); name a database of its own",
            )
        return None
    current = connection.execute(select(_version.c.version_num)).scalar_one_or_none()
    if current is not None and current not in REVISIONS:
        raise ConfigurationError(
            "store",
            f"the database has schema {current}, this release knows {REVISIONS[0]} to {REVISIONS[-1]}; "
            "use the release that upgraded it, or a newer one",
        )
    return current
