"""The operations of our extension on JSON-RPC and on HTTP+JSON, beside those that the SDK routes.

On JSON-RPC they are methods at the same address: a request for one of them is answered here, and everything else goes
to the SDK, malformed requests too. On HTTP+JSON they have paths of their own under the task's.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2A_ERROR_MAPPING, A2AError
from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from perdure.a2a import extension
from perdure.a2a.caller import CallerContextBuilder
from perdure.a2a.lanes import FIELDS, Json, Lanes
from perdure.a2a.wire import A2A_JSON

Endpoint = Callable[[Request], Awaitable[Response]]

INTERNAL: Final = 500


def with_lanes(routes: Sequence[Route], lanes: Lanes, builder: CallerContextBuilder) -> list[Route]:
    """Return the routes of JSON-RPC with the methods of our extension, before those of its paths on HTTP+JSON."""
    rpc = [Route(route.path, endpoint=_methods(route.endpoint, lanes, builder), methods=["POST"]) for route in routes]
    return [*rpc, *(_path(name, lanes, builder) for name in extension.PATHS)]


def _methods(endpoint: Endpoint, lanes: Lanes, builder: CallerContextBuilder) -> Endpoint:
    async def answer(request: Request) -> Response:
        asked = await _asked(request)
        if asked is None:
            return await endpoint(request)
        name, request_id, params = asked
        try:
            result = await lanes.answer(name, params, builder.build(request))
        except A2AError as error:
            return JSONResponse(build_error_response(request_id, error))
        return JSONResponse({"jsonrpc": "2.0", "id": request_id, "result": result})

    return answer


async def _asked(request: Request) -> tuple[str, str | int | None, JsonValue] | None:
    """Return method, id and parameters of a request for one of ours; None for every other one."""
    try:
        body = await request.json()
    except ValueError:
        return None  # the SDK says so
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0" or isinstance(body.get("id"), bool):
        return None
    method, request_id = body.get("method"), body.get("id")
    if not isinstance(method, str) or method not in FIELDS or not isinstance(request_id, str | int | None):
        return None
    return method, request_id, body.get("params", {})


def _path(name: str, lanes: Lanes, builder: CallerContextBuilder) -> Route:
    verb, path = extension.PATHS[name]

    async def answer(request: Request) -> Response:
        given: Json = {"id": request.path_params["id"], "messageId": request.path_params.get("messageId")}
        try:
            return JSONResponse(await lanes.answer(name, given, builder.build(request)), media_type=A2A_JSON)
        except A2AError as error:
            mapping = A2A_ERROR_MAPPING.get(type(error))
            return JSONResponse(
                build_rest_error_payload(error), INTERNAL if mapping is None else mapping.http_code, media_type=A2A_JSON
            )

    return Route(path.replace("{messageId}", "{messageId:path}"), endpoint=answer, methods=[verb])
