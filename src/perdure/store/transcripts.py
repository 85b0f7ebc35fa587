"""Read a transcript by reference: entries 1 to n, named by the chain of the n-th.

Entries never change once they stand, and a chain names every entry before it. So a prefix that was read before can
be used again wherever the store still holds the same chain at its last entry, and a turn reads only what is new.
"""

from collections import OrderedDict
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from perdure.core import limits
from perdure.core.content import Entry
from perdure.core.errors import StoreAhead, StoreBehind
from perdure.store.bodies import decode
from perdure.store.schema import entries, transcript
from perdure.store.statements import rows

_LINKS = (
    select(transcript.c.chain, entries.c.body)
    .join_from(
        transcript,
        entries,
        (entries.c.task_id == transcript.c.task_id) & (entries.c.digest == transcript.c.digest),
        isouter=True,
    )
    .where(
        transcript.c.task_id == bindparam("of_task"),
        transcript.c.entry >= bindparam("first"),
        transcript.c.entry <= bindparam("last"),
    )
    .order_by(transcript.c.entry)
)


class Prefix(NamedTuple):
    """The parsed entries from the first on, the chain at each, and the bytes of their bodies."""

    entries: tuple[Entry, ...] = ()
    chains: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    def cut(self, upto: int) -> "Prefix":
        """Return the first `upto` entries."""
        return Prefix(self.entries[:upto], self.chains[:upto], self.sizes[:upto])


def read_prefix(connection: Connection, task_id: str, upto: int, chain: str, known: Prefix) -> Prefix:
    """Return entries 1 to `upto`, reading only what `known` does not hold; `known` is dropped where it differs."""
    if upto < 1:
        return Prefix()
    known = known.cut(upto)
    first = max(1, len(known.entries))
    found = rows(connection, _LINKS, {"of_task": task_id, "first": first, "last": upto})
    if len(found) != upto - first + 1:
        raise StoreBehind(f"P6: the store lacks entries of task {task_id}: {upto} were confirmed")
    if found[-1].chain != chain:
        raise StoreAhead(f"P6: the transcript of task {task_id} up to entry {upto} is another one in the store")
    if known.entries:
        if found[0].chain != known.chains[-1]:
            return read_prefix(connection, task_id, upto, chain, Prefix())
        found = found[1:]
    texts = [row.body for row in found]
    if None in texts:
        raise StoreBehind(f"P6: the store lacks the body of an entry of task {task_id} up to {upto}")
    return Prefix(
        known.entries + decode(texts),
        known.chains + tuple(row.chain for row in found),
        known.sizes + tuple(len(text) for text in texts),
    )


class TranscriptCache:
    """The longest prefix of each of the tasks that were read last, within a bound of bytes."""

    def __init__(self, bytes_max: int = limits.TRANSCRIPT_CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._prefixes: OrderedDict[str, Prefix] = OrderedDict()

    def get(self, task_id: str) -> Prefix:
        """Return what is known of the task's transcript; maybe nothing."""
        return self._prefixes.get(task_id, Prefix())

    def put(self, task_id: str, prefix: Prefix) -> None:
        """Keep `prefix` unless a longer one with the same chain is kept; drop those that were not used longest."""
        kept = self._prefixes.pop(task_id, Prefix())
        self._bytes -= sum(kept.sizes)
        length = len(prefix.entries)
        if len(kept.entries) > length and kept.chains[:length][-1:] == prefix.chains[-1:]:
            prefix = kept
        self._prefixes[task_id] = prefix
        self._bytes += sum(prefix.sizes)
        while self._bytes > self._bytes_max:
            _, dropped = self._prefixes.popitem(last=False)
            self._bytes -= sum(dropped.sizes)
