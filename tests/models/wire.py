"""A model provider on loopback: a real HTTP server that speaks three vendors' wire formats.

It plays `POST /v1/chat/completions` and `/v1/responses` (OpenAI) and `/v1/messages` (Anthropic), streaming and not,
by the `stream` field of the request. What it answers is prepared beforehand, one answer a request: in no vendor's
terms (`Said`, `Refused`, `Broken`, `Silence`), which `wire_openai` and `wire_anthropic` put into the documents that the
vendors' references show, or byte for byte (`Replayed`). A request that the real service would refuse is refused, and
uses up no answer (`wire_rules`). Every request is kept, so that a test can count them and read what really arrived.
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
from tests.models.wire_answers import Broken, Format, Refused, Replayed, Said, Silence
from tests.models.wire_answers import Request as Body
from tests.models.wire_rules import refusal

__all__ = ["FORMATS", "Broken", "Received", "Refused", "Replayed", "Said", "Silence", "Wire", "listening", "serving"]

FORMATS: dict[str, Format] = {
    "/v1/chat/completions": wire_openai.CHAT,
    "/v1/responses": wire_openai.RESPONSES,
    "/v1/messages": wire_anthropic.MESSAGES,
}

Answer = Said | Refused | Replayed | Broken | Silence


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
        if refused := refusal(request.url.path, request.headers, body):
            return _error(form, refused)
        if not wire.prepared:
            return _error(form, Refused(400, "the test prepared no answer"))
        answer = wire.prepared.popleft()
        if isinstance(answer, Silence):
            while (await request.receive())["type"] != "http.disconnect":
                pass
            wire.left.set()
            return Response(status_code=499)
        if isinstance(answer, Refused):
            return _error(form, answer)
        streams = body.get("stream")
        if isinstance(answer, Replayed):
            return StreamingResponse(_pieces(answer), media_type="text/event-stream" if streams else "application/json")
        if not streams:
            # Written in ASCII, so that what is no text (half a surrogate pair) can be sent too, as an escape.
            return _cut_response() if isinstance(answer, Broken) else _json(json.dumps(form.whole(answer, body)))
        return StreamingResponse(_events(form, answer, body), media_type="text/event-stream")

    return Starlette(routes=[Route(path, endpoint, methods=["POST"]) for path in FORMATS])


def _error(form: Format, refused: Refused) -> Response:
    return JSONResponse(form.error(refused), refused.status, refused.headers)


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


async def _pieces(answer: Replayed) -> AsyncIterator[bytes]:
    size = answer.piece_bytes or len(answer.body)
    for start in range(0, len(answer.body), size):
        yield answer.body[start : start + size]
        await asyncio.sleep(0)


def _cut_response() -> Response:
    async def part() -> AsyncIterator[bytes]:
        yield b'{"id": "cut'
        raise ConnectionAbortedError("cut, as the test asked")

    return StreamingResponse(part(), media_type="application/json")


async def _events(form: Format, answer: Said | Broken, body: Body) -> AsyncIterator[bytes]:
    events = form.events(answer.said if isinstance(answer, Broken) else answer, body)
    if isinstance(answer, Broken):
        events = events[: answer.after_events]
    for event in events:
        yield event.encode()
        await asyncio.sleep(0)
    if isinstance(answer, Broken) and answer.error is not None:
        yield form.error_event(answer.error).encode()
    elif isinstance(answer, Broken) and answer.abruptly:
        # Uvicorn closes the connection without the last chunk: the client sees the cut.
        raise ConnectionAbortedError("cut, as the test asked")


@contextmanager
def serving() -> Iterator[Wire]:
    """Run the server in a thread on a free port of 127.0.0.1 until the block ends."""
    wire = Wire()
    with listening(_app(wire)) as wire.url:
        yield wire


@contextmanager
def listening(app: Starlette) -> Iterator[str]:
    """Serve an application on a free port of 127.0.0.1, in a thread, until the block ends; yield its URL."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # before the thread runs: who comes sooner waits, and is not refused
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    # Cuts are meant; uvicorn would print a traceback for each.
    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        _silence(name)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listener.close()


def _silence(logger: str) -> None:
    import logging

    logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
