"""The roster: which workers a supervisor had, for whoever starts after it was killed.

A killed supervisor cannot report its workers, which die with it; without their names the next start would wait for
heartbeat timeouts. So each supervisor keeps a file with their identities, and a lock on it that its nursery and all its
workers hold as well: when the lock is free, the kernel says that every one of them is dead. That is the proof.

Their deaths are nobody's crash: who kills a supervisor takes all its workers along.
"""

import contextlib
import fcntl
import os
import secrets
from pathlib import Path
from typing import Self


class Roster:
    """One supervisor's roster. `fd` is to be inherited by all its processes."""

    def __init__(self, path: Path, fd: int) -> None:
        self.fd = fd
        self._path = path

    @classmethod
    def open(cls, folder: Path, queue: str) -> Self:
        """Make a roster in the folder (0700, made when it is missing)."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{queue}.{secrets.token_hex(8)}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return cls(path, fd)

    def add(self, identity: str) -> None:
        """Note a worker that was born."""
        os.write(self.fd, f"{identity}\n".encode())

    def close(self, *, told: bool) -> None:
        """All workers are dead. Where their deaths were told, nobody needs the file; else the next supervisor does."""
        if told:
            self._path.unlink(missing_ok=True)
        os.close(self.fd)


def dead_of(folder: Path, queue: str) -> tuple[dict[str, Path], bool]:
    """Return the workers of earlier supervisors of the queue that are dead for certain, each with its roster's file.

    And whether there is a roster somebody of which lives: a sibling's, or one whose last process is still dying.
    """
    found: dict[str, Path] = {}
    lives = False
    for path in sorted(folder.glob(f"{queue}.*")):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lives = True
                continue
            # A file that was made and not locked yet is empty, and is left alone.
            found |= dict.fromkeys(file.read().decode().split(), path)
    return found, lives
