"""Who follows a task over the wire: server-sent events, begun again after the last number seen whenever they break off.

It notes each update's number, and as of which number each stream began. Chunks of a draft have none and are no events.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

from perdure.a2a.extension import URI
from tests.races.doors import AGAIN_S, REQUEST_S
from tests.races.notes import Notes


class Subscriber:
    """Follows one task at a served agent, which is killed now and then."""

    def __init__(self, client: httpx.AsyncClient, task: str) -> None:
        self.task = task
        self._client = client
        self._last = 0
        self._moved = asyncio.Event()

    async def follow(self, clients: Notes) -> None:
        """Follow for ever, and note what comes."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": self.task}}
        while True:
            headers = {"A2A-Version": "1.0", "Last-Event-ID": str(self._last)}
            with contextlib.suppress(httpx.TransportError):
                async with self._client.stream("POST", "/", json=body, headers=headers, timeout=REQUEST_S) as response:
                    async for number, result in _events(response):
                        self._take(clients, number, result)
            await asyncio.sleep(AGAIN_S)

    def _take(self, clients: Notes, number: int | None, result: dict[str, Any]) -> None:
        if "task" in result:
            as_of = int(result["task"]["metadata"][URI]["generation"])
            clients.note(op="stream", task=self.task, kind="begun", number=as_of)
        elif number is not None:
            clients.note(op="stream", task=self.task, kind="update", number=number)
            self._last = number
            self._moved.set()

    async def seen(self, number: int) -> None:
        """Wait until that number was seen."""
        while self._last < number:
            self._moved.clear()
            await self._moved.wait()


async def _events(response: httpx.Response) -> AsyncIterator[tuple[int | None, dict[str, Any]]]:
    """Yield each event's id, where it has one, and what it says; what is no stream (the task is not there) is empty."""
    number: int | None = None
    async for line in response.aiter_lines():
        if not line:
            number = None
        elif line.startswith("id:"):
            number = int(line.removeprefix("id:"))
        elif line.startswith("data:"):
            told = json.loads(line.removeprefix("data:"))
            if "result" in told:
                yield number, told["result"]
