"""How a server is reached: the SDK's transports, with what this package needs to know of them.

A connection's end must be noticed when it comes and not with the next call, which could not tell then whether it was
sent. And one request that fails over HTTP must fail alone: the SDK's transport would end with it, and every other call
on the connection would be in doubt.
"""

import contextlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import anyio
import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from perdure.core.mcp_limits import MCP_CONNECT_S, MCP_END_S

KEEPER: Final = Path(__file__).with_name("keeper.py")

NOT_SENT: Final = -38_001
"""Our code for a request that reached nobody, or that was turned away until later."""

BROKEN_OFF: Final = -38_002
"""Our code for a request whose answer did not come, for a reason that HTTP has."""

REFUSED: Final = -38_003
"""Our code for a request that was refused by HTTP or could not be signed: nothing was called."""

_TURNED_AWAY: Final = {401: REFUSED, 403: REFUSED, 429: NOT_SENT}


class _Watched:
    """A stream of the SDK's that says when it ends."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


@contextlib.asynccontextmanager
async def over_stdio(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, on_end: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Run a server under its keeper and give its streams; its errors go where this process's do."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-I", "-S", str(KEEPER), str(MCP_END_S), *command],
        env=dict(env),
        cwd=cwd,
        encoding_error_handler="replace",
    )
    async with stdio_client(parameters, sys.__stderr__ or sys.stderr) as (read, write):
        yield _Watched(read, on_end), write


@contextlib.asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], auth: httpx2.Auth | None, on_end: Callable[[], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """Reach a server at a URL and give its streams.

    Nothing bounds how long an answer takes but the call itself: a tool's timeout is its own.
    """
    timeout = httpx2.Timeout(MCP_CONNECT_S, read=None)
    transport = _FailingAlone(httpx2.AsyncHTTPTransport())
    signing = None if auth is None else _Signing(auth)
    async with (
        _Client(transport=transport, headers=dict(headers), auth=signing, timeout=timeout) as client,
        streamable_http_client(url, http_client=client) as (read, write),
    ):
        yield _Watched(read, on_end), write


class _FailingAlone(httpx2.AsyncBaseTransport):
    """Answers a request that failed with a JSON-RPC error of its own, which the SDK hands to whoever asked."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _failed(request, NOT_SENT, f"cannot be reached: {str(error) or type(error).__name__}")
        except httpx2.TransportError as error:
            return _failed(request, BROKEN_OFF, f"did not answer: {str(error) or type(error).__name__}")

    async def aclose(self) -> None:
        await self._inner.aclose()


class _UnsignedError(Exception):
    """A request could not be signed."""


class _Signing(httpx2.Auth):
    """Signs as another does, and says of what fails in it that it was the signing."""

    def __init__(self, inner: httpx2.Auth) -> None:
        self._inner = inner
        self.requires_request_body = inner.requires_request_body
        self.requires_response_body = inner.requires_response_body

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with contextlib.aclosing(self._inner.async_auth_flow(request)) as flow:
            try:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return
            except Exception as error:
                raise _UnsignedError(str(error) or type(error).__name__) from error


class _Client(httpx2.AsyncClient):
    """Answers what was turned away, or could not be signed, as `_FailingAlone` does, once there is a connection.

    It stands before the signing, which sees a 401 first and may know what to do.
    """

    _is_connected = False

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except _UnsignedError as error:
            if not self._is_connected:
                raise  # the SDK would try another handshake, and ask for another token
            return _failed(request, REFUSED, f"it could not be signed: {error}")
        code = _TURNED_AWAY.get(response.status_code)
        if code is None:
            self._is_connected = True
            return response
        await response.aclose()
        return _failed(request, code, f"it answers {response.status_code} {response.reason_phrase}".strip())


def _failed(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(503, json=error, request=request)
