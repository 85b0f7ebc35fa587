"""The outside world of the crash suite: a SQLite file that no code of the harness writes, and that forgets nothing.

It counts every request that arrived, every effect that it applied, every key that it closed and every time that the
model was asked. An idempotent request applies once per key; any other applies each time that it arrives, as a careless
outside does. A closed key refuses late requests, which is what makes the answer `never` true.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

TABLES = """
CREATE TABLE IF NOT EXISTS arrivals (place INTEGER PRIMARY KEY, tool TEXT, key TEXT, pid INTEGER);
CREATE TABLE IF NOT EXISTS effects (place INTEGER PRIMARY KEY, tool TEXT, key TEXT);
CREATE TABLE IF NOT EXISTS closed (key TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS asked (place INTEGER PRIMARY KEY, task TEXT, turn INTEGER, pid INTEGER);
"""


class World:
    """One outside world, in one file. Every method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
        try:
            connection.executescript(TABLES)
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()

    # --- what the agent's tools and model do ---------------------------------------------------------------------

    def read(self, tool: str, key: str) -> None:
        with self._transaction() as connection:
            self._arrive(connection, tool, key)

    def apply(self, tool: str, key: str, *, idempotent: bool = False) -> bool:
        """Apply an effect; False when its key is closed."""
        with self._transaction() as connection:
            self._arrive(connection, tool, key)
            if connection.execute("SELECT 1 FROM closed WHERE key = ?", (key,)).fetchone():
                return False
            known = connection.execute("SELECT 1 FROM effects WHERE key = ?", (key,)).fetchone()
            if not (idempotent and known):
                connection.execute("INSERT INTO effects (tool, key) VALUES (?, ?)", (tool, key))
        return True

    def happened(self, key: str) -> bool:
        """Whether the effect happened; a key that has none is closed for good."""
        with self._transaction() as connection:
            known = connection.execute("SELECT 1 FROM effects WHERE key = ?", (key,)).fetchone()
            if not known:
                connection.execute("INSERT OR IGNORE INTO closed VALUES (?)", (key,))
        return bool(known)

    def ask(self, task: str, turn: int) -> None:
        with self._transaction() as connection:
            connection.execute("INSERT INTO asked (task, turn, pid) VALUES (?, ?, ?)", (task, turn, os.getpid()))

    @staticmethod
    def _arrive(connection: sqlite3.Connection, tool: str, key: str) -> None:
        connection.execute("INSERT INTO arrivals (tool, key, pid) VALUES (?, ?, ?)", (tool, key, os.getpid()))

    # --- what a judge reads --------------------------------------------------------------------------------------

    def arrivals(self, task: str) -> list[str]:
        """Return the keys of this task's requests, in the order of their arrival."""
        return self._keys("arrivals", task)

    def effects(self, task: str) -> list[str]:
        """Return the keys of this task's effects, in order."""
        return self._keys("effects", task)

    def asked(self, task: str) -> list[int]:
        """Return the turns for which the model was asked, in order."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT turn FROM asked WHERE task = ? ORDER BY place", (task,)).fetchall()
        return [int(turn) for (turn,) in rows]

    def _keys(self, table: str, task: str) -> list[str]:
        with self._transaction() as connection:
            rows = connection.execute(f"SELECT key FROM {table} ORDER BY place").fetchall()
        return [str(key) for (key,) in rows if str(key).startswith(f"{task}/")]
