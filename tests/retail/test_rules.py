"""What each of the shop's tools changes and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.retail.data import Json
from tests.retail.shop import RULES, Shop
from tests.retail.small import HOME, small_data

ELSEWHERE: Json = {**HOME, "address1": "2 Oak"}
SWAP: Json = {"order_id": "#P1", "item_ids": ["mug_red"], "new_item_ids": ["mug_blue"], "payment_method_id": "card_1"}
BACK: Json = {"order_id": "#D1", "item_ids": ["lamp_small"], "payment_method_id": "card_1"}
EXCHANGE: Json = {**BACK, "new_item_ids": ["lamp_big"]}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.create(tmp_path / "t.db", small_data())


def done(shop: Shop, tool: str, arguments: Json, key: str = "t/1/0") -> Any:
    answer = shop.call(tool, arguments, key)
    assert answer.ok, answer.result
    return answer.result


def entry(kind: str, amount: float, method_id: str) -> Json:
    return {"transaction_type": kind, "amount": amount, "payment_method_id": method_id}


def balance(shop: Shop, method_id: str) -> float:
    user = json.loads(shop.final_state())["users"]["robin"]
    return float(user["payment_methods"][method_id]["balance"])


def test_all_fifteen_tools_are_there() -> None:
    assert len(RULES) == 15


def test_reading(shop: Shop) -> None:
    before = shop.final_state()
    name = {"first_name": "ROBIN", "last_name": "ash", "zip": "45801"}
    assert done(shop, "find_user_id_by_name_zip", name) == "robin"
    assert done(shop, "find_user_id_by_email", {"email": "Robin@Example.com"}) == "robin"
    assert done(shop, "get_user_details", {"user_id": "robin"})["orders"] == ["#P1", "#D1", "#G1"]
    assert done(shop, "get_order_details", {"order_id": "#D1"})["status"] == "delivered"
    assert set(done(shop, "get_product_details", {"product_id": "mugs"})["variants"]) >= {"mug_red", "mug_blue"}
    assert done(shop, "list_all_product_types", {}) == {"Lamp": "lamps", "Mug": "mugs"}
    assert done(shop, "calculate", {"expression": "-(1.1 + 2) * 3 / 2"}) == "-4.65"
    assert shop.final_state() == before


def test_cancelling_refunds_each_payment_and_a_gift_card_at_once(shop: Shop) -> None:
    order = done(shop, "cancel_pending_order", {"order_id": "#G1", "reason": "no longer needed"})
    assert order["status"] == "cancelled"
    assert order["payment_history"] == [entry("payment", 5.1, "gift_1"), entry("refund", 5.1, "gift_1")]
    assert balance(shop, "gift_1") == 15.1


def test_cancelling_after_a_change_refunds_no_more_than_was_paid(shop: Shop) -> None:
    done(shop, "modify_pending_order_items", {**SWAP, "payment_method_id": "gift_1"}, "t/1/0")
    done(shop, "modify_pending_order_payment", {"order_id": "#P1", "payment_method_id": "gift_2"}, "t/2/0")
    order = done(shop, "cancel_pending_order", {"order_id": "#P1", "reason": "ordered twice"}, "t/3/0")
    paid = sum(e["amount"] for e in order["payment_history"] if e["transaction_type"] == "payment")
    back = sum(e["amount"] for e in order["payment_history"] if e["transaction_type"] == "refund")
    assert round(paid, 2) == round(back, 2)
    assert (balance(shop, "gift_1"), balance(shop, "gift_2")) == (10.0, 100.0)


def test_swapping_items_pays_or_refunds_the_difference(shop: Shop) -> None:
    order = done(shop, "modify_pending_order_items", {**SWAP, "payment_method_id": "gift_1"}, "t/1/0")
    assert [item["item_id"] for item in order["items"]] == ["mug_blue", "mug_red", "lamp_small"]
    assert order["items"][0]["price"] == 7.3
    assert order["payment_history"][-1] == entry("payment", 2.2, "gift_1")
    assert balance(shop, "gift_1") == 7.8
    back = {**SWAP, "item_ids": ["mug_blue"], "new_item_ids": ["mug_red"], "payment_method_id": "gift_2"}
    order = done(shop, "modify_pending_order_items", back, "t/2/0")
    assert order["payment_history"][-1] == entry("refund", 2.2, "gift_2")
    assert balance(shop, "gift_2") == 102.2


def test_an_item_that_is_ordered_twice_can_be_swapped_twice(shop: Shop) -> None:
    both = {**SWAP, "item_ids": ["mug_red", "mug_red"], "new_item_ids": ["mug_blue", "mug_blue"]}
    order = done(shop, "modify_pending_order_items", both)
    assert [item["item_id"] for item in order["items"]] == ["mug_blue", "mug_blue", "lamp_small"]
    assert order["payment_history"][-1] == entry("payment", 4.4, "card_1")


def test_addresses_are_set(shop: Shop) -> None:
    assert done(shop, "modify_pending_order_address", {"order_id": "#P1", **ELSEWHERE}, "t/1/0")["address"] == ELSEWHERE
    assert done(shop, "modify_user_address", {"user_id": "robin", **ELSEWHERE}, "t/2/0")["address"] == ELSEWHERE


def test_another_payment_method_pays_and_the_old_one_gets_its_money_back(shop: Shop) -> None:
    order = done(shop, "modify_pending_order_payment", {"order_id": "#G1", "payment_method_id": "gift_2"})
    assert order["payment_history"][1:] == [entry("payment", 5.1, "gift_2"), entry("refund", 5.1, "gift_1")]
    assert (balance(shop, "gift_1"), balance(shop, "gift_2")) == (15.1, 94.9)


def test_returns_and_exchanges_are_requested(shop: Shop, tmp_path: Path) -> None:
    order = done(shop, "return_delivered_order_items", {**BACK, "payment_method_id": "gift_1"})
    assert order["status"] == "return requested"
    assert order["return"] == {"item_ids": ["lamp_small"], "payment_method_id": "gift_1", "difference": -20.0}
    other = Shop.create(tmp_path / "u.db", small_data())
    order = done(other, "exchange_delivered_order_items", EXCHANGE)
    assert order["status"] == "exchange requested"
    assert order["exchange"]["difference"] == 25.0
    assert order["exchange"]["new_item_ids"] == ["lamp_big"]


def test_a_broken_item_can_be_exchanged_for_the_same(shop: Shop) -> None:
    done(shop, "exchange_delivered_order_items", {**EXCHANGE, "new_item_ids": ["lamp_small"]})


def test_a_hand_over_ends_the_conversation(shop: Shop) -> None:
    done(shop, "transfer_to_human_agents", {"summary": "Wants a person."}, "t/1/0")
    for at, (tool, arguments) in enumerate(
        [
            ("transfer_to_human_agents", {"summary": "Again."}),
            ("modify_user_address", {"user_id": "robin", **ELSEWHERE}),
            ("return_delivered_order_items", BACK),
        ]
    ):
        assert "handed over" in shop.call(tool, arguments, f"t/2/{at}").result
    done(shop, "get_user_details", {"user_id": "robin"}, "t/3/0")


REFUSALS: list[tuple[str, Json, str]] = [
    ("find_user_id_by_name_zip", {"first_name": "Robin", "last_name": "Ash", "zip": "1"}, "no customer"),
    ("find_user_id_by_email", {"email": "nobody@example.com"}, "no customer"),
    ("get_user_details", {"user_id": "nobody"}, "no user nobody"),
    ("get_order_details", {"order_id": "#X"}, "no order #X"),
    ("get_product_details", {"product_id": "x"}, "no product x"),
    ("calculate", {"expression": "__import__('os')"}, "not a calculation"),
    ("calculate", {"expression": "2 ** 9"}, "not a calculation"),
    ("calculate", {"expression": "1 / 0"}, "no result"),
    ("calculate", {"expression": "1+" * 200 + "1"}, "200 characters"),
    ("cancel_pending_order", {"order_id": "#D1", "reason": "late"}, "delivered, not pending"),
    ("cancel_pending_order", {"order_id": "#P1", "reason": " "}, "needs a reason"),
    ("modify_pending_order_items", {**SWAP, "order_id": "#D1"}, "not pending"),
    ("modify_pending_order_items", {**SWAP, "item_ids": []}, "at least one"),
    ("modify_pending_order_items", {**SWAP, "item_ids": ["mug_red"] * 3, "new_item_ids": ["mug_blue"] * 3}, "often"),
    ("modify_pending_order_items", {**SWAP, "new_item_ids": ["mug_red"]}, "different one"),
    ("modify_pending_order_items", {**SWAP, "new_item_ids": ["mug_gone"]}, "not available"),
    ("modify_pending_order_items", {**SWAP, "new_item_ids": ["lamp_big"]}, "not a variant"),
    ("modify_pending_order_items", {**SWAP, "new_item_ids": ["mug_blue", "mug_blue"]}, "as many"),
    ("modify_pending_order_items", {**SWAP, "payment_method_id": "card_9"}, "does not belong"),
    (
        "modify_pending_order_items",
        {**SWAP, "item_ids": ["lamp_small"], "new_item_ids": ["lamp_big"], "payment_method_id": "gift_1"},
        "holds $10.00, not $25.00",
    ),
    ("modify_pending_order_address", {"order_id": "#D1", **ELSEWHERE}, "not pending"),
    ("modify_pending_order_payment", {"order_id": "#P1", "payment_method_id": "card_1"}, "already paid"),
    ("modify_pending_order_payment", {"order_id": "#P1", "payment_method_id": "gift_1"}, "holds $10.00"),
    ("modify_user_address", {"user_id": "nobody", **ELSEWHERE}, "no user"),
    ("return_delivered_order_items", {**BACK, "order_id": "#P1"}, "not delivered"),
    ("return_delivered_order_items", {**BACK, "item_ids": ["mug_red"]}, "often"),
    ("exchange_delivered_order_items", {**EXCHANGE, "payment_method_id": "gift_1"}, "holds $10.00, not $25.00"),
    ("transfer_to_human_agents", {"summary": ""}, "needs a summary"),
    ("buy_everything", {}, "no tool buy_everything"),
    ("get_user_details", {}, "takes user_id"),
    ("get_user_details", {"user_id": ["robin"]}, "user_id is a text"),
    ("return_delivered_order_items", {**BACK, "item_ids": "lamp_small"}, "item_ids is a list"),
]


@pytest.mark.parametrize(("tool", "arguments", "words"), REFUSALS)
def test_a_call_that_is_wrong_for_the_data_changes_nothing(shop: Shop, tool: str, arguments: Json, words: str) -> None:
    before = shop.final_state()
    answer = shop.call(tool, arguments, "t/1/0")
    assert not answer.ok
    assert words in answer.result
    assert shop.final_state() == before
    assert [line.outcome for line in shop.log()] == ["refused"]


def test_a_refund_goes_only_where_money_came_from_or_to_a_gift_card(tmp_path: Path) -> None:
    data = small_data()
    data.documents["users"]["robin"]["payment_methods"]["paypal_1"] = {"source": "paypal", "id": "paypal_1"}
    shop = Shop.create(tmp_path / "t.db", data)
    answer = shop.call("return_delivered_order_items", {**BACK, "payment_method_id": "paypal_1"}, "t/1/0")
    assert "paid for order" in answer.result
