"""A backup of store and embedded Temporal together, taken while they run: one moment of both.

Two copies that were taken one after the other do not belong together, whichever comes first. With the store first,
Temporal knows of writes that the store lacks: every task that went on in between parks (`StoreBehind`), and an effect
that was begun in between stands in no ledger. With Temporal first, the store holds rows that Temporal does not know of
and writes otherwise: those tasks park, too (`StoreAhead`), although nothing is done twice.

So both are copied while the store takes no writes: this holds its one writing lock, and workers wait as they do for
each other. All that the store had taken is in its copy. Temporal goes on meanwhile, but whatever it confirms was in
the store before; and what is in the store Temporal had scheduled before, which is in its copy. The pair is what is left
when everything is killed at one moment, and goes on as after that.

The copies are made by SQLite itself (its online backup), so that each is whole, whatever is written meanwhile.
"""

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from perdure.app.settings import SECRETS_FILE, Settings
from perdure.core import limits
from perdure.core.errors import ConfigurationError, InvalidInput, StoreUnavailable, Unavailable
from perdure.temporal.settings import EmbeddedSettings

STORE: Final = "store.db"
TEMPORAL: Final = "temporal.db"
AGENTS: Final = "agents"
"""Where agents came from, so that their tasks can be gone on with by their ids alone."""

_SQLITE: Final = "sqlite:///"
_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


@dataclass(frozen=True)
class Backup:
    """What was taken: how many tasks, how many of them open, bytes per file, and how long the store took no writes."""

    folder: Path
    tasks: int
    open_tasks: int
    bytes_by_file: dict[str, int]
    held_ms: int


def take_backup(settings: Settings, folder: Path) -> Backup:
    """Copy store and embedded Temporal into `folder`, which becomes a data folder (0700, its files 0600).

    It appears when all is there and synced, or not at all. Safe while everything runs.

    Raises:
        ConfigurationError: The store or the Temporal is another server's to back up, or there is nothing yet.
        InvalidInput: `folder` exists and is not empty, or cannot be written.
        StoreUnavailable: The store did not let go of its writing lock in time.
    """
    store, temporal = _sources(settings)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput("DIR", f"{folder} exists and is not empty; name a new folder, nothing is overwritten")
    target = folder.absolute()
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        partial.mkdir(mode=_FOLDER_MODE)
        try:
            began_s = time.monotonic()
            with _store_held(store):
                _copy(store, partial / STORE)
                _copy(temporal, partial / TEMPORAL)
            held_ms = int((time.monotonic() - began_s) * 1000)
            _copy_agents(settings.home / AGENTS, partial / AGENTS)
            _copy_key(settings.home / SECRETS_FILE, partial / SECRETS_FILE)
            tasks, open_tasks = _count(partial / STORE)
            sizes = {name: (partial / name).stat().st_size for name in (STORE, TEMPORAL)}
            _sync(partial)
            partial.rename(target)
            _sync(target.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise InvalidInput("DIR", f"{folder} cannot be written: {error.strerror or error}; name another") from error
    return Backup(target, tasks, open_tasks, sizes, held_ms)


def _sources(settings: Settings) -> tuple[Path, Path]:
    if not settings.store_url.startswith(_SQLITE):
        raise ConfigurationError(
            "PERDURE_STORE_URL",
            "names a PostgreSQL store, which is not copied here; end all workers, take it with pg_dump, and take "
            "Temporal's own database at the same moment",
        )
    if not isinstance(settings.temporal, EmbeddedSettings):
        raise ConfigurationError(
            "TEMPORAL_ADDRESS",
            "names a Temporal that is not embedded; back up its own database, together with the store's",
        )
    store, temporal = Path(settings.store_url.removeprefix(_SQLITE)), settings.temporal.database
    for path in (store, temporal):
        if not path.is_file():
            raise ConfigurationError("PERDURE_HOME", f"there is no {path}: nothing has run there yet; name another")
    return store, temporal


@contextmanager
def _store_held(store: Path) -> Iterator[None]:
    """Keep every other writer of the store waiting; readers go on."""
    with closing(sqlite3.connect(store, timeout=limits.STORE_WRITE_TIMEOUT_S, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(f"the store at {store} is busy: {error}; try again") from error
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


def _copy(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment, see that it is whole, and leave one private file of it."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))
    try:
        with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
            read.backup(written)  # all at once: one snapshot, however much is written meanwhile
            said = written.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.Error as error:
        raise Unavailable(f"{source} cannot be copied: {error}") from error
    if said != ("ok",):
        raise Unavailable(f"{source} is damaged: {said[0]}; keep it as it is, and go back to an earlier backup")
    _sync(target)


def _copy_agents(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    target.mkdir(mode=_FOLDER_MODE)
    for path in source.glob("*.json"):
        _copy_file(path, target / path.name)


def _copy_key(source: Path, target: Path) -> None:
    """Copy the key of what is sealed in the store; it never changes, so that any moment will do."""
    if source.is_file():
        _copy_file(source, target)


def _copy_file(source: Path, target: Path) -> None:
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))
    shutil.copyfile(source, target)
    _sync(target)


def _count(store: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(store)) as connection:
        counted = "SELECT count(*), coalesce(sum(terminal_number IS NULL), 0) FROM tasks"
        tasks, open_tasks = connection.execute(counted).fetchone()
    return int(tasks), int(open_tasks)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
