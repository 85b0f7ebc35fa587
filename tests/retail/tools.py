"""The shop's fifteen tools as an agent's tools: one agent serves all conversations, each with its own shop file.

A tool finds its shop by the task that calls it, a check by the task that its key names. What the shop refuses is a
`ToolError`: it did not happen, and the shop remembers that under the key.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from perdure.core.errors import ToolError
from perdure.core.ports import Call, Check
from perdure.tools import FunctionTool, tool
from tests.retail.data import Json
from tests.retail.serving import Hold, look_up, no_hold, serve

CALL_TIMEOUT_S = 60.0


def shop_tools(
    folder: Path, *, hold: Hold = no_hold, heartbeat_timeout_s: float = 2.0, settle_s: float = 0.5
) -> list[FunctionTool[..., Awaitable[Any]]]:
    """Return the tools over the shops `folder / "<task id>.db"`, each call taking the time that `hold` gives it.

    A killed call's request cannot still be on its way: it died with its process. Hence the short `settle_s`.
    """

    async def ask(name: str, call: Call, arguments: Json) -> Any:
        answer = await serve(folder, name, arguments, call.idempotency_key, call.attempt, hold)
        if not answer.ok:
            raise ToolError(answer.result)
        return answer.result

    async def check(key: str) -> Check:
        finding = await look_up(folder, key)
        return Check.happened(finding.result) if finding.happened else Check.never()

    times: dict[str, Any] = {"timeout_s": CALL_TIMEOUT_S, "heartbeat_timeout_s": heartbeat_timeout_s}
    return [
        *_reading_tools(ask, partial(tool, effect="read", **times)),
        *_address_tools(ask, partial(tool, effect="idempotent", check=check, settle_s=settle_s, **times)),
        *_once_tools(ask, partial(tool, effect="once", check=check, settle_s=settle_s, **times)),
    ]


Ask = Callable[[str, Call, Json], Awaitable[Any]]
Declare = Callable[[], Callable[..., Any]]


def _reading_tools(ask: Ask, declare: Declare) -> list[Any]:
    @declare()
    async def find_user_id_by_name_zip(first_name: str, last_name: str, zip: str, call: Call) -> Any:
        """Find a customer by name and postal code."""
        return await ask(
            "find_user_id_by_name_zip", call, {"first_name": first_name, "last_name": last_name, "zip": zip}
        )

    @declare()
    async def find_user_id_by_email(email: str, call: Call) -> Any:
        """Find a customer by e-mail address."""
        return await ask("find_user_id_by_email", call, {"email": email})

    @declare()
    async def get_user_details(user_id: str, call: Call) -> Any:
        """Return a customer with addresses, payment methods and orders."""
        return await ask("get_user_details", call, {"user_id": user_id})

    @declare()
    async def get_order_details(order_id: str, call: Call) -> Any:
        """Return an order with its status, items and payments."""
        return await ask("get_order_details", call, {"order_id": order_id})

    @declare()
    async def get_product_details(product_id: str, call: Call) -> Any:
        """Return a product with its variants."""
        return await ask("get_product_details", call, {"product_id": product_id})

    @declare()
    async def list_all_product_types(call: Call) -> Any:
        """Return the names of all products with their ids."""
        return await ask("list_all_product_types", call, {})

    @declare()
    async def calculate(expression: str, call: Call) -> Any:
        """Work out an expression of numbers, +, -, *, / and brackets."""
        return await ask("calculate", call, {"expression": expression})

    return [
        find_user_id_by_name_zip,
        find_user_id_by_email,
        get_user_details,
        get_order_details,
        get_product_details,
        list_all_product_types,
        calculate,
    ]


def _address_tools(ask: Ask, declare: Declare) -> list[Any]:
    @declare()
    async def modify_pending_order_address(
        order_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str, call: Call
    ) -> Any:
        """Set the address that a pending order goes to."""
        address = _address(address1, address2, city, state, country, zip)
        return await ask("modify_pending_order_address", call, {"order_id": order_id, **address})

    @declare()
    async def modify_user_address(
        user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str, call: Call
    ) -> Any:
        """Set a customer's own address."""
        address = _address(address1, address2, city, state, country, zip)
        return await ask("modify_user_address", call, {"user_id": user_id, **address})

    return [modify_pending_order_address, modify_user_address]


def _once_tools(ask: Ask, declare: Declare) -> list[Any]:
    @declare()
    async def cancel_pending_order(order_id: str, reason: str, call: Call) -> Any:
        """Cancel a pending order and refund its payments."""
        return await ask("cancel_pending_order", call, {"order_id": order_id, "reason": reason})

    @declare()
    async def modify_pending_order_items(
        order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str, call: Call
    ) -> Any:
        """Swap items of a pending order for other variants of the same products."""
        return await ask("modify_pending_order_items", call, _swap(order_id, item_ids, new_item_ids, payment_method_id))

    @declare()
    async def modify_pending_order_payment(order_id: str, payment_method_id: str, call: Call) -> Any:
        """Pay a pending order by another method and refund the old one."""
        arguments = {"order_id": order_id, "payment_method_id": payment_method_id}
        return await ask("modify_pending_order_payment", call, arguments)

    @declare()
    async def return_delivered_order_items(
        order_id: str, item_ids: list[str], payment_method_id: str, call: Call
    ) -> Any:
        """Ask for the return of items of a delivered order."""
        arguments = {"order_id": order_id, "item_ids": item_ids, "payment_method_id": payment_method_id}
        return await ask("return_delivered_order_items", call, arguments)

    @declare()
    async def exchange_delivered_order_items(
        order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str, call: Call
    ) -> Any:
        """Ask for the exchange of items of a delivered order."""
        return await ask(
            "exchange_delivered_order_items", call, _swap(order_id, item_ids, new_item_ids, payment_method_id)
        )

    @declare()
    async def transfer_to_human_agents(summary: str, call: Call) -> Any:
        """End the conversation with a hand-over to a person."""
        return await ask("transfer_to_human_agents", call, {"summary": summary})

    return [
        cancel_pending_order,
        modify_pending_order_items,
        modify_pending_order_payment,
        return_delivered_order_items,
        exchange_delivered_order_items,
        transfer_to_human_agents,
    ]


def _address(address1: str, address2: str, city: str, state: str, country: str, zip: str) -> Json:
    return {
        "address1": address1,
        "address2": address2,
        "city": city,
        "state": state,
        "country": country,
        "zip": zip,
    }


def _swap(order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str) -> Json:
    return {
        "order_id": order_id,
        "item_ids": item_ids,
        "new_item_ids": new_item_ids,
        "payment_method_id": payment_method_id,
    }
