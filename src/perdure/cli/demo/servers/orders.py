"""The shop's orders as an MCP server: `python -m perdure.cli.demo.servers.orders WORLD [HOLD]`.

It says of its tools what MCP lets it say: that one only reads, and that one is safe to call again with the same key.
Of those that pay and ship it says nothing. `find_call` tells what became of a key, and closes one that has no call.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from perdure.cli.demo.call_log import WorldRefused
from perdure.cli.demo.servers.dying import Dying
from perdure.cli.demo.world import World

KEY: Final = "perdure/idempotency-key"
"""Where the key stands in a request's `_meta`."""

HOLD_POLL_S: Final = 0.05

_READS: Final = ToolAnnotations(read_only_hint=True)
_SAFE: Final = ToolAnnotations(idempotent_hint=True)


def orders_server(world: World, hold: Path | None, dying: Dying) -> MCPServer:
    """Return the server. While the file `hold` exists, the first call of `get_order` under a key is held open."""
    server = MCPServer("orders")

    async def done(tool: str, call: Callable[[], Any]) -> Any:
        dying.reach("before", tool)
        try:
            result = await asyncio.to_thread(call)
        except WorldRefused as refusal:
            raise ToolError(str(refusal)) from refusal
        dying.reach("applied", tool)
        return result

    @server.tool(annotations=_READS)
    async def list_open_orders(customer: str, context: Context[Any, Any]) -> list[dict[str, Any]]:
        """List the customer's orders that are on their way or can still be complained about."""
        found: list[dict[str, Any]] = await done(
            "list_open_orders", lambda: world.list_open_orders(customer, _key(context))
        )
        dying.answering("list_open_orders")
        return found

    @server.tool(annotations=_SAFE)
    async def get_order(order_id: str, context: Context[Any, Any]) -> dict[str, Any]:
        """Look up one order."""
        order: dict[str, Any] = await done("get_order", lambda: world.get_order(order_id, _key(context)))
        if hold is not None and await asyncio.to_thread(_is_first, world, _key(context)):
            # Another process takes the file away, so there is nothing here to be notified by.
            while await asyncio.to_thread(hold.exists):  # noqa: ASYNC110
                await asyncio.sleep(HOLD_POLL_S)
        dying.answering("get_order")
        return order

    @server.tool()
    async def refund(order_id: str, amount: float, context: Context[Any, Any]) -> str:
        """Pay back an amount in dollars for a damaged order."""
        told: str = await done("refund", lambda: world.refund(order_id, amount, _key(context)))
        dying.answering("refund")
        return told

    @server.tool()
    async def ship_replacement(order_id: str, address: str, context: Context[Any, Any]) -> str:
        """Ship the item of a damaged order again and return the tracking number."""
        number: str = await done("ship_replacement", lambda: world.ship_replacement(order_id, address, _key(context)))
        dying.answering("ship_replacement")
        return number

    @server.tool(annotations=_SAFE)
    async def find_call(key: str) -> dict[str, Any]:
        """Tell what became of a call by its key; one that is not there is refused from now on."""
        finding = await asyncio.to_thread(world.find, key)
        return {"happened": finding.happened, "result": finding.result, "final": True}

    return server


def _key(context: Context[Any, Any]) -> str:
    """Return the key that the client sent; a call that changes something is refused without one."""
    return str((context.request_context.meta or {}).get(KEY, ""))


def _is_first(world: World, key: str) -> bool:
    return sum(call.key == key for call in world.calls()) == 1


if __name__ == "__main__":
    at_death = Dying(os.environ)
    at_death.serve(orders_server(World(Path(sys.argv[1])), Path(sys.argv[2]) if sys.argv[2:] else None, at_death))
