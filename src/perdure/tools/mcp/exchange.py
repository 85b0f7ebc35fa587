"""One request to a server, and what follows from its errors.

- An error of the protocol that is given before anything is called, or a request that reached nobody: it did not begin,
  and a `once` call may say so. One that is safe to repeat is tried again where that can help.
- "Invalid params" or "method not found": most often nothing was called. But servers say the first of what their tool
  returned, too, and tools may say either, so that alone it does not tell.
- Anything else, a lost connection above all: nobody knows.
"""

from typing import Any, Final, TypeVar

import httpx2
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from perdure.core.errors import BegunError, ToolError, Unavailable
from perdure.tools.mcp.connection import Connection, Listener, Live
from perdure.tools.mcp.transports import NOT_SENT, REFUSED

KEY: Final = "perdure/idempotency-key"
"""Where a call's idempotency key stands in a request's `_meta`."""

NOT_BEGUN: Final = frozenset(
    {REFUSED, HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION}
)
"""Errors that are given before a tool is called. -32600 and -32700 are not among them: the SDK's client says them too,
of an answer that it could not read."""

REFUSALS: Final = frozenset({INVALID_PARAMS, METHOD_NOT_FOUND})
"""Errors that say "no" and not when: the TypeScript SDK gives -32602 for a result that does not fit its schema, after
the tool has run."""

STATE_REFUSED: Final = "invalid_request_state"
"""The SDK's reason in an error's data where a server does not take its own state back, before it calls anything."""

_SESSION_GONE: Final = "Session terminated"
"""What the SDK's client says with -32600 when a server does not know the session any more: it took nothing."""

ModelT = TypeVar("ModelT", bound=BaseModel)


class Refused(ToolError):
    """A server refused a request; `begun` says whether its tool may have run before, `reason` is the server's own."""

    def __init__(self, message: str, *, begun: bool, reason: JsonValue = None) -> None:
        super().__init__(message)
        self.begun = begun
        self.reason = reason


class NotSent(Unavailable):
    """A request reached nobody, or was turned away until later; what it asked for did not begin."""

    code = "not_sent"


async def exchanged(
    connection: Connection,
    request: Any,
    kind: TypeAdapter[ModelT],
    on_progress: ProgressFnT | None = None,
    listener: Listener | None = None,
) -> ModelT:
    """Send a request and return its result; `listener` hears what the server says meanwhile, where that is about it.

    Raises:
        NotSent: There is no connection, and it reached nobody.
        Refused: The server refused it.
        BegunError: Nobody knows what became of it.
    """
    for last in (False, True):
        try:
            live = await connection.live()
        except Unavailable as error:
            raise NotSent(str(error)) from error
        try:
            with live.heard_by(listener):
                return await live.client.session.send_request(request, kind, progress_callback=on_progress)
        except MCPError as error:
            if _session_is_gone(error) and not last:
                live.ended.set()
                continue
            raise _meant(connection, live, error) from error
        except (ValidationError, RuntimeError, ValueError, httpx2.HTTPError) as error:
            raise BegunError(f"the answer of the MCP server {connection.name!r} {connection.told(error)}") from error
    raise NotSent(f"the MCP server {connection.name!r} ends every session at once")


def _session_is_gone(error: MCPError) -> bool:
    return error.code == INVALID_REQUEST and error.message == _SESSION_GONE


def _meant(connection: Connection, live: Live, error: MCPError) -> Exception:
    """Return what a server's error says of the request that it answers."""
    said = connection.told(error)
    if error.code in NOT_BEGUN:
        return Refused(f"Not begun: the MCP server {connection.name!r} refused it. It {said}", begun=False)
    if error.code in REFUSALS:
        reason = error.data.get("reason") if isinstance(error.data, dict) else None
        return Refused(f"the MCP server {connection.name!r} refused it. It {said}", begun=True, reason=reason)
    if error.code == NOT_SENT:
        return NotSent(f"the MCP server {connection.name!r} {said}")
    if live.ended.is_set():
        return BegunError(f"the MCP server {connection.name!r} ended before it answered")
    return BegunError(f"the MCP server {connection.name!r} {said}")
