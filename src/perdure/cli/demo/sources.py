"""The demo's tools as two MCP servers, and what has to be said over what they claim of themselves.

Their hints give two classes: `list_open_orders` and `look_up_policy` read, `get_order` may be called again. What they
cannot say stands here, as it would in an operator's file: which tool tells what became of a key, and that this server's
refusals are to be believed. Without the second a refused refund would be in doubt, and its check would settle it.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perdure.core.sources import ToolSource
from perdure.core.tool_rules import ToolRules
from perdure.tools.mcp import McpServer

HEARTBEAT_TIMEOUT_S: Final = 5.0
"""What a worker's death would cost without its supervisor; far above what it costs with one."""

HELD_S_MAX: Final = 900.0
"""How long `get_order` can be held open for somebody who kills by hand."""

ORDERS: Final = "orders"
POLICY: Final = "policy"

_WRITES: Final = ToolRules(check="find_call", failed="did_not_happen", heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S)

RULES: Final = {
    "refund": _WRITES,
    "ship_replacement": _WRITES,
    "get_order": ToolRules(heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S, timeout_s=HELD_S_MAX),
    "*": ToolRules(heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S),
}
"""What an operator says of the orders server's tools."""

NAMES: Final = {
    **{tool: f"{ORDERS}.{tool}" for tool in ("list_open_orders", "get_order", "refund", "ship_replacement")},
    "look_up_policy": f"{POLICY}.look_up_policy",
}
"""What the tools are called when they come from servers. `find_call` is for the harness, not for the model."""


def shop_sources(
    world: Path, hold: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[ToolSource, ...]:
    """Return the agent's tools as servers over the world in that file. `environment` is for the orders server."""
    held = () if hold is None else (str(hold),)
    return (
        McpServer(
            ORDERS,
            command=_python("orders", str(world), *held),
            env=environment or {},
            tools=tuple(name for name, whole in NAMES.items() if whole.startswith(ORDERS)),
            rules=RULES,
        ),
        McpServer(
            POLICY,
            command=_python("policy", str(world)),
            tools=("look_up_policy",),  # an SDK's server offers resources and prompts even where it has none
            rules={"*": ToolRules(heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S)},
        ),
    )


def _python(server: str, *arguments: str) -> tuple[str, ...]:
    # -P: a folder of the user's with a package of the same name is not what is meant.
    return (sys.executable, "-P", "-m", f"perdure.cli.demo.servers.{server}", *arguments)
