"""The lock of an embedded server's database: at most one server per file, and others find the one that runs.

The lock is an exclusive `flock` on `<database>.lock`. Its descriptor is passed on to the server, so it is held for as
long as the owner **or** the server lives: whoever gets it knows that nobody has the database open. Between an owner's
sudden death and its server's, the lock is held while the owner recorded in the file is dead: a new owner waits that
moment out.

The file's content is a record (JSON) for those who join. It is only believed while the lock is held and the processes
it names live, and it is emptied before the lock is let go, so that a stale address is never given out. While an owner
starts its server (again), the record names the owner alone: those who join wait for the address. The file is never
removed: two processes could then hold locks on two files of one name.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from pathlib import Path

from pydantic import ValidationError

from perdure.core.content import Frozen
from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.descriptors import close_owned, own
from perdure.temporal.private_files import FILE_MODE, tighten

RELEASE_WAIT_S = 10.0
"""A server whose owner died is killed at once; one that is still there after this long is not going away."""

REFUSE_AFTER_S = 0.5
"""A live owner is believed after this long: one that was killed and not yet waited for looks alive for a moment."""

POLL_S = 0.01

DEAD_STATES = frozenset({"Z", "X", "x"})

RECORD_BYTES_MAX = 4096


class LockRecord(Frozen):
    """Who owns the database, and where its server listens once it does."""

    owner_pid: int
    server_pid: int | None = None
    address: str | None = None
    ui_url: str | None = None


class DatabaseHeldError(EmbeddedTemporalError):
    """Another process owns the database; `record` is what it says of itself."""

    def __init__(self, message: str, record: LockRecord | None) -> None:
        super().__init__(message)
        self.record = record


class DatabaseLock:
    """The held lock. Release it only after the server has ended."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    async def acquire(cls, database: Path, release_wait_s: float = RELEASE_WAIT_S) -> "DatabaseLock":
        """Take the lock of `database`, whose folder exists.

        A held lock whose recorded owner is dead is waited for, up to `release_wait_s`.

        Raises:
            DatabaseHeldError: Another process owns the database.
            OSError: The lock file cannot be opened.
        """
        path = lock_path(database)
        began = time.monotonic()
        while True:
            fd = _try_lock(path)
            if fd is not None:
                lock = cls(path, own(fd))
                lock.publish(LockRecord(owner_pid=os.getpid()))
                return lock
            record = _read(path)
            alive = record is not None and is_alive(record.owner_pid)
            if time.monotonic() - began > (REFUSE_AFTER_S if alive else release_wait_s):
                raise DatabaseHeldError(_held_text(database, record, alive), record)
            await asyncio.sleep(POLL_S)

    def publish(self, record: LockRecord) -> None:
        """Replace the file's record."""
        data = record.model_dump_json(exclude_none=True).encode()
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, data, 0)

    def retract(self) -> None:
        """Empty the record: the server is not there (any more)."""
        os.ftruncate(self.fd, 0)

    def release(self) -> None:
        """Empty the record and let the lock go. Closing does that, not unlocking, which would speak for the server."""
        self.retract()
        close_owned(self.fd)


def running(database: Path) -> LockRecord | None:
    """Return the record of the server that runs on `database`, or None; with an address only once it listens.

    Raises:
        OSError: The lock file exists and cannot be read.
    """
    path = lock_path(database)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        record = _read(path)
        return None if record is None else _believed(record)
    finally:
        os.close(fd)
    return None


def _believed(record: LockRecord) -> LockRecord | None:
    """Return what is still true of a record. A server that died is started again by its owner, if that lives."""
    if not is_alive(record.owner_pid):
        return None
    if record.server_pid is not None and not is_alive(record.server_pid):
        return LockRecord(owner_pid=record.owner_pid)
    return record


def lock_path(database: Path) -> Path:
    """Return the lock file's path of a database."""
    return database.with_name(database.name + ".lock")


def is_alive(pid: int) -> bool:
    """Say whether a process of that number runs; one that ended and was not waited for does not, where that shows."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return status.rsplit(")", 1)[-1].split()[0] not in DEAD_STATES
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _try_lock(path: Path) -> int | None:
    tighten(path, os.getuid())
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), path.stat()):  # else the name was given to another file meanwhile
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def _read(path: Path) -> LockRecord | None:
    with contextlib.suppress(OSError, ValidationError), path.open("rb") as file:
        return LockRecord.model_validate_json(file.read(RECORD_BYTES_MAX))
    return None


def _held_text(database: Path, record: LockRecord | None, alive: bool) -> str:
    if record is not None and alive:
        return (
            f"database: {database} belongs to the running process {record.owner_pid}; "
            "stop that process, join its server, or use another file"
        )
    owner = f"its owner, process {record.owner_pid}, is not here" if record is not None else "its owner is unknown"
    server = f" (its server was process {record.server_pid})" if record is not None and record.server_pid else ""
    return (
        f"database: {database} is still locked, but {owner}{server}; "
        f"find who holds it with `lsof {lock_path(database)}` and end it, or use another file"
    )
