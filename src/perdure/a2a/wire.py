"""What HTTP adds to an operation's answer, around the SDK's endpoints.

- each event of a stream carries its number as the SSE `id`, so that a browser's EventSource resumes by itself;
- a client that takes nothing of its answer for STREAM_STALL_S is cut (`pieces.py`); a stream goes on from its last
  number;
- a client that has left is not answered, and nothing waits on its behalf any more;
- a body whose media type is no JSON is refused, with HTTP's own status for that;
- who sends `application/json`, as A2A 1.0.0 had it, is answered in it; everybody else in `application/a2a+json`, which
  1.0.1 says that one should (11.1);
- the card says since when it is as it is (A2A 8.6.1);
- an operation that could not be served now is a 503 with Retry-After, whatever the binding says in its body;
- the extensions that were asked for and are known are named in the answer (A2A 4.6).

The SDK pulls one event, hands it on, and pulls the next only when the client has taken it. So the number that the
handler noted last is that of the event in hand; that is all that this file relies on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from email.utils import formatdate
from typing import Any, Final

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.types.a2a_pb2 import TaskState
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import ContentTypeNotSupportedError
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from perdure.a2a import extension
from perdure.a2a.caller import Told, told_on
from perdure.a2a.pieces import InPieces
from perdure.core import door_limits

Endpoint = Callable[[Request], Awaitable[Response]]

UNAVAILABLE: Final = 503
UNSUPPORTED_MEDIA_TYPE: Final = 415
PLAIN_JSON: Final = "application/json"
A2A_JSON: Final = "application/a2a+json"
JSON: Final = (PLAIN_JSON, A2A_JSON)
CLIENT_GONE: Final = 499
"""Nobody reads it; it is what proxies log for a client that left."""


def framed(routes: Sequence[BaseRoute]) -> list[Route]:
    """Return these routes with what HTTP adds. Mounted ones (tenants) are left out: there is one agent here."""
    return [
        Route(route.path, endpoint=_framed(route.endpoint), methods=sorted(route.methods or ()))
        for route in routes
        if isinstance(route, Route)
    ]


def _framed(endpoint: Endpoint) -> Endpoint:
    async def frame(request: Request) -> Response:
        told = told_on(request)
        if _is_no_json(request):
            return _no_json(request)
        told.unknown_state = await _unknown_state(request)
        response = await _while_there(request, endpoint)
        if isinstance(response, EventSourceResponse):
            response.body_iterator = _numbered(response.body_iterator, told)
        elif told.retry_after_s is not None:
            response.status_code = UNAVAILABLE
            response.headers["Retry-After"] = str(told.retry_after_s)
        if response.headers.get("Content-Type") == A2A_JSON and _speaks_plain_json(request):
            response.headers["Content-Type"] = PLAIN_JSON
        if extension.URI in get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER)):
            response.headers[HTTP_EXTENSION_HEADER] = extension.URI
        return InPieces(response, None if isinstance(response, EventSourceResponse) else door_limits.ANSWER_S)

    return frame


async def _while_there(request: Request, endpoint: Endpoint) -> Response:
    """Return the endpoint's response; stop waiting for it when the client has gone.

    A send that waits for its task may wait for days. What it has accepted is durable and goes on (B23).
    """
    await request.body()  # what comes after it can only be the client's leaving
    answering = asyncio.ensure_future(endpoint(request))
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return await answering if answering.done() else Response(status_code=CLIENT_GONE)
    finally:
        for each in (answering, leaving):
            each.cancel()
        await asyncio.gather(answering, leaving, return_exceptions=True)


def dated(routes: Sequence[Route], since_ms: int) -> list[Route]:
    """Return the routes of a card that is as it is since then."""
    since = formatdate(since_ms / 1000, usegmt=True)

    def with_date(endpoint: Endpoint) -> Endpoint:
        async def dated_card(request: Request) -> Response:
            response = await endpoint(request)
            response.headers["Last-Modified"] = since
            return response

        return dated_card

    return [Route(route.path, endpoint=with_date(route.endpoint), methods=["GET"]) for route in routes]


def _is_no_json(request: Request) -> bool:
    """Whether the request says of its body that it is something else. One that says nothing is read as JSON."""
    return request.method == "POST" and _media_type(request) not in {"", *JSON}


def _speaks_plain_json(request: Request) -> bool:
    return _media_type(request) == PLAIN_JSON and A2A_JSON not in request.headers.get("Accept", "")


def _media_type(request: Request) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _no_json(request: Request) -> Response:
    """Say so in the binding's way. 5.4's 400 is for the media types of a message's parts; this is HTTP's own 415."""
    given = request.headers["Content-Type"]
    error = ContentTypeNotSupportedError(
        message=f"Content-Type: {given!r} is not taken; send {' or '.join(JSON)}", data={"contentType": given}
    )
    if request.url.path == request.scope.get("root_path", "") + "/":
        return JSONResponse(build_error_response(None, error))
    body = build_rest_error_payload(error)
    body["error"]["code"] = UNSUPPORTED_MEDIA_TYPE
    return JSONResponse(body, UNSUPPORTED_MEDIA_TYPE)


async def _unknown_state(request: Request) -> str | None:
    """Return the status filter of a ListTasks that names no state: parsed leniently, it would filter nothing."""
    named: object = request.query_params.get("status")
    if request.method == "POST":
        try:
            body = await request.json()
        except ValueError:
            return None  # the binding says so
        listing = isinstance(body, dict) and body.get("method") == "ListTasks"
        params = body.get("params") if listing else None
        named = params.get("status") if isinstance(params, dict) else None
    known = frozenset(TaskState.keys())
    return named if isinstance(named, str) and named not in known and not named.isdecimal() else None


async def _numbered(events: Any, told: Told) -> AsyncIterator[Any]:
    try:
        async for event in events:
            if told.number is None:
                yield event
            elif isinstance(event, dict) and event.get("event") != "error":
                yield {**event, "id": str(told.number)}
            elif isinstance(event, str):
                yield {"data": event, "id": str(told.number)}
            elif isinstance(event, ServerSentEvent) and event.event is None:
                event.id = str(told.number)
                yield event
            else:
                yield event
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()
