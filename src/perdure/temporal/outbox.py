"""Rows of the log that the store has not confirmed yet, and who carries them.

A row leaves with the next activity that writes: a model or tool call takes all waiting rows along and writes them
with its own start row in one transaction, so that a turn costs two activities and no more. A row whose carrier
failed may or may not be written; it waits again and is written again, which changes nothing (natural keys).

A model call reads the transcript in the store, so it takes along every row that is not confirmed, those that another
carrier has on its way too: it may be faster than that one.
"""

from collections import Counter
from collections.abc import Iterable

from perdure.core.log import LogEvent


class Outbox:
    """The unconfirmed rows, how many carriers each has, and the number up to which all are confirmed."""

    def __init__(self, at_once_max: int) -> None:
        """A carrier takes `at_once_max` rows at most."""
        self._at_once_max = at_once_max
        self._rows: dict[int, LogEvent] = {}
        self._carriers: Counter[int] = Counter()
        self._confirmed_beyond: set[int] = set()
        self.confirmed = 0
        """Every row up to this number is in the store."""

    def go_on(self, rows: Iterable[LogEvent], confirmed: int, last_number: int) -> None:
        """Go on from what an earlier history left: of the rows up to `last_number`, `rows` are not confirmed."""
        self._rows = {row.number: row for row in rows}
        self._confirmed_beyond = set(range(confirmed + 1, last_number + 1)) - self._rows.keys()
        self.confirmed = confirmed

    def append(self, row: LogEvent) -> None:
        """Take a new row."""
        self._rows[row.number] = row

    def take(self) -> tuple[LogEvent, ...]:
        """Give the waiting rows to a carrier, the lowest numbers first, a bounded number at a time."""
        waiting = [row for row in self.unconfirmed() if not self._carriers[row.number]]
        return self._given(waiting[: self._at_once_max])

    def take_all(self) -> tuple[LogEvent, ...]:
        """Give every unconfirmed row to a carrier that depends on all of them; only while `fits`."""
        return self._given(self.unconfirmed())

    def _given(self, rows: Iterable[LogEvent]) -> tuple[LogEvent, ...]:
        given = tuple(rows)
        self._carriers.update(row.number for row in given)
        return given

    def confirm(self, rows: Iterable[LogEvent]) -> None:
        """A carrier returned: its rows are in the store."""
        for row in rows:
            self._put_down(row)
            if self._rows.pop(row.number, None) is not None:
                self._confirmed_beyond.add(row.number)
        while self.confirmed + 1 in self._confirmed_beyond:
            self.confirmed += 1
            self._confirmed_beyond.remove(self.confirmed)

    def give_back(self, rows: Iterable[LogEvent]) -> None:
        """A carrier failed: its rows wait again, unless another one has them or brought them."""
        for row in rows:
            self._put_down(row)

    def _put_down(self, row: LogEvent) -> None:
        self._carriers[row.number] -= 1
        if self._carriers[row.number] == 0:
            del self._carriers[row.number]

    @property
    def waiting(self) -> int:
        """How many rows no carrier has."""
        return sum(1 for number in self._rows if not self._carriers[number])

    def written(self, numbers: Iterable[int]) -> bool:
        """Whether these rows are in the store, whatever waits before them."""
        return not any(number in self._rows for number in numbers)

    def carried(self, numbers: Iterable[int]) -> bool:
        """Whether each of these rows is in the store or on its way there."""
        return not any(number in self._rows and not self._carriers[number] for number in numbers)

    @property
    def fits(self) -> bool:
        """Whether one carrier can take all that is unconfirmed."""
        return len(self._rows) <= self._at_once_max

    def unconfirmed(self) -> tuple[LogEvent, ...]:
        """All rows that the store has not confirmed, in order."""
        return tuple(self._rows[number] for number in sorted(self._rows))
