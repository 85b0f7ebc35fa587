"""Servers over stdio that are odd in one way each, made with the SDK's low-level server.

    python odd_server.py FOLDER WHAT

`catalogue` lists 200 tools on pages of 30. `broken` has a tool whose schema is none. `changing` has one tool, `grow`,
each call of which gives it one more parameter and says that the list changed. `codes` fails as its argument says.
`deaf` does not end when it should.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ToolsListChanged

FOLDER, WHAT = Path(sys.argv[1]), sys.argv[2]
PAGE = 30
BUS = InMemorySubscriptionBus()
grown: list[None] = []


def tool(name: str, **properties: Any) -> types.Tool:
    return types.Tool(name=name, input_schema={"type": "object", "properties": properties})


def tools() -> list[types.Tool]:
    match WHAT:
        case "catalogue":
            return [tool(f"tool_{number}") for number in range(200)]
        case "broken":
            return [tool("good"), types.Tool(name="bad", input_schema={"type": "object", "properties": 3})]
        case "changing":
            return [tool("grow", **{f"p{number}": {"type": "string"} for number in range(len(grown))})]
        case _:
            return [tool("fail", code={"type": "integer"}, where={"type": "string"})]


async def listed(_context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int(params.cursor) if params is not None and params.cursor else 0
    every = tools()
    more = str(start + PAGE) if start + PAGE < len(every) else None
    return types.ListToolsResult(tools=every[start : start + PAGE], next_cursor=more)


async def called(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if WHAT == "changing":
        grown.append(None)
        await BUS.publish(ToolsListChanged())
    if WHAT == "codes":
        code = (params.arguments or {})["code"]
        raise MCPError(code=code, message=f"failed with {code}")
    return types.CallToolResult(content=[types.TextContent(text="ok")])


async def main() -> None:
    server = Server("odd", on_list_tools=listed, on_call_tool=called, on_subscriptions_listen=ListenHandler(BUS))
    options = server.create_initialization_options()
    async with stdio_server() as (read, write):
        await server.run(read, write, options)
    if WHAT == "deaf":
        await anyio.sleep_forever()


if __name__ == "__main__":
    if WHAT == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (FOLDER / "pids").write_text(json.dumps({"pid": os.getpid()}) + "\n")
    anyio.run(main)
