"""A small invented shop, so that the shop's own rules are tested without the data of the forty conversations."""

import copy
from typing import Any

from tests.retail.data import Data, Json

HOME: Json = {"address1": "1 Elm", "address2": "", "city": "Lima", "state": "OH", "country": "USA", "zip": "45801"}


def small_data() -> Data:
    """Return one customer with a card and two gift cards, three orders and two products."""
    methods: Json = {
        "card_1": {"source": "credit_card", "brand": "visa", "last_four": "0001", "id": "card_1"},
        "gift_1": {"source": "gift_card", "balance": 10.0, "id": "gift_1"},
        "gift_2": {"source": "gift_card", "balance": 100, "id": "gift_2"},
    }
    user: Json = {
        "name": {"first_name": "Robin", "last_name": "Ash"},
        "address": dict(HOME),
        "email": "robin@example.com",
        "payment_methods": methods,
        "orders": ["#P1", "#D1", "#G1"],
    }
    mug = _product("mugs", "Mug", [("mug_red", 5.1, True), ("mug_blue", 7.3, True), ("mug_gone", 5.1, False)])
    lamp = _product("lamps", "Lamp", [("lamp_small", 20.0, True), ("lamp_big", 45.0, True)])
    orders = {
        "#P1": _order("#P1", "pending", ["mug_red", "mug_red", "lamp_small"], mug, lamp, "card_1"),
        "#D1": _order("#D1", "delivered", ["mug_blue", "lamp_small"], mug, lamp, "card_1"),
        "#G1": _order("#G1", "pending", ["mug_red"], mug, lamp, "gift_1"),
    }
    return Data({"users": {"robin": user}, "orders": orders, "products": {"mugs": mug, "lamps": lamp}})


def _product(product_id: str, name: str, variants: list[tuple[str, float, bool]]) -> Json:
    listed = {
        item_id: {"item_id": item_id, "options": {"kind": item_id}, "available": available, "price": price}
        for item_id, price, available in variants
    }
    return {"name": name, "product_id": product_id, "variants": listed}


def _order(order_id: str, status: str, item_ids: list[str], mug: Json, lamp: Json, method_id: str) -> Json:
    items: list[Json] = []
    for item_id in item_ids:
        product = mug if item_id in mug["variants"] else lamp
        variant: dict[str, Any] = copy.deepcopy(product["variants"][item_id])
        del variant["available"]
        items.append({"name": product["name"], "product_id": product["product_id"], **variant})
    total = round(sum(item["price"] for item in items), 2)
    return {
        "order_id": order_id,
        "user_id": "robin",
        "address": dict(HOME),
        "items": items,
        "fulfillments": [],
        "status": status,
        "payment_history": [{"transaction_type": "payment", "amount": total, "payment_method_id": method_id}],
    }
