"""From a URL to a store whose schema is up to date."""

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from perdure.core.errors import ConfigurationError
from perdure.store.local_channel import LocalChannel
from perdure.store.postgres import PostgresBackend
from perdure.store.sql_store import SqlStore
from perdure.store.sqlite import SqliteBackend

_SQLITE = "sqlite:///"


async def open_store(url: str) -> SqlStore:
    """Open the store at `url`, creating it or upgrading its schema when needed; close it when done.

    `sqlite:////absolute/path` names a file, created with mode 0600 in a folder of mode 0700 (a looser file is
    tightened); `postgresql://user:password@host/database` names an existing database. Several processes may open
    one store at once.

    Raises `ConfigurationError` for another URL, or a database that a newer release has upgraded, and
    `StoreUnavailable` where the database does not answer.
    """
    if url.startswith(_SQLITE):
        path = _path(url.removeprefix(_SQLITE))
        return SqlStore(await SqliteBackend.open(path), LocalChannel(path.with_name(f"{path.name}.listeners")))
    server = _server(url)
    backend = await PostgresBackend.open(server)
    from perdure.store.postgres_channel import PostgresChannel  # noqa: PLC0415 - its driver is an extra

    return SqlStore(backend, PostgresChannel(server))


def _path(name: str) -> Path:
    path = Path(name)
    if not path.is_absolute() or "\x00" in name:
        raise ConfigurationError(
            "store", f"{name!r} is not an absolute path to a file; write sqlite:////folder/file, with four slashes"
        )
    return path


def _server(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise ConfigurationError("store", "is not a URL; use sqlite:////path or postgresql://…") from error
    if url.drivername not in {"postgresql", "postgres"}:
        raise ConfigurationError(
            "store", f"has the scheme {url.drivername!r}; use sqlite:////path or postgresql://user@host/database"
        )
    query = dict(url.query)
    if "sslmode" in query:  # libpq's name for what asyncpg calls ssl
        query["ssl"] = query.pop("sslmode")
    return url.set(drivername="postgresql+asyncpg", query=query)
