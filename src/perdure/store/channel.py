"""A channel beside the database, from the process that writes to those that follow: what it carries may be lost.

It says that something was written, so that nobody has to wait for the next poll, and it carries drafts of replies. A
database that is polled, and a log that has the whole reply, stand behind it: where no channel works, everything comes
a tenth of a second later and replies come whole.

Two of them: datagrams between processes of one machine, in a folder beside a SQLite file; LISTEN/NOTIFY where
processes of several hosts share a PostgreSQL database. Refused: deltas as rows of the store (each token a synced
write, for what nobody needs a second later), a port on the loopback (any user of the machine could speak to it, or
take it over when its server is gone), and a broker (one more thing that must run).
"""

from collections.abc import Callable, Iterable
from typing import Protocol

_WRITTEN = b"w"


def written(task_ids: Iterable[str]) -> bytes:
    """Return what says that the logs of these tasks have grown."""
    return _WRITTEN + "\n".join(task_ids).encode(errors="replace")


def written_in(data: bytes) -> tuple[str, ...] | None:
    """Return the tasks whose logs have grown, None where it says something else."""
    return tuple(data[1:].decode(errors="replace").split("\n")) if data.startswith(_WRITTEN) else None


class Channel(Protocol):
    """Belongs to the event loop that uses it."""

    def peers(self) -> tuple[str, ...]:
        """Return who listens, as far as it is known: names that are given to no other listener."""
        ...

    def send(self, peer: str, data: bytes) -> bool:
        """Send a datagram of at most DATAGRAM_BYTES_MAX; False when the peer takes no more now. Never blocks."""
        ...

    def listen(self, heard: Callable[[bytes], None]) -> None:
        """Hand on what others send from now on; once is enough."""
        ...

    async def close(self) -> None:
        """Listen and send no more."""
        ...


class NoChannel:
    """Where there is none: what others write is found by asking."""

    def peers(self) -> tuple[str, ...]:
        """Return nobody."""
        return ()

    def send(self, peer: str, data: bytes) -> bool:
        """Drop it."""
        return True

    def listen(self, heard: Callable[[bytes], None]) -> None:
        """Hear nothing."""

    async def close(self) -> None:
        """Do nothing."""
