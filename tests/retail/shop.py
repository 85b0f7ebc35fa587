"""A shop that plays the outside world: one SQLite file for each conversation, judged by the shop's own log.

The shop shares no code with what it judges. Every call that it receives becomes a line of its log, in the same
transaction as the effect, so that the log cannot say more or less than what happened. A key is decided once, by
the first call or check that names it:

    applied        a writing tool's effect was committed
    refused        the call was wrong for the data; nothing was changed
    closed         a check did not find the key; nothing was changed and nothing will be
    ---
    answered       a reading tool; decides nothing, the same key is simply answered again
    repeated       the key was decided before; its result is returned again, nothing is applied
    refused_late   the key is closed; nothing is applied
    refused_reuse  the key belongs to a call with another tool or other arguments

Beside the log, `arrivals` tells when a call came and whether it left: a call that never left was cut off by a kill.
It is written before the effect and proves nothing about it.

Any number of processes may open a shop's file. A connection lives for one operation.
"""

import inspect
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.retail import reading, writing
from tests.retail.books import Books, Refused, canonical
from tests.retail.data import KINDS, Data, Json

READ = (
    reading.find_user_id_by_name_zip,
    reading.find_user_id_by_email,
    reading.get_user_details,
    reading.get_order_details,
    reading.get_product_details,
    reading.list_all_product_types,
    reading.calculate,
)
IDEMPOTENT = (writing.modify_pending_order_address, writing.modify_user_address)
ONCE = (
    writing.cancel_pending_order,
    writing.modify_pending_order_items,
    writing.modify_pending_order_payment,
    writing.return_delivered_order_items,
    writing.exchange_delivered_order_items,
    writing.transfer_to_human_agents,
)
RULES: dict[str, Callable[..., Any]] = {rule.__name__: rule for rule in (*READ, *IDEMPOTENT, *ONCE)}
READ_NAMES = frozenset(rule.__name__ for rule in READ)
ONCE_NAMES = frozenset(rule.__name__ for rule in ONCE)

BUSY_TIMEOUT_S = 20.0

SCHEMA = """
CREATE TABLE documents (kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE calls (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL,
    at_ms INTEGER NOT NULL, outcome TEXT NOT NULL, result TEXT NOT NULL
);
CREATE UNIQUE INDEX calls_decided ON calls (key) WHERE outcome IN ('applied', 'refused', 'closed');
CREATE TABLE arrivals (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, tool TEXT NOT NULL, pid INTEGER NOT NULL,
    arrived_ms INTEGER NOT NULL, left_ms INTEGER
);
"""


@dataclass(frozen=True)
class Answer:
    """What the shop answers to a call: a result, or in words why not."""

    ok: bool
    result: Any


@dataclass(frozen=True)
class Finding:
    """What the shop says of a key: it happened, with this result, or it did not and never will."""

    happened: bool
    result: Any = None


@dataclass(frozen=True)
class Line:
    """A line of the shop's log. A check's own line has neither tool nor arguments."""

    number: int
    key: str
    tool: str
    arguments: str
    at_ms: int
    outcome: str
    result: Any


@dataclass(frozen=True)
class Arrival:
    """A call that came, from which process, and when it left; `left_ms` is None for one that is open or was cut off."""

    key: str
    tool: str
    pid: int
    arrived_ms: int
    left_ms: int | None


def wall_ms() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


class Shop:
    """One conversation's shop. Every method is one transaction; all may be called from any thread and process."""

    def __init__(self, path: Path, now_ms: Callable[[], int] = wall_ms) -> None:
        if not path.is_file():
            raise FileNotFoundError(f"there is no shop at {path}; `Shop.create` makes one")
        self.path = path
        self._now_ms = now_ms

    @classmethod
    def create(cls, path: Path, data: Data, now_ms: Callable[[], int] = wall_ms) -> "Shop":
        """Make a shop with its own copy of all the data, about 25 ms; raises `FileExistsError`."""
        path.touch(mode=0o600, exist_ok=False)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA}")
            connection.executemany(
                "INSERT INTO documents VALUES (?, ?, ?)",
                [(kind, id_, canonical(body)) for kind in KINDS for id_, body in data.documents[kind].items()],
            )
            connection.execute("COMMIT")
        return cls(path, now_ms)

    def call(self, tool: str, arguments: Json, key: str) -> Answer:
        """Serve one call and log it; the effect and its line are committed together."""
        asked = canonical(arguments)
        with self._transaction() as connection:
            decided = self._decided(connection, key)
            if decided is None:
                outcome, answer = self._serve(connection, tool, arguments)
            elif decided.outcome == "closed":
                outcome, answer = "refused_late", Answer(ok=False, result=f"The key {key} is closed.")
            elif (decided.tool, decided.arguments) != (tool, asked):
                outcome, answer = "refused_reuse", Answer(ok=False, result=f"The key {key} belongs to another call.")
            else:
                outcome, answer = "repeated", Answer(ok=decided.outcome == "applied", result=decided.result)
            self._log(connection, key, tool, asked, outcome, answer.result)
        return answer

    def find(self, key: str) -> Finding:
        """Say what became of a key, and close it when it is not known: it will never happen from now on."""
        with self._transaction() as connection:
            decided = self._decided(connection, key)
            if decided is None:
                self._log(connection, key, "", "", "closed", None)
                return Finding(happened=False)
        if decided.outcome == "applied":
            return Finding(happened=True, result=decided.result)
        return Finding(happened=False)

    def arrive(self, tool: str, key: str) -> int:
        """Note that a call came; returns its number for `leave`. Not synced to disk, but safe against SIGKILL."""
        with self._transaction("NORMAL") as connection:
            row = connection.execute(
                "INSERT INTO arrivals (key, tool, pid, arrived_ms) VALUES (?, ?, ?, ?) RETURNING number",
                (key, tool, os.getpid(), self._now_ms()),
            ).fetchone()
        return int(row[0])

    def leave(self, number: int) -> None:
        """Note that a call got its answer or was given up by its caller."""
        with self._transaction("NORMAL") as connection:
            connection.execute("UPDATE arrivals SET left_ms = ? WHERE number = ?", (self._now_ms(), number))

    def log(self) -> list[Line]:
        """Return every line, oldest first."""
        with self._transaction() as connection:
            rows = connection.execute(f"SELECT {_LINE} FROM calls ORDER BY number").fetchall()
        return [_line(row) for row in rows]

    def arrivals(self) -> list[Arrival]:
        """Return every arrival, oldest first."""
        query = "SELECT key, tool, pid, arrived_ms, left_ms FROM arrivals ORDER BY number"
        with self._transaction() as connection:
            return [Arrival(*row) for row in connection.execute(query)]

    def final_state(self) -> str:
        """Return users, orders and products as canonical JSON."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT kind, id, body FROM documents").fetchall()
        state: dict[str, Json] = {kind: {} for kind in KINDS}
        for kind, document_id, body in rows:
            state[kind][document_id] = json.loads(body)
        return canonical(state)

    def _serve(self, connection: sqlite3.Connection, tool: str, arguments: Json) -> tuple[str, Answer]:
        books = Books(connection)
        try:
            result = _rule(tool, arguments)(books, **arguments)
        except Refused as refusal:
            return "refused", Answer(ok=False, result=str(refusal))
        books.flush()
        return ("answered" if tool in READ_NAMES else "applied"), Answer(ok=True, result=result)

    def _decided(self, connection: sqlite3.Connection, key: str) -> Line | None:
        query = f"SELECT {_LINE} FROM calls WHERE key = ? AND outcome IN ('applied', 'refused', 'closed')"
        row = connection.execute(query, (key,)).fetchone()
        return None if row is None else _line(row)

    def _log(
        self, connection: sqlite3.Connection, key: str, tool: str, arguments: str, outcome: str, result: Any
    ) -> None:
        connection.execute(
            "INSERT INTO calls (key, tool, arguments, at_ms, outcome, result) VALUES (?, ?, ?, ?, ?, ?)",
            (key, tool, arguments, self._now_ms(), outcome, canonical(result)),
        )

    @contextmanager
    def _transaction(self, synchronous: str = "FULL") -> Iterator[sqlite3.Connection]:
        # mode=rw: a shop whose file is gone is an error, not a new and empty shop.
        uri = f"{self.path.resolve().as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        with closing(connection):
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            # Immediate: a deferred transaction that reads first and writes later fails as "locked", timeout or not.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


def shop_path(folder: Path, task_id: str) -> Path:
    """Return where the shop of a task's conversation is."""
    if task_id in {"", ".", ".."} or "/" in task_id or "\0" in task_id:
        raise ValueError(f"task_id: {task_id!r} cannot name a file")
    return folder / f"{task_id}.db"


def task_of(key: str) -> str:
    """Return the task that a key belongs to: keys are `task/turn/index` and more."""
    return key.split("/", 1)[0]


_LINE = "number, key, tool, arguments, at_ms, outcome, result"


def _line(row: tuple[Any, ...]) -> Line:
    number, key, tool, arguments, at_ms, outcome, result = row
    return Line(number, key, tool, arguments, at_ms, outcome, json.loads(result))


def _rule(tool: str, arguments: Json) -> Callable[..., Any]:
    """Return the tool's rule when the arguments fit its parameters, each a text or a list of texts."""
    rule = RULES.get(tool)
    if rule is None:
        raise Refused(f"There is no tool {tool}; there are {', '.join(sorted(RULES))}.")
    parameters = {name: p.annotation for name, p in inspect.signature(rule).parameters.items() if name != "books"}
    if set(parameters) != set(arguments):
        raise Refused(f"{tool} takes {', '.join(parameters) or 'no arguments'}.")
    for name, wanted in parameters.items():
        texts = arguments[name] if isinstance(arguments[name], list) else [arguments[name]]
        if isinstance(arguments[name], list) != (wanted == list[str]) or not all(isinstance(t, str) for t in texts):
            raise Refused(f"{tool}: {name} is {'a list of texts' if wanted == list[str] else 'a text'}.")
    return rule
