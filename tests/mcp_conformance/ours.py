"""This package's own path to MCP servers in the kit's scenarios: a server as an agent has it, its tools, their calls.

python -m tests.mcp_conformance.ours URL
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping

import mcp_types as types
from mcp.client.context import ClientRequestContext
from pydantic import TypeAdapter

from perdure import McpServer
from perdure.core.artifacts import Asks
from perdure.core.errors import BegunError, ToolError
from perdure.core.ports import Call, ToolPort
from perdure.core.tool_calls import Resumes
from perdure.tools.environment import Environment
from perdure.tools.mcp.connection import Connection
from perdure.tools.mcp.exchange import KEY, exchanged
from perdure.tools.mcp.offering import offered
from perdure.tools.mcp.transports import over_http
from tests.mcp_conformance.bare_auth import signing
from tests.mcp_conformance.driver import Json, RefusedError, Situation, drive, situation

WITHIN_S = 20.0
RESULT: TypeAdapter[types.CallToolResult] = TypeAdapter(types.CallToolResult)
CALL = Call(idempotency_key="t/1/0", attempt=1, task_id="t", tool="kit")


class OurSession:
    def __init__(self, given: Situation, connection: Connection, tools: tuple[ToolPort, ...]) -> None:
        self._given = given
        self._connection = connection
        self._tools = {tool.spec.name.removeprefix("kit."): tool for tool in tools}

    async def tools(self) -> Mapping[str, Json]:
        return {name: tool.schema.parameters for name, tool in self._tools.items()}

    async def call(self, name: str, arguments: Json) -> None:
        tool = self._tools.get(name)
        try:
            if tool is None:  # a model could not call what the server does not list; the scenario wants to see it
                params = types.CallToolRequestParams(name=name, arguments=arguments, _meta={KEY: CALL.idempotency_key})
                await exchanged(self._connection, types.CallToolRequest(params=params), RESULT)
                return
            given = await tool.invoke(arguments, CALL)
            while isinstance(given, Asks) and isinstance(tool, Resumes):
                given = await tool.resume(arguments, CALL, given.kept, json.dumps(self._given.answer({})))
        except (ToolError, BegunError) as error:
            raise RefusedError(f"{name}: {error}") from error


@contextlib.asynccontextmanager
async def opened(given: Situation) -> AsyncIterator[OurSession]:
    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        schema = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
        return types.ElicitResult(action="accept", content=given.answer(schema))

    auth = await signing(given)
    connection = Connection(
        "kit",
        lambda on_end: over_http(given.url, {}, auth, on_end),
        WITHIN_S,
        str,
        answer,
        "legacy" if given.handshake_only else "auto",
    )
    try:
        tools = await offered(McpServer("kit", url=given.url), connection, Environment())
        yield OurSession(given, connection, tools)
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(drive(situation(sys.argv, os.environ), opened))
