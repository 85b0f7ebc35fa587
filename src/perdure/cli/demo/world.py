"""The demo's outside world: a small order database that keeps its own log of every call it receives.

It plays the shop's backend. The log (`call_log`) keeps a call that came twice under one key from being applied twice.
But a *new* key is a new call, and the world does not protect itself from one: a second replacement under another key
is shipped. That is the harm that the demo must show did not happen.
"""

import hashlib
import sqlite3
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from perdure.cli.demo.call_log import CallLog, Finding, ReceivedCall, WorldRefused, wall_ms

CUSTOMER: Final = "Robin"
BLENDER_ORDER: Final = "A-1001"
KETTLE_ORDER: Final = "A-1002"

BLENDER_DELIVERED_DAYS_AGO: Final = 10
DAMAGE_RULE_DAYS: Final = 14

POLICIES: Final = {
    "damage": f"Damage must be reported within {DAMAGE_RULE_DAYS} days of delivery. The customer chooses between a "
    "refund and a replacement of the same item.",
    "refund": "A refund for damage needs a photo of the damage on file before it can be paid.",
    "replacement": "A replacement for a damaged item needs no photo. It is shipped at once to an address that the "
    "customer confirms, and the damaged item need not be sent back.",
}

_SCHEMA: Final = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE orders (
    order_id TEXT PRIMARY KEY, customer TEXT NOT NULL, item TEXT NOT NULL, price_cents INTEGER NOT NULL,
    status TEXT NOT NULL, ordered_on TEXT NOT NULL, delivered_on TEXT, photo_on_file INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE refunds (
    number INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL, amount_cents INTEGER NOT NULL
);
CREATE TABLE shipments (
    number INTEGER PRIMARY KEY AUTOINCREMENT, order_id TEXT NOT NULL, item TEXT NOT NULL, address TEXT NOT NULL,
    tracking_number TEXT NOT NULL
);
"""


class World:
    """The outside world in one SQLite file. Every method is one short transaction, synced to disk when it returns.

    Args:
        path: A file that `World.create` made; `FileNotFoundError` when there is none.
        now_ms: The clock of the log, in milliseconds.
    """

    def __init__(self, path: Path, now_ms: Callable[[], int] = wall_ms) -> None:
        self._log = CallLog(path, now_ms)
        self.path = path

    @classmethod
    def create(cls, path: Path, today: date, now_ms: Callable[[], int] = wall_ms) -> "World":
        """Make a world in which it is `today` for ever, so that nothing expires; raises `FileExistsError`."""
        log = CallLog.create(path, _SCHEMA, now_ms)
        delivered = today - timedelta(days=BLENDER_DELIVERED_DAYS_AGO)
        blender_ordered, kettle_ordered = delivered - timedelta(days=4), today - timedelta(days=2)
        orders = [
            (BLENDER_ORDER, CUSTOMER, "blender", 8900, "delivered", str(blender_ordered), str(delivered), 0),
            (KETTLE_ORDER, CUSTOMER, "kettle", 4500, "in transit", str(kettle_ordered), None, 0),
        ]
        with log.transaction() as connection:
            connection.execute("INSERT INTO facts VALUES ('today', ?)", (str(today),))
            connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)", orders)
        return cls(path, now_ms)

    # --- reading -------------------------------------------------------------------------------------------------

    def list_open_orders(self, customer: str, key: str = "") -> list[dict[str, Any]]:
        """Return the customer's orders that are on their way or can still be complained about."""

        def listed(connection: sqlite3.Connection) -> list[dict[str, Any]]:
            today = _today(connection)
            return [order for order in _orders(connection, customer) if _open(order, today)]

        orders: list[dict[str, Any]] = self._log.read("list_open_orders", {"customer": customer}, key, listed)
        return orders

    def get_order(self, order_id: str, key: str = "") -> dict[str, Any]:
        """Return an order; raises `WorldRefused` when there is none. The same key may ask again."""
        arguments = {"order_id": order_id}
        order: dict[str, Any] = self._log.read(
            "get_order", arguments, key, lambda connection: _order(connection, order_id)
        )
        return order

    def look_up_policy(self, topic: str, key: str = "") -> str:
        """Return what the shop's rules say on a topic; all of them when the topic is none of theirs."""

        def looked_up(connection: sqlite3.Connection) -> str:
            del connection
            named = [text for name, text in POLICIES.items() if name in topic.casefold()]
            return " ".join(named or POLICIES.values())

        text: str = self._log.read("look_up_policy", {"topic": topic}, key, looked_up)
        return text

    # --- writing -------------------------------------------------------------------------------------------------

    def refund(self, order_id: str, amount: float, key: str) -> str:
        """Pay back an amount in dollars for a damaged order; raises `WorldRefused` without a photo on file."""

        def refunded(connection: sqlite3.Connection) -> str:
            order = _complaint(connection, order_id)
            if not order["photo_on_file"]:
                raise WorldRefused(f"A refund for {order_id} needs a photo of the damage, and none is on file.")
            if not 0 < amount <= order["price"]:
                raise WorldRefused(f"Order {order_id} cost ${order['price']:.2f}; ${amount:.2f} cannot be refunded.")
            amount_cents = round(amount * 100)
            connection.execute("INSERT INTO refunds (order_id, amount_cents) VALUES (?, ?)", (order_id, amount_cents))
            return f"${amount_cents / 100:.2f} were refunded for order {order_id}."

        text: str = self._log.write("refund", {"order_id": order_id, "amount": amount}, key, refunded)
        return text

    def ship_replacement(self, order_id: str, address: str, key: str) -> str:
        """Ship the item of a damaged order again and return the tracking number, which follows from the key."""

        def shipped(connection: sqlite3.Connection) -> str:
            order = _complaint(connection, order_id)
            if not address.strip():
                raise WorldRefused("A replacement needs the address that it goes to.")
            number = tracking_number(key)
            connection.execute(
                "INSERT INTO shipments (order_id, item, address, tracking_number) VALUES (?, ?, ?, ?)",
                (order_id, order["item"], address, number),
            )
            return number

        number: str = self._log.write("ship_replacement", {"order_id": order_id, "address": address}, key, shipped)
        return number

    def receive_photo(self, order_id: str) -> None:
        """Put a photo of the damage on file; the customer's own act, no call of an agent."""
        with self._log.transaction() as connection:
            _order(connection, order_id)
            connection.execute("UPDATE orders SET photo_on_file = 1 WHERE order_id = ?", (order_id,))

    # --- judging -------------------------------------------------------------------------------------------------

    def find(self, key: str) -> Finding:
        """Say what became of a key; in the same transaction, close it when no call has decided it."""
        return self._log.find(key)

    def calls(self) -> list[ReceivedCall]:
        """Return every call that was received, oldest first."""
        return self._log.calls()

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """Return all orders, shipments and refunds as they are."""
        with self._log.transaction() as connection:
            shipments = connection.execute(
                "SELECT order_id, item, address, tracking_number FROM shipments ORDER BY number"
            )
            refunds = connection.execute("SELECT order_id, amount_cents FROM refunds ORDER BY number")
            return {
                "orders": _orders(connection),
                "shipments": [
                    {"order_id": order_id, "item": item, "address": address, "tracking_number": number}
                    for order_id, item, address, number in shipments
                ],
                "refunds": [{"order_id": order_id, "amount": cents / 100} for order_id, cents in refunds],
            }


def tracking_number(key: str) -> str:
    """Return the tracking number of the replacement that is shipped under this key."""
    return f"TRK-{hashlib.sha256(key.encode()).hexdigest()[:10].upper()}"


def _today(connection: sqlite3.Connection) -> date:
    row = connection.execute("SELECT value FROM facts WHERE name = 'today'").fetchone()
    return date.fromisoformat(row[0])


def _orders(connection: sqlite3.Connection, customer: str | None = None) -> list[dict[str, Any]]:
    rows = connection.execute(
        "SELECT order_id, customer, item, price_cents, status, ordered_on, delivered_on, photo_on_file FROM orders "
        "WHERE ? IS NULL OR lower(customer) = lower(?) ORDER BY order_id",
        (customer, customer),
    )
    return [
        {
            "order_id": order_id,
            "customer": name,
            "item": item,
            "price": price_cents / 100,
            "status": status,
            "ordered_on": ordered_on,
            "delivered_on": delivered_on,
            "photo_on_file": bool(photo_on_file),
        }
        for order_id, name, item, price_cents, status, ordered_on, delivered_on, photo_on_file in rows
    ]


def _order(connection: sqlite3.Connection, order_id: str) -> dict[str, Any]:
    for order in _orders(connection):
        if order["order_id"] == order_id:
            return order
    raise WorldRefused(f"There is no order {order_id}.")


def _open(order: dict[str, Any], today: date) -> bool:
    delivered_on = order["delivered_on"]
    return delivered_on is None or today - date.fromisoformat(delivered_on) <= timedelta(days=DAMAGE_RULE_DAYS)


def _complaint(connection: sqlite3.Connection, order_id: str) -> dict[str, Any]:
    """Return an order that was delivered and is still under the damage rule."""
    order = _order(connection, order_id)
    if order["delivered_on"] is None:
        raise WorldRefused(f"Order {order_id} is {order['status']}; nothing can be damaged before it is delivered.")
    if not _open(order, _today(connection)):
        raise WorldRefused(f"Order {order_id} was delivered more than {DAMAGE_RULE_DAYS} days ago.")
    return order
