"""Who paid what: payments, refunds and gift card balances. Counted in whole cents, shown as dollars."""

from tests.retail.books import Refused
from tests.retail.data import Json


def cents(dollars: float) -> int:
    """Return the amount in whole cents."""
    return round(dollars * 100)


def dollars(amount_cents: int) -> float:
    """Return the amount as it stands in the data."""
    return amount_cents / 100


def method_of(user: Json, method_id: str) -> Json:
    """Return a payment method of this customer."""
    method: Json | None = user["payment_methods"].get(method_id)
    if method is None:
        raise Refused(f"Payment method {method_id} does not belong to this customer.")
    return method


def held_by_method(order: Json) -> dict[str, int]:
    """Return what each method has paid and not got back, in cents, in the order of the first payment."""
    held: dict[str, int] = {}
    for entry in order["payment_history"]:
        sign = 1 if entry["transaction_type"] == "payment" else -1
        held[entry["payment_method_id"]] = held.get(entry["payment_method_id"], 0) + sign * cents(entry["amount"])
    return held


def pay(order: Json, user: Json, method_id: str, amount_cents: int) -> None:
    """Add a payment; a gift card pays at once and only what it holds."""
    require_balance(user, method_id, amount_cents)
    _move(order, user, method_id, "payment", amount_cents)


def refund(order: Json, user: Json, method_id: str, amount_cents: int) -> None:
    """Add a refund; a gift card gets its money back at once."""
    _move(order, user, method_id, "refund", amount_cents)


def require_balance(user: Json, method_id: str, amount_cents: int) -> None:
    """Refuse when the method is a gift card that holds less than the amount."""
    method = method_of(user, method_id)
    if method["source"] == "gift_card" and cents(method["balance"]) < amount_cents:
        raise Refused(f"Gift card {method_id} holds ${method['balance']:.2f}, not ${dollars(amount_cents):.2f}.")


def refund_all(order: Json, user: Json) -> None:
    """Add a refund for each payment, of what was not refunded before, and never more than the order still holds."""
    held = held_by_method(order)
    total_held = sum(held.values())
    for entry in [entry for entry in order["payment_history"] if entry["transaction_type"] == "payment"]:
        method_id = entry["payment_method_id"]
        amount = min(cents(entry["amount"]), held[method_id], total_held)
        if amount > 0:
            held[method_id] -= amount
            total_held -= amount
            refund(order, user, method_id, amount)


def _move(order: Json, user: Json, method_id: str, kind: str, amount_cents: int) -> None:
    method = method_of(user, method_id)
    order["payment_history"].append(
        {"transaction_type": kind, "amount": dollars(amount_cents), "payment_method_id": method_id}
    )
    if method["source"] == "gift_card":
        sign = -1 if kind == "payment" else 1
        method["balance"] = dollars(cents(method["balance"]) + sign * amount_cents)
