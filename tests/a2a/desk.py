"""A client of the front door in this process: the ASGI application over a bench's app, with no socket between."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.authentication import SimpleUser
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from perdure import App
from perdure.app.offer import Offer

URL = "http://agent.test"
Json = dict[str, Any]


class Named:
    """Takes everybody for whom they say they are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = dict(scope["headers"]).get(b"x-name")
        if name is not None:
            scope["user"] = SimpleUser(name.decode())
        await self.app(scope, receive, send)


class Desk:
    """Asks by JSON-RPC, and by HTTP+JSON where that is the point."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def rpc(self, method: str, params: Json, **headers: str) -> Json:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        answer: Json = (await self.http.post("/", json=body, headers=_names(headers))).json()
        return answer

    async def result(self, method: str, params: Json, **headers: str) -> Json:
        answer = await self.rpc(method, params, **headers)
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def reason(self, method: str, params: Json, **headers: str) -> str:
        """Return the reason of the error that this must be."""
        answer = await self.rpc(method, params, **headers)
        assert "error" in answer, answer
        return reason_of(answer["error"]["data"])

    async def send(self, text: str = "hello", *, wait: bool = True, **message: Any) -> Json:
        task: Json = (await self.result("SendMessage", sending(text, wait=wait, **message)))["task"]
        return task

    async def task(self, task_id: str, **fields: Any) -> Json:
        return await self.result("GetTask", {"id": task_id, **fields})

    async def stream(self, method: str, params: Json, **headers: str) -> list[tuple[int, Json]]:
        """Return all events of a stream, which must end by itself, as (SSE id, StreamResponse)."""
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        answer = await self.http.post("/", json=body, headers=_names(headers))
        assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
        events, number = [], -1
        for line in answer.text.splitlines():
            if line.startswith("id: "):
                number = int(line.removeprefix("id: "))
            elif line.startswith("data: "):
                events.append((number, json.loads(line.removeprefix("data: "))["result"]))
        return events


@contextlib.asynccontextmanager
async def desk(app: App, offer: Offer | None = None) -> AsyncIterator[Desk]:
    transport = httpx.ASGITransport(app.asgi(URL, middleware=[Middleware(Named)], offer=offer))
    async with httpx.AsyncClient(transport=transport, base_url=URL, headers={"A2A-Version": "1.0"}, timeout=30) as http:
        yield Desk(http)


def sending(text: str = "hello", *, wait: bool = True, message_id: str = "m-1", **message: Any) -> Json:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **message}
    return {"message": message, "configuration": {"returnImmediately": not wait}}


def reason_of(details: list[Json]) -> str:
    """Return the reason that an error's structured details name."""
    (info,) = [each for each in details if each["@type"].endswith("google.rpc.ErrorInfo")]
    assert info["domain"] == "a2a-protocol.org"
    reason: str = info["reason"]
    return reason


def _names(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
