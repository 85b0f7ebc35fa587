"""What the store needs of a database: run a piece of work in one transaction.

Work is a plain function over a SQLAlchemy `Connection`; it never awaits, so no other code of this process can run
inside a transaction. A backend runs it, commits when it returns and rolls back when it raises.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from perdure.core.errors import StoreUnavailable

T = TypeVar("T")


class Backend(Protocol):
    """A database. Raises `StoreUnavailable` where it does not answer; then nothing, or all, of the work stands."""

    async def write(
        self, work: Callable[[Connection], T], *, synced: bool = True, committed: Callable[[], None] | None = None
    ) -> T:
        """Run `work` in a writing transaction; synced to disk when this returns.

        `committed` is called right behind the commit, in whichever thread that was, also for a caller that has left.

        Without `synced` it survives the death of this process at once, and that of the database server or the machine
        from the next synced write on: the log that both are written to is synced as a whole.
        """
        ...

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a reading transaction."""
        ...

    async def close(self) -> None:
        """Wait for running work and release the connections."""
        ...


_SQLITE_UNAVAILABLE = frozenset({3, 5, 6, 7, 8, 9, 10, 13, 14, 15})
"""PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL. Not CORRUPT, not NOTADB."""

_POSTGRES_UNAVAILABLE = ("08", "25006", "40", "53", "55", "57", "58")
"""Connection, read-only (a standby), rollback, resources, lock not available, operator's hand, system error."""


@contextmanager
def driver_errors(place: str) -> Iterator[None]:
    """Turn what the database may recover from into `StoreUnavailable`; corruption and defects pass as they are."""
    try:
        yield
    except DBAPIError as error:
        if not _recoverable(error):
            raise
        raise StoreUnavailable(f"the store at {place} did not answer: {error.orig}") from error
    except (PoolTimeoutError, TimeoutError) as error:
        raise StoreUnavailable(f"the store at {place} did not answer in time: {error}") from error
    except OSError as error:
        raise StoreUnavailable(f"the store at {place} cannot be reached: {error}") from error


def _recoverable(error: DBAPIError) -> bool:
    if error.connection_invalidated or isinstance(error, InterfaceError):
        return True
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return (code & 0xFF) in _SQLITE_UNAVAILABLE
    return str(sqlstate(error)).startswith(_POSTGRES_UNAVAILABLE)


def sqlstate(error: DBAPIError) -> str | None:
    """Return PostgreSQL's five characters for what went wrong, or None."""
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state
