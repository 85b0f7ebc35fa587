"""gRPC (A2A 10): the SDK's servicers over the same door as HTTP, for protocol 1.0 and 0.3 on one port.

What HTTP has in headers is in the call's metadata here, under the same names in lower case: `a2a-version`,
`idempotency-key`, `last-event-id`, `a2a-extensions`. An event's number is in its metadata (`extension.py`); gRPC has no
other place for it. An error is a `google.rpc.Status` whose details are those of the other bindings, and one after which
to come back has a `RetryInfo` too.

A stream asks for the next event when gRPC has taken the one in hand, and gRPC takes no more than its window: here too a
client that never reads costs a page and a connection, or an answer, whose place at the gate is held until it is taken.
A connection on which nobody answers is ended (RPC_PING_S). Refused: to cut what is only slow. What was given to gRPC is
kept by it until the connection ends, whatever becomes of the call, and a connection carries what others wait for.
"""

from dataclasses import replace
from typing import Any, Final

import grpc
import grpc.aio
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import GrpcHandler, GrpcServerCallContextBuilder
from a2a.types import a2a_pb2_grpc
from a2a.utils.constants import VERSION_HEADER
from a2a.utils.error_handlers import build_error_details
from a2a.utils.errors import A2A_ERROR_MAPPING, A2AError
from a2a.utils.grpc_status import GRPC_STATUS_DETAILS_BIN_KEY
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from perdure.a2a.caller import CALLER, VERSIONS, Caller, after_of, key_of, version_of, versions_of
from perdure.a2a.card import agent_card
from perdure.a2a.entrance import Entrance
from perdure.a2a.errors import RETRY_AFTER_S, ServiceUnavailableError
from perdure.a2a.handler import FrontDoor
from perdure.a2a.lanes import Lanes
from perdure.a2a.lanes_rpc import add_lanes
from perdure.a2a.push import pushing
from perdure.a2a.refusals import RefusedError
from perdure.a2a.rpc_gate import PRINCIPAL, RpcGate
from perdure.app.app import App
from perdure.app.entry import EntryLimits
from perdure.app.offer import Offer
from perdure.core import door_limits
from perdure.core.errors import ConfigurationError

ONE_LISTENER: Final = ("grpc.so_reuseport", 0)
"""A port that is taken is an error, not a second listener."""


class CallerFromMetadata(GrpcServerCallContextBuilder):
    """Builds the context of a call; raises A2A's errors for metadata that says nothing sensible."""

    def __init__(self, versions: tuple[str, ...] = VERSIONS) -> None:
        self._versions = versions

    def build(self, context: Any) -> ServerCallContext:
        """Return the context, with its `Caller`."""
        given: dict[str, str] = {}
        for name, value in context.invocation_metadata() or ():
            if isinstance(value, str):
                given.setdefault(name.lower(), value)
        caller = Caller(
            principal=PRINCIPAL.get(),
            idempotency_key=key_of("idempotency-key", given.get("idempotency-key")),
            after=after_of(given.get("last-event-id")),
        )
        version = version_of(given.get(VERSION_HEADER.lower()), self._versions)
        return ServerCallContext(
            state={CALLER: caller, "headers": {**given, VERSION_HEADER: version}},
            requested_extensions=get_requested_extensions([given.get(HTTP_EXTENSION_HEADER.lower(), "")]),
        )


async def _abort(error: A2AError, context: Any) -> None:
    """End the call with the error's status and details, as the table in A2A 5.4 has them."""
    mapping = A2A_ERROR_MAPPING.get(type(error))
    code = grpc.StatusCode.INTERNAL if mapping is None else grpc.StatusCode[mapping.grpc_status]
    status = Status(code=code.value[0], message=error.message)
    for detail in build_error_details(error):
        status.details.add().Pack(_detail(detail))
    told = error.headers if isinstance(error, RefusedError) else {}
    retry_after_s = RETRY_AFTER_S if isinstance(error, ServiceUnavailableError) else int(told.get("Retry-After", 0))
    if retry_after_s:
        status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=retry_after_s)))
    trailing = [(GRPC_STATUS_DETAILS_BIN_KEY, status.SerializeToString())]
    if "WWW-Authenticate" in told:
        trailing.append(("www-authenticate", told["WWW-Authenticate"].encode()))
    context.set_trailing_metadata(tuple(trailing))
    await context.abort(code, error.message)


def _detail(given: dict[str, Any]) -> ErrorInfo | BadRequest:
    if "fieldViolations" in given:
        found = BadRequest()
        for each in given["fieldViolations"]:
            found.field_violations.add(field=each.get("field", ""), description=each.get("description", ""))
        return found
    metadata = {name: str(value) for name, value in given.get("metadata", {}).items() if name != "errors"}
    return ErrorInfo(reason=given["reason"], domain=given["domain"], metadata=metadata)


class _Servicer(GrpcHandler):
    async def abort_context(self, error: A2AError, context: Any) -> None:
        """End the call with the error."""
        await _abort(error, context)


class _Servicer03(CompatGrpcHandler):
    async def abort_context(self, error: A2AError, context: Any) -> None:
        """End the call with the error."""
        await _abort(error, context)


class GrpcDoor:
    """A gRPC server on an address that is taken at once, so that the card can name its port; opened later."""

    def __init__(self, host: str, port: int, bounds: EntryLimits | None = None) -> None:
        bounds = bounds or EntryLimits()
        self._gate = RpcGate(_abort)
        self._server = grpc.aio.server(
            interceptors=(self._gate,),
            options=(
                ONE_LISTENER,
                ("grpc.max_receive_message_length", bounds.request_bytes_max),
                ("grpc.keepalive_time_ms", int(door_limits.RPC_PING_S * 1_000)),
                ("grpc.keepalive_timeout_ms", int(door_limits.RPC_PING_WITHIN_S * 1_000)),
            ),
            maximum_concurrent_rpcs=bounds.requests_max + door_limits.CALLS_REFUSED_AT_ONCE_MAX,
        )
        try:
            self.port: int = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise ConfigurationError("--grpc-port", f"{host}:{port} cannot be used; give another") from error
        self.address = f"{host}:{self.port}"

    async def open(self, app: App, url: str, offer: Offer) -> None:
        """Answer calls from now on. `url` and `offer` are those of the HTTP server: there is one card."""
        pushes = pushing(app) if offer.push_notifications else None
        entrance = Entrance(app, url)
        self._gate.set_rules(entrance.rules)
        offer = replace(entrance.offered(offer), push_notifications=pushes is not None)
        card = entrance.public(agent_card(app.agent, url, offer))
        door = FrontDoor(app, card, pushes, entrance.extended(card))
        builder = CallerFromMetadata(versions_of(offer))
        register: Any = a2a_pb2_grpc.add_A2AServiceServicer_to_server
        register(_Servicer(door, builder), self._server)
        add_lanes(self._server, Lanes(app), builder, _abort)
        if offer.v0_3:
            register = a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server
            register(_Servicer03(door, builder), self._server)
        await self._server.start()

    async def close(self, grace_s: float) -> None:
        """Take no more calls, and end those under way within `grace_s`."""
        await self._server.stop(grace_s)
