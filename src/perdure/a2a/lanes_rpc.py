"""The operations of our extension on gRPC: a service of its own on the same server, behind the same gate.

Its messages are `google.protobuf.Struct`: what they hold is what JSON-RPC has in `params` and in `result`. So a client
needs no definitions of ours, and the three bindings say the same.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc
from a2a.server.request_handlers.grpc_handler import GrpcServerCallContextBuilder
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from perdure.a2a import extension
from perdure.a2a.lanes import FIELDS, Lanes

Abort = Callable[[A2AError, Any], Awaitable[None]]


def add_lanes(server: Any, lanes: Lanes, builder: GrpcServerCallContextBuilder, abort: Abort) -> None:
    """Serve the operations on a server that has not started yet; `abort` ends a call with an error."""

    async def answer(name: str, request: Struct, context: Any) -> Struct:
        result = Struct()
        try:
            result.update(await lanes.answer(name, MessageToDict(request), builder.build(context)))
        except A2AError as error:
            await abort(error, context)
        return result

    handlers = {
        name.removeprefix(extension.PREFIX): grpc.unary_unary_rpc_method_handler(
            partial(answer, name), Struct.FromString, Struct.SerializeToString
        )
        for name in FIELDS
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(extension.SERVICE, handlers),))
