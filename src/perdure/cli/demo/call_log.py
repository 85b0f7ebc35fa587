"""The log of the demo's outside world: every call that it receives, committed together with its effect.

It plays a service that knows nothing of the harness, and that makes it the judge: the log says neither more nor less
than what happened. A key is decided once, by the first call or check that names it:

    applied        a writing call's effect was committed
    refused        the call was wrong; nothing was changed
    closed         a check did not find the key; nothing was changed and nothing will be
    ---
    answered       a reading call; it decides nothing, the same key is answered anew
    repeated       the key was decided before; its answer is given again, nothing is applied
    refused_late   the key is closed; nothing is applied
    refused_reuse  the key belongs to a call with another tool or other arguments

Any number of processes may use one file; a connection lives for one transaction.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BUSY_TIMEOUT_S: Final = 10.0

CALLS_SCHEMA: Final = """
CREATE TABLE calls (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL,
    at_ms INTEGER NOT NULL, outcome TEXT NOT NULL, result TEXT NOT NULL
);
CREATE UNIQUE INDEX calls_decided ON calls (key) WHERE outcome IN ('applied', 'refused', 'closed') AND key <> '';
"""


class WorldRefused(Exception):
    """The world says no, in words for the caller; nothing was changed."""


@dataclass(frozen=True)
class Finding:
    """What became of a key: it happened, with this result, or it did not and never will."""

    happened: bool
    result: Any = None


@dataclass(frozen=True)
class ReceivedCall:
    """A line of the world's log. A check that closed a key has `find` for its tool."""

    number: int
    key: str
    tool: str
    arguments: dict[str, Any]
    at_ms: int
    outcome: str
    result: Any


def wall_ms() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


class CallLog:
    """The file that holds the log and whatever the calls change.

    Args:
        path: A file that `create` made; `FileNotFoundError` when there is none.
        now_ms: The clock of the log, in milliseconds.
    """

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"there is no demo world at {path}; `World.create` makes one")
        self._path = path
        self._now_ms = now_ms

    @classmethod
    def create(cls, path: Path, schema: str, now_ms: Callable[[], int]) -> "CallLog":
        """Make the file with the log and the tables of `schema`; raises `FileExistsError`."""
        path.touch(mode=0o600, exist_ok=False)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(f"BEGIN IMMEDIATE; {schema} {CALLS_SCHEMA} COMMIT;")
        return cls(path, now_ms)

    def read(self, tool: str, arguments: dict[str, Any], key: str, answer: Callable[[sqlite3.Connection], Any]) -> Any:
        """Log a call that changes nothing and return its answer; raises `WorldRefused`. The key may be empty."""
        return self._receive(tool, arguments, key, answer, "answered")

    def write(self, tool: str, arguments: dict[str, Any], key: str, answer: Callable[[sqlite3.Connection], Any]) -> Any:
        """Apply a call unless its key was decided, log it in the same transaction, and return its answer.

        `answer` checks first and changes afterwards; it raises `WorldRefused` before it has changed anything.
        """
        if not key:
            raise ValueError(f"key: {tool} changes something and needs an idempotency key")
        return self._receive(tool, arguments, key, answer, "applied")

    def find(self, key: str) -> Finding:
        """Say what became of a key; in the same transaction, close it when no call has decided it."""
        if not key:
            raise ValueError("key: a call without an idempotency key cannot be found")
        with self.transaction() as connection:
            decided = _decided(connection, key)
            if decided is None:
                self._append(connection, key, "find", {}, "closed", None)
                return Finding(happened=False)
        if decided.outcome == "applied":
            return Finding(happened=True, result=decided.result)
        return Finding(happened=False)

    def calls(self) -> list[ReceivedCall]:
        """Return every call that was received, oldest first."""
        with self.transaction() as connection:
            return [_received(row) for row in connection.execute("SELECT * FROM calls ORDER BY number")]

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open one transaction, synced to disk when it ends well, rolled back when anything is raised in it."""
        # mode=rw: a world whose file is gone is an error, not a new and empty world.
        uri = f"{self._path.resolve().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            # Immediate: a deferred transaction that reads first and writes later fails as "locked", timeout or not.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _receive(
        self,
        tool: str,
        arguments: dict[str, Any],
        key: str,
        answer: Callable[[sqlite3.Connection], Any],
        good_outcome: str,
    ) -> Any:
        with self.transaction() as connection:
            decided = _decided(connection, key)
            if decided is None:
                try:
                    outcome, result = good_outcome, answer(connection)
                except WorldRefused as refusal:  # Raised before anything is written: each answer checks first.
                    outcome, result = "refused", str(refusal)
                refused = outcome == "refused"
            elif decided.outcome == "closed":
                outcome, result, refused = "refused_late", f"The key {key} is closed.", True
            elif (decided.tool, decided.arguments) != (tool, arguments):
                outcome, result, refused = "refused_reuse", f"The key {key} belongs to another call.", True
            else:
                outcome, result, refused = "repeated", decided.result, decided.outcome == "refused"
            self._append(connection, key, tool, arguments, outcome, result)
        if refused:
            raise WorldRefused(result)
        return result

    def _append(
        self, connection: sqlite3.Connection, key: str, tool: str, arguments: dict[str, Any], outcome: str, result: Any
    ) -> None:
        connection.execute(
            "INSERT INTO calls (key, tool, arguments, at_ms, outcome, result) VALUES (?, ?, ?, ?, ?, ?)",
            (key, tool, json.dumps(arguments), self._now_ms(), outcome, json.dumps(result)),
        )


def _decided(connection: sqlite3.Connection, key: str) -> ReceivedCall | None:
    """Return the line that decided a key; a call without a key is always a new one."""
    query = "SELECT * FROM calls WHERE key = ? AND key <> '' AND outcome IN ('applied', 'refused', 'closed')"
    row = connection.execute(query, (key,)).fetchone()
    return None if row is None else _received(row)


def _received(row: tuple[Any, ...]) -> ReceivedCall:
    number, key, tool, arguments, at_ms, outcome, result = row
    return ReceivedCall(number, key, tool, json.loads(arguments), at_ms, outcome, json.loads(result))
