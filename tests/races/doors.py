"""The two ways in that the soak's clients use: the Python surface, and the front door with its extension."""

import asyncio
from typing import Any, Protocol

import httpx

from perdure import App
from perdure.a2a import extension
from perdure.core.content import Lane
from perdure.core.errors import InvalidInput, Unavailable

Json = dict[str, Any]

REQUEST_S = 20.0
AGAIN_S = 0.1


class Refused(Exception):
    """The task said no."""


class Unknown(Exception):
    """Nobody answered, or only that it may have happened."""


class Door(Protocol):
    """What clients do. Each raises `Refused` or `Unknown`."""

    async def send(self, task: str, name: str, lane: Lane) -> None: ...
    async def steer(self, task: str, name: str) -> None: ...
    async def withdraw(self, task: str, name: str) -> None: ...
    async def stop(self, task: str) -> None: ...


class PythonDoor:
    """By the Python surface of one app."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def send(self, task: str, name: str, lane: Lane) -> None:
        await _python(self._app.task(task).send(name, message_id=name, lane=lane))

    async def steer(self, task: str, name: str) -> None:
        await _python(self._app.task(task).steer(name))

    async def withdraw(self, task: str, name: str) -> None:
        await _python(self._app.task(task).withdraw(name))

    async def stop(self, task: str) -> None:
        await _python(self._app.task(task).stop())

    async def answer(self, task: str, help_id: str, text: str) -> None:
        await _python(self._app.task(task).answer(help_id, text))

    async def decide(self, task: str, help_id: str, by: str, *, agrees: bool) -> None:
        handle = self._app.task(task)
        await _python(handle.approve(help_id, by=by) if agrees else handle.decline(help_id, "no", by=by))


async def _python(doing: Any) -> None:
    try:
        await doing
    except InvalidInput as error:
        raise Refused(str(error)) from error
    except Unavailable as error:
        await asyncio.sleep(AGAIN_S)
        raise Unknown(str(error)) from error


class FrontDoor:
    """By JSON-RPC at a served agent, which is killed now and then."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def send(self, task: str, name: str, lane: Lane) -> None:
        await self._message(task, name, name, {"lane": lane})

    async def steer(self, task: str, name: str) -> None:
        await self._call(extension.STEER, {"id": task, "messageId": name})

    async def withdraw(self, task: str, name: str) -> None:
        await self._call(extension.WITHDRAW, {"id": task, "messageId": name})

    async def stop(self, task: str) -> None:
        await self._call(extension.STOP, {"id": task})

    async def _message(self, task: str, message_id: str, text: str, fields: Json) -> None:
        message = {
            "messageId": message_id,
            "taskId": task,
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            "metadata": {extension.URI: fields},
        }
        await self._call("SendMessage", {"message": message, "configuration": {"returnImmediately": True}})

    async def _call(self, method: str, params: Json) -> None:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            response = await self._client.post("/", json=body, headers={"A2A-Version": "1.0"}, timeout=REQUEST_S)
            answer = response.json()
        except (httpx.TransportError, ValueError) as error:
            await asyncio.sleep(AGAIN_S)
            raise Unknown(repr(error)) from error
        if "error" not in answer:
            return
        told = str(answer["error"])
        if response.status_code == 503 or "SERVICE_UNAVAILABLE" in told:
            await asyncio.sleep(AGAIN_S)
            raise Unknown(told)
        raise Refused(told)
