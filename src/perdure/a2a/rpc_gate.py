"""The gate of gRPC: the same porter as HTTP's, asked before anything of a call is read.

    a place → who calls → how often → the message → its shape → the servicer

To gRPC's server each method takes a stream of requests, which is not read before it is asked for; on the wire that is
the same. So of a caller who does not come in nothing is read but metadata, and the message of one who does is looked
over as bytes (`rpc_bodies.py`). Refused: what the server does for a method with one request. It takes the whole of it
and parses it before any code of ours runs.

Credentials are in the call's metadata, under the names that HTTP has for them: `x-api-key`, or `authorization` with
`Bearer`. Who calls is given on to the servicer in a context variable, since gRPC's own context has no place for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import unquote

import grpc
import grpc.aio
from a2a.utils.errors import A2AError
from starlette.datastructures import Headers

from perdure.a2a.errors import ServiceUnavailableError
from perdure.a2a.identity import Credential
from perdure.a2a.porter import Porter, Rules
from perdure.a2a.refusals import RefusedError
from perdure.a2a.rpc_bodies import read_message
from perdure.core.errors import Unavailable

PRINCIPAL: Final[ContextVar[str]] = ContextVar("perdure.principal", default="")
"""Who makes the call that is being served; empty is nobody."""

Abort = Callable[[A2AError, Any], Awaitable[None]]


class RpcGate(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # it comes without types
    """Lets calls in by rules that are set before the server starts, or ends them saying why."""

    def __init__(self, abort: Abort) -> None:
        self._abort = abort
        self._porter = Porter(Rules())

    def set_rules(self, rules: Rules) -> None:
        """Go by these rules from now on."""
        self._porter = Porter(rules)

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """Return the call's handler with the gate before it."""
        handler = await continuation(details)
        if handler is None or handler.request_streaming:
            return handler  # A2A has none of these; gRPC answers that the method is unknown
        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(self._streaming(handler), None, handler.response_serializer)
        return grpc.stream_unary_rpc_method_handler(self._single(handler), None, handler.response_serializer)

    def _single(self, handler: Any) -> Callable[[Any, Any], Awaitable[Any]]:
        async def let_in(_: Any, context: Any) -> Any:
            held = contextlib.ExitStack()
            context.add_done_callback(lambda _: held.close())  # when the answer is taken, and not when it is there
            await self._enter(held, context, streams=False)
            return await handler.unary_unary(await self._message(handler, context), context)

        return let_in

    def _streaming(self, handler: Any) -> Callable[[Any, Any], AsyncGenerator[Any, None]]:
        async def let_in(_: Any, context: Any) -> AsyncGenerator[Any, None]:
            with contextlib.ExitStack() as held:
                credential = await self._enter(held, context, streams=True)
                request = await self._message(handler, context)
                async with contextlib.aclosing(handler.unary_stream(request, context)) as items:
                    async for item in self._while_good(items, credential, context):
                        yield item

        return let_in

    async def _message(self, handler: Any, context: Any) -> Any:
        """Return the call's message, or abort the call, which raises."""
        try:
            return await read_message(context, handler.request_deserializer)
        except RefusedError as error:
            return await self._abort(error, context)

    async def _enter(self, held: contextlib.ExitStack, context: Any, *, streams: bool) -> Credential | None:
        """Let the call in, or abort it, which raises."""
        credential, name = None, ""
        try:
            self._porter.some_request(held)
            credential, name = await self._caller(context)
            self._porter.refuse_too_often(name)
            self._porter.own_request(held, name)
            if streams:
                self._porter.stream(held, name)
        except RefusedError as error:
            await self._abort(error, context)
        except Unavailable as error:
            await self._abort(ServiceUnavailableError(message=str(error)), context)
        PRINCIPAL.set(name)
        return credential

    async def _caller(self, context: Any) -> tuple[Credential | None, str]:
        if not self._porter.rules.authenticators:
            return None, ""
        raw = [
            (name.lower().encode(), value.encode("latin-1", "replace"))
            for name, value in context.invocation_metadata() or ()
            if isinstance(value, str)
        ]
        return await self._porter.caller(Headers(raw=raw), host_of(context.peer()))

    async def _while_good(
        self, items: AsyncGenerator[Any, None], credential: Credential | None, context: Any
    ) -> AsyncGenerator[Any, None]:
        """Yield the items; when the credential is no more, end the call saying so."""
        patience_s = None if credential is None else self._porter.rules.bounds.credential_recheck_s
        while True:
            coming = asyncio.ensure_future(anext(items, None))
            try:
                while not coming.done():
                    await asyncio.wait({coming}, timeout=patience_s)
                    if not coming.done() and credential is not None:
                        await self._refuse_when_over(credential, context)
                item = coming.result()
            finally:
                if not coming.done():
                    coming.cancel()
                    await asyncio.wait({coming})
            if item is None:
                return
            yield item

    async def _refuse_when_over(self, credential: Credential, context: Any) -> None:
        try:
            await credential.principal()
        except RefusedError as error:
            await self._abort(error, context)
        except Unavailable:
            return  # it cannot be told now, and was good a moment ago


def host_of(peer: str) -> str:
    """Return the address in gRPC's name of a peer, as in `ipv4:127.0.0.1:4711` and `ipv6:%5B::1%5D:4711`."""
    kind, _, rest = unquote(peer).partition(":")
    return rest.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else peer
