"""The board: which tasks a worker has attempts of, in memory that outlives it.

A page of slots, shared between a worker (which writes) and its supervisor (which reads once the worker is dead). A
worker that is killed takes nothing of it along, and cannot be held up by a reader: that is why it is no pipe.

A slot holds a task's id while an attempt of it is in hand, and zeroes otherwise. Its length stands last: a slot whose
writing was cut short counts as free.
"""

import contextlib
import mmap
import os
import tempfile
from collections.abc import Iterator

from perdure.core import limits

SLOT_BYTES = 256
"""A task's id and its length. A longer id is cut: two such may look like one, which only hurts the exotic."""

SLOTS = limits.CALLS_AT_ONCE_MAX + limits.WRITES_AT_ONCE_MAX + limits.QUARANTINED_AT_ONCE_MAX
_LENGTH_AT = SLOT_BYTES - 1
_BYTES = SLOT_BYTES * SLOTS


class WorkerBoard:
    """One worker's board, over a file descriptor that both sides hold."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, _BYTES)
        self._free = list(range(SLOTS))

    @contextlib.contextmanager
    def noting(self, task_id: str) -> Iterator[None]:
        """Note an attempt of the task while the context is open; for the worker's event loop only."""
        if not self._free:
            yield  # more attempts than slots cannot be: the workers bound them
            return
        slot = self._free.pop()
        at, name = slot * SLOT_BYTES, task_id.encode()[:_LENGTH_AT]
        self._map[at : at + len(name)] = name
        self._map[at + _LENGTH_AT] = len(name)
        try:
            yield
        finally:
            self._map[at + _LENGTH_AT] = 0
            self._free.append(slot)

    def held(self) -> frozenset[str]:
        """Return the tasks that are noted."""
        found: set[str] = set()
        for at in range(0, _BYTES, SLOT_BYTES):
            length = self._map[at + _LENGTH_AT]
            if length:
                found.add(self._map[at : at + length].decode(errors="replace"))
        return frozenset(found)

    def close(self) -> None:
        """Let the memory go."""
        self._map.close()


def board_file() -> int:
    """Return the descriptor of an empty board; nobody else can open it, and it is gone with its last holder."""
    with tempfile.TemporaryFile() as file:
        fd = os.dup(file.fileno())
    os.ftruncate(fd, _BYTES)
    return fd
