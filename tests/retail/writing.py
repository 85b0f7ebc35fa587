"""The shop's writing tools: what each changes, and what it refuses.

Every tool checks first and changes afterwards. The three that need more than the order's status say so: a refund
goes to a method that paid for the order or to one of the customer's gift cards; an item is swapped only for an
available variant of the same product; a gift card pays no more than it holds.
"""

from collections import Counter

from tests.retail import money
from tests.retail.books import Books, Refused
from tests.retail.data import Json


def cancel_pending_order(books: Books, order_id: str, reason: str) -> Json:
    """Cancel a pending order and refund its payments."""
    order, user = _order_and_user(books, order_id, "pending")
    if not reason.strip():
        raise Refused("A cancellation needs a reason.")
    money.refund_all(order, user)
    order["status"] = "cancelled"
    order["cancellation"] = {"reason": reason}
    return _saved(books, order, user)


def modify_pending_order_items(
    books: Books, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
) -> Json:
    """Swap items of a pending order for other variants; the difference is paid or refunded."""
    order, user = _order_and_user(books, order_id, "pending")
    money.method_of(user, payment_method_id)
    positions = _positions(order, item_ids)
    variants = _replacements(books, order, positions, new_item_ids)
    if any(
        order["items"][at]["item_id"] == variant["item_id"] for at, variant in zip(positions, variants, strict=True)
    ):
        raise Refused("An item can only be changed to a different one.")
    difference = _difference(order, positions, variants)
    if difference > 0:
        money.pay(order, user, payment_method_id, difference)
    elif difference < 0:
        money.refund(order, user, payment_method_id, -difference)
    for at, variant in zip(positions, variants, strict=True):
        order["items"][at].update({name: variant[name] for name in ("item_id", "price", "options")})
    return _saved(books, order, user)


def modify_pending_order_address(
    books: Books, order_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
) -> Json:
    """Set the address that a pending order goes to."""
    order, user = _order_and_user(books, order_id, "pending")
    order["address"] = _address(address1, address2, city, state, country, zip)
    return _saved(books, order, user)


def modify_pending_order_payment(books: Books, order_id: str, payment_method_id: str) -> Json:
    """Pay a pending order by another method; what the others paid goes back."""
    order, user = _order_and_user(books, order_id, "pending")
    money.method_of(user, payment_method_id)
    held = {method: amount for method, amount in money.held_by_method(order).items() if amount > 0}
    held.pop(payment_method_id, None)
    if not held:
        raise Refused(f"Order {order_id} is already paid by {payment_method_id}.")
    money.pay(order, user, payment_method_id, sum(held.values()))
    for method_id, amount in held.items():
        money.refund(order, user, method_id, amount)
    return _saved(books, order, user)


def modify_user_address(
    books: Books, user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
) -> Json:
    """Set a customer's own address."""
    _require_open(books)
    user = books.user(user_id)
    user["address"] = _address(address1, address2, city, state, country, zip)
    books.save("users", user_id, user)
    return user


def return_delivered_order_items(books: Books, order_id: str, item_ids: list[str], payment_method_id: str) -> Json:
    """Ask for the return of items of a delivered order; the money follows when they have arrived."""
    order, user = _order_and_user(books, order_id, "delivered")
    method = money.method_of(user, payment_method_id)
    if method["source"] != "gift_card" and payment_method_id not in money.held_by_method(order):
        raise Refused(f"A refund goes to a method that paid for order {order_id} or to a gift card.")
    positions = _positions(order, item_ids)
    order["status"] = "return requested"
    order["return"] = {
        "item_ids": sorted(item_ids),
        "payment_method_id": payment_method_id,
        "difference": money.dollars(_difference(order, positions, [])),
    }
    return _saved(books, order, user)


def exchange_delivered_order_items(
    books: Books, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
) -> Json:
    """Ask for the exchange of items of a delivered order; also for the same variant, as for a broken one."""
    order, user = _order_and_user(books, order_id, "delivered")
    money.method_of(user, payment_method_id)
    positions = _positions(order, item_ids)
    variants = _replacements(books, order, positions, new_item_ids)
    difference = _difference(order, positions, variants)
    money.require_balance(user, payment_method_id, difference)
    order["status"] = "exchange requested"
    order["exchange"] = {
        "item_ids": list(item_ids),
        "new_item_ids": list(new_item_ids),
        "payment_method_id": payment_method_id,
        "difference": money.dollars(difference),
    }
    return _saved(books, order, user)


def transfer_to_human_agents(books: Books, summary: str) -> str:
    """End the conversation with a hand-over; nothing is changed after it."""
    _require_open(books)
    if not summary.strip():
        raise Refused("A hand-over needs a summary.")
    return "The customer is with a person now."


def _require_open(books: Books) -> None:
    if books.handed_over():
        raise Refused("The conversation was handed over to a person; nothing more can be changed here.")


def _order_and_user(books: Books, order_id: str, status: str) -> tuple[Json, Json]:
    _require_open(books)
    order = books.order(order_id)
    if order["status"] != status:
        raise Refused(f"Order {order_id} is {order['status']}, not {status}.")
    return order, books.user(order["user_id"])


def _saved(books: Books, order: Json, user: Json) -> Json:
    books.save("orders", order["order_id"], order)
    books.save("users", order["user_id"], user)
    return order


def _positions(order: Json, item_ids: list[str]) -> list[int]:
    if not item_ids:
        raise Refused("Name at least one item.")
    ordered = [item["item_id"] for item in order["items"]]
    missing = Counter(item_ids) - Counter(ordered)
    if missing:
        raise Refused(f"Order {order['order_id']} does not hold item {', '.join(sorted(missing))} that often.")
    positions: list[int] = []
    for item_id in item_ids:
        positions.append(next(at for at, held in enumerate(ordered) if held == item_id and at not in positions))
    return positions


def _replacements(books: Books, order: Json, positions: list[int], new_item_ids: list[str]) -> list[Json]:
    if len(new_item_ids) != len(positions):
        raise Refused(f"{len(positions)} items need as many new ones, not {len(new_item_ids)}.")
    variants: list[Json] = []
    for at, new_item_id in zip(positions, new_item_ids, strict=True):
        item = order["items"][at]
        variant = books.product(item["product_id"])["variants"].get(new_item_id)
        if variant is None:
            raise Refused(f"Item {new_item_id} is not a variant of the product {item['name']}.")
        if not variant["available"]:
            raise Refused(f"Item {new_item_id} is not available.")
        variants.append(variant)
    return variants


def _difference(order: Json, positions: list[int], variants: list[Json]) -> int:
    """Return what the customer owes in cents; negative when money goes back."""
    new = sum(money.cents(variant["price"]) for variant in variants)
    return new - sum(money.cents(order["items"][at]["price"]) for at in positions)


def _address(address1: str, address2: str, city: str, state: str, country: str, zip: str) -> Json:
    return {
        "address1": address1,
        "address2": address2,
        "city": city,
        "state": state,
        "country": country,
        "zip": zip,
    }
