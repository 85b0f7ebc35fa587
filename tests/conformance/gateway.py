"""A gateway that shows an API key for a client that has none: the kit cannot say who it is.

It passes everything on as it is, over HTTP and gRPC, adds the key, and in the card puts its own gRPC address in place
of the server's. Any gateway that authenticates for its clients does as much.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

KEY_HEADER = "X-API-Key"
STREAMING = ("/SendStreamingMessage", "/SubscribeToTask")
HOP = frozenset({"host", "content-length", "connection", "transfer-encoding", "content-encoding"})


class Gateway:
    """Stands before a server at `upstream` (HTTP) and `upstream_rpc` (gRPC, `host:port`)."""

    def __init__(self, upstream: str, upstream_rpc: str, key: str) -> None:
        self._http = httpx.AsyncClient(base_url=upstream, timeout=None)
        self._upstream_rpc, self._key = upstream_rpc, key
        self._channel = grpc.aio.insecure_channel(upstream_rpc)
        self._rpc = grpc.aio.server()
        self._rpc.add_generic_rpc_handlers((_Everything(self._channel, key),))
        self.rpc = ""

    @contextlib.asynccontextmanager
    async def open(self, port: int) -> AsyncIterator[uvicorn.Server]:
        """Listen; the server of HTTP is to be served by the caller."""
        self.rpc = f"127.0.0.1:{self._rpc.add_insecure_port('127.0.0.1:0')}"
        await self._rpc.start()
        app = Starlette(routes=[Route("/{path:path}", self._pass, methods=["GET", "POST", "DELETE"])])
        try:
            yield uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", lifespan="off"))
        finally:
            await self._rpc.stop(0)
            await self._channel.close()
            await self._http.aclose()

    async def _pass(self, request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items() if name not in HOP}
        asked = self._http.build_request(
            request.method,
            request.url.path,
            params=request.query_params,
            headers={**headers, KEY_HEADER: self._key},
            content=await request.body(),
        )
        answer = await self._http.send(asked, stream=True)
        told = {name: value for name, value in answer.headers.items() if name not in HOP}
        if told.get("content-type", "").startswith("text/event-stream"):
            return StreamingResponse(_relayed(answer), answer.status_code, told)
        body = await answer.aread()
        return Response(body.replace(self._upstream_rpc.encode(), self.rpc.encode()), answer.status_code, told)


async def _relayed(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.aiter_bytes():
            yield piece
    finally:
        await answer.aclose()


class _Everything(grpc.GenericRpcHandler):  # type: ignore[misc]  # it comes without types
    """Every method of every service, as bytes."""

    def __init__(self, channel: Any, key: str) -> None:
        self._channel, self._key = channel, key

    def service(self, details: Any) -> Any:
        """Return what passes this call on."""
        if details.method.endswith(STREAMING):
            return grpc.unary_stream_rpc_method_handler(self._stream(details.method))
        return grpc.unary_unary_rpc_method_handler(self._call(details.method))

    def _around(self, context: Any) -> dict[str, Any]:
        kept = [
            (name, value) for name, value in context.invocation_metadata() if not name.startswith(("grpc-", "user"))
        ]
        return {"metadata": [*kept, (KEY_HEADER.lower(), self._key)]}

    def _call(self, method: str) -> Any:
        async def call(request: bytes, context: Any) -> Any:
            try:
                return await self._channel.unary_unary(method)(request, **self._around(context))
            except grpc.aio.AioRpcError as error:
                await _abort(error, context)

        return call

    def _stream(self, method: str) -> Any:
        async def stream(request: bytes, context: Any) -> AsyncIterator[Any]:
            try:
                async for event in self._channel.unary_stream(method)(request, **self._around(context)):
                    yield event
            except grpc.aio.AioRpcError as error:
                await _abort(error, context)

        return stream


async def _abort(error: Any, context: Any) -> None:
    context.set_trailing_metadata(tuple(error.trailing_metadata()))
    await context.abort(error.code(), error.details())
