"""The SDK's own client in the kit's scenarios, with nothing of this package: what ours is measured against.

python -m tests.mcp_conformance.bare URL
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.mcp_conformance.bare_auth import signing
from tests.mcp_conformance.driver import Json, RefusedError, Situation, drive, situation

WITHIN_S = 20.0
"""For one request; the kit itself ends a client that takes half a minute."""


class BareSession:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> Mapping[str, Json]:
        found: dict[str, Json] = {}
        cursor: str | None = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            found |= {tool.name: tool.input_schema for tool in page.tools}
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def call(self, name: str, arguments: Json) -> None:
        try:
            await self._client.call_tool(name, arguments)
        except (MCPError, ValueError, httpx2.HTTPError) as error:
            raise RefusedError(f"{name}: {error}") from error


@contextlib.asynccontextmanager
async def opened(given: Situation) -> AsyncIterator[BareSession]:
    """Connect as the scenario needs it: with a token where it is about those, and able to answer what it may ask."""

    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        schema = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
        return types.ElicitResult(action="accept", content=given.answer(schema))

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="nothing")
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[])

    asks_all = given.scenario == "request-metadata"
    async with httpx2.AsyncClient(auth=await signing(given), timeout=WITHIN_S) as http:
        client = Client(
            streamable_http_client(given.url, http_client=http),
            mode="legacy" if given.handshake_only else "auto",
            elicitation_callback=answer,
            sampling_callback=sample if asks_all else None,
            list_roots_callback=roots if asks_all else None,
        )
        async with client:
            yield BareSession(client)


if __name__ == "__main__":
    asyncio.run(drive(situation(sys.argv, os.environ), opened))
