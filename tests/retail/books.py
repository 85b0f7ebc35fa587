"""What the shop's tools work on: documents that are read from one transaction and written back only together.

Changes are held until the tool has returned, so that a refusal halfway leaves nothing behind.
"""

import json
import sqlite3
from typing import Any

from tests.retail.data import Json


class Refused(Exception):
    """A call that is wrong for the data; its text is what the customer service API answers. No effect."""


def canonical(value: Any) -> str:
    """Encode in the one form that is stored and compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class Books:
    """The documents as one call sees them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._changed: dict[tuple[str, str], Json] = {}

    def user(self, user_id: str) -> Json:
        """Return a user, to be changed only through `save`."""
        return self._read("users", user_id, "user")

    def order(self, order_id: str) -> Json:
        """Return an order, to be changed only through `save`."""
        return self._read("orders", order_id, "order")

    def product(self, product_id: str) -> Json:
        """Return a product."""
        return self._read("products", product_id, "product")

    def every(self, kind: str) -> list[tuple[str, Json]]:
        """Return all documents of a kind with their ids, in the order of the ids."""
        rows = self._connection.execute("SELECT id, body FROM documents WHERE kind = ? ORDER BY id", (kind,))
        return [(row_id, json.loads(body)) for row_id, body in rows]

    def handed_over(self) -> bool:
        """Whether the conversation has ended with a hand-over to a person."""
        query = "SELECT 1 FROM calls WHERE tool = 'transfer_to_human_agents' AND outcome = 'applied'"
        return self._connection.execute(query).fetchone() is not None

    def save(self, kind: str, document_id: str, document: Json) -> None:
        """Keep a changed document; it is written by `flush`."""
        self._changed[kind, document_id] = document

    def flush(self) -> None:
        """Write what was changed into the transaction."""
        self._connection.executemany(
            "UPDATE documents SET body = ? WHERE kind = ? AND id = ?",
            [(canonical(document), kind, row_id) for (kind, row_id), document in self._changed.items()],
        )

    def _read(self, kind: str, document_id: str, noun: str) -> Json:
        changed = self._changed.get((kind, document_id))
        if changed is not None:
            return changed
        query = "SELECT body FROM documents WHERE kind = ? AND id = ?"
        row = self._connection.execute(query, (kind, document_id)).fetchone()
        if row is None:
            raise Refused(f"There is no {noun} {document_id}.")
        document: Json = json.loads(row[0])
        return document
