"""The shop's rules as an MCP server: `python -m perdure.cli.demo.servers.policy WORLD`. It only tells."""

import asyncio
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

from perdure.cli.demo.servers.orders import KEY
from perdure.cli.demo.world import World


def policy_server(world: World) -> MCPServer:
    """Return the server."""
    server = MCPServer("policy")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def look_up_policy(topic: str, context: Context[Any, Any]) -> str:
        """Look up what the shop's rules say on a topic: damage, refund or replacement."""
        key = str((context.request_context.meta or {}).get(KEY, ""))
        return await asyncio.to_thread(world.look_up_policy, topic, key)

    return server


if __name__ == "__main__":
    policy_server(World(Path(sys.argv[1]))).run("stdio")
