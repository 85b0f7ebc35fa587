"""Rows of the log that the store has not confirmed yet, and who carries them.

A row leaves with the next activity that writes: a model or tool call takes all waiting rows along and writes them
with its own start row in one transaction, so that a turn costs two activities and no more. A row whose carrier
failed may or may not be written; it waits again and is written again, which changes nothing (natural keys).
"""

from collections.abc import Iterable

from perdure.core.limits import EVENTS_PER_WRITE_MAX
from perdure.core.log import LogEvent


class Outbox:
    """The waiting rows, the carried ones, and the number up to which all are confirmed."""

    def __init__(self, rows: Iterable[LogEvent] = (), confirmed: int = 0) -> None:
        self._waiting: dict[int, LogEvent] = {row.number: row for row in rows}
        self._carried: dict[int, LogEvent] = {}
        self._confirmed_beyond: set[int] = set()
        self.confirmed = confirmed
        """Every row up to this number is in the store."""

    def append(self, row: LogEvent) -> None:
        """Take a new row."""
        self._waiting[row.number] = row

    def take(self) -> tuple[LogEvent, ...]:
        """Give the waiting rows to a carrier, the lowest numbers first, a bounded number at a time."""
        rows = tuple(self._waiting[number] for number in sorted(self._waiting)[:EVENTS_PER_WRITE_MAX])
        for row in rows:
            del self._waiting[row.number]
            self._carried[row.number] = row
        return rows

    def confirm(self, rows: Iterable[LogEvent]) -> None:
        """A carrier returned: its rows are in the store."""
        for row in rows:
            del self._carried[row.number]
            self._confirmed_beyond.add(row.number)
        while self.confirmed + 1 in self._confirmed_beyond:
            self.confirmed += 1
            self._confirmed_beyond.remove(self.confirmed)

    def give_back(self, rows: Iterable[LogEvent]) -> None:
        """A carrier failed: its rows wait again."""
        for row in rows:
            del self._carried[row.number]
            self._waiting[row.number] = row

    def has(self, number: int) -> bool:
        """Whether the row of that number is confirmed."""
        return number <= self.confirmed or number in self._confirmed_beyond

    @property
    def waiting(self) -> int:
        """How many rows no carrier has."""
        return len(self._waiting)

    def unconfirmed(self) -> tuple[LogEvent, ...]:
        """All rows that the store has not confirmed, in order."""
        rows = self._waiting | self._carried
        return tuple(rows[number] for number in sorted(rows))
