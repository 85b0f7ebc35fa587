"""A model provider on loopback: a real HTTP server that speaks three vendors' wire formats.

It plays `POST /v1/chat/completions` and `/v1/responses` (OpenAI) and `/v1/messages` (Anthropic), streaming and not,
by the `stream` field of the request. What it answers is prepared beforehand, one answer a request, in no vendor's
terms (`Said`, `Refused`, `Broken`, `Silence`); `wire_openai` and `wire_anthropic` put it into the documents that the
vendors' references show. Every request is kept, so that a test can count them and read what really arrived.
"""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.models import wire_anthropic, wire_openai
from tests.models.wire_answers import Broken, Format, Refused, Said, Silence

__all__ = ["FORMATS", "Broken", "Received", "Refused", "Said", "Silence", "Wire", "serving"]

FORMATS: dict[str, Format] = {
    "/v1/chat/completions": wire_openai.CHAT,
    "/v1/responses": wire_openai.RESPONSES,
    "/v1/messages": wire_anthropic.MESSAGES,
}

Answer = Said | Refused | Broken | Silence


@dataclass(frozen=True)
class Received:
    """One request, as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """The body as JSON text, for searching."""
        return json.dumps(self.body, ensure_ascii=False)


@dataclass
class Wire:
    """The server as a test sees it."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    prepared: deque[Answer] = field(default_factory=deque)
    arrived: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    def prepare(self, *answers: Answer) -> None:
        """Say what the next requests are answered with."""
        self.prepared.extend(answers)

    @property
    def last(self) -> dict[str, Any]:
        """The body of the latest request."""
        return self.received[-1].body


def _app(wire: Wire) -> Starlette:
    async def endpoint(request: Request) -> Response:
        body = await request.json()
        wire.received.append(Received(request.url.path, dict(request.headers), body))
        wire.arrived.set()
        form = FORMATS[request.url.path]
        if not wire.prepared:
            return JSONResponse(form.error(400, "the test prepared no answer", None), 400)
        answer = wire.prepared.popleft()
        if isinstance(answer, Silence):
            while (await request.receive())["type"] != "http.disconnect":
                pass
            wire.left.set()
            return Response(status_code=499)
        if isinstance(answer, Refused):
            return JSONResponse(form.error(answer.status, answer.message, answer.code), answer.status, answer.headers)
        if not body.get("stream"):
            if isinstance(answer, Broken):
                return _cut_response()
            return JSONResponse(form.whole(answer))
        return StreamingResponse(_events(form, answer), media_type="text/event-stream")

    return Starlette(routes=[Route(path, endpoint, methods=["POST"]) for path in FORMATS])


def _cut_response() -> Response:
    async def part() -> AsyncIterator[bytes]:
        yield b'{"id": "cut'
        raise ConnectionAbortedError("cut, as the test asked")

    return StreamingResponse(part(), media_type="application/json")


async def _events(form: Format, answer: Said | Broken) -> AsyncIterator[bytes]:
    events = form.events(answer.said if isinstance(answer, Broken) else answer)
    if isinstance(answer, Broken):
        events = events[: answer.after_events]
    for event in events:
        yield event.encode()
        await asyncio.sleep(0)
    if isinstance(answer, Broken) and answer.error is not None:
        yield form.error_event(answer.error.status, answer.error.message, answer.error.code).encode()
    elif isinstance(answer, Broken) and answer.abruptly:
        # Uvicorn closes the connection without the last chunk: the client sees the cut.
        raise ConnectionAbortedError("cut, as the test asked")


@contextmanager
def serving() -> Iterator[Wire]:
    """Run the server in a thread on a free port of 127.0.0.1 until the block ends."""
    wire = Wire()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    wire.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(_app(wire), log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    # Cuts are meant; uvicorn would print a traceback for each.
    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        _silence(name)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


def _silence(logger: str) -> None:
    import logging

    logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
