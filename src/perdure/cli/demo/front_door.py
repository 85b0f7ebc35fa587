"""The demo's front door: an A2A server in a process of its own, and the customer as a client of it.

The server is `perdure serve --no-worker`; it is killed and started again at the same address. The client is what
`perdure send` and `watch` are made of: it sends a message under the same key until it is answered, and asks for the
events after the last number that it saw. It reads no store, so that what it has in the end came over A2A.
"""

import asyncio
import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from a2a.types.a2a_pb2 import StreamResponse
from pydantic import JsonValue

from perdure.app.events import TaskEvent
from perdure.cli.client.following import Given
from perdure.cli.client.giving import given
from perdure.cli.client.order import InOrder
from perdure.cli.client.patience import Patience, patiently
from perdure.cli.client.refusals import Lost
from perdure.cli.client.said import TERMINAL, Said, answer_of, said_in
from perdure.cli.client.server import Server, connected
from perdure.cli.demo.agent import REFERENCE
from perdure.core.errors import Unavailable

READY_WITHIN_S: Final = 60.0
"""A server's start takes two seconds on a quiet machine."""

Opened = Callable[[int], None]
"""Takes the pid of a server that answers."""


class FrontDoor:
    """The server's process. `pids` and `deaths` are in the order of the starts."""

    def __init__(self, environment: dict[str, str], log: Path, on_open: Opened) -> None:
        self.url = ""
        self.pids: list[int] = []
        self.deaths: list[int] = []
        # Who may come in here is the demo's customer, whatever the environment sets for other doors.
        others = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE_", "TEMPORAL_"))}
        self._environment = {**others, **environment}
        self._log = log
        self._on_open = on_open
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The server that runs, or ran last."""
        return self.pids[-1]

    @property
    def ended(self) -> bool:
        """Whether the server has died and was not started again."""
        return self._process is not None and self._process.returncode is not None

    async def open(self) -> None:
        """Start the server, at the address of the one before it; return when it answers.

        Raises `Unavailable` when it does not.
        """
        port = self.url.rpartition(":")[2] or "0"
        words = ["serve", REFERENCE, "--no-worker", "--json", "--port", port]
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "perdure.cli.main", *words),
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the director, which ends it
            )
        self.pids.append(self._process.pid)
        line = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READY_WITHIN_S):
                line = await self._out.readline()
        if not line:
            raise Unavailable(f"the demo's server did not start; its last words are in {self._log}")
        self.url = str(json.loads(line)["url"])
        self._on_open(self.pid)

    async def death(self) -> int:
        """Wait until the server has died; return how, negative for a signal."""
        if self._process is None:
            raise Unavailable("the demo's server was not started")
        code = await self._process.wait()
        self.deaths.append(code)
        return code

    async def close(self) -> None:
        """End the server."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()  # it holds nothing that is not in the store or in Temporal
            await self._process.wait()

    @property
    def _out(self) -> asyncio.StreamReader:
        if self._process is None or self._process.stdout is None:
            raise Unavailable("the demo's server was not started")
        return self._process.stdout


class Visitor:
    """A customer at the front door. `patience_s` is how long no answer at all is borne."""

    def __init__(self, server: Server, patience_s: float) -> None:
        self._server = server
        self._patience_s = patience_s
        self._task_id = ""
        self._texts: dict[str, str] = {}

    async def complain(self, text: str) -> str:
        """Give the first message until the server has answered; raises `Unavailable` when it stays away."""
        response = await self._give(given(text, secrets.token_hex(8), at_once=True), text)
        self._task_id = response.task.id
        return self._task_id

    async def answer(self, help_id: str, text: str) -> None:
        """Give the answer, as a message, until the server has answered; raises as `complain` does."""
        message = given(text, secrets.token_hex(8), task_id=self._task_id, help_id=help_id, at_once=True)
        await self._give(message, text)

    async def events(self) -> AsyncIterator[TaskEvent]:
        """Yield each event once, over every loss of the connection."""
        order, patience = InOrder(0), Patience(self._patience_s)
        while True:
            lost = Lost("the stream ended", reached=True)
            try:
                async with aclosing(self._server.subscribe(self._task_id, order.seen)) as responses:
                    async for response in responses:
                        patience.answered()
                        said = said_in(response)
                        if said.kind == "task":
                            order.start(said)
                            continue
                        if said.number is None:
                            continue  # a chunk of a draft; its reply comes whole
                        for each in order.take(said):
                            patience.progressed()
                            yield self._event(each)
                            if each.kind == "task.status" and each.state in TERMINAL:
                                return
            except Lost as error:
                lost = error
            await patience.wait(str(lost), lost.retry_after_s)

    async def told(self) -> str:
        """Return the answer as the server shows it."""
        return answer_of(await patiently(Patience(self._patience_s), lambda: self._server.task(self._task_id, None)))

    async def _give(self, message: Given, text: str) -> StreamResponse:
        self._texts[message.request.message.message_id] = text

        async def once() -> StreamResponse:
            async with aclosing(self._server.send(message.request, message.key)) as responses:
                async for response in responses:
                    return response
            raise Lost("the server answered nothing", reached=True)

        return await patiently(Patience(self._patience_s), once)

    def _event(self, said: Said) -> TaskEvent:
        """Return what was said as an event: of what only the store has, there is nothing in it."""
        data: dict[str, JsonValue] = dict(said.data)
        text = self._texts.get(str(data.get("message_id", "")), said.text)
        if said.kind == "task.status":
            data["state"] = said.state
        if text:
            data["text"] = text
        now_ms = time.time_ns() // 1_000_000
        return TaskEvent(said.number or 0, said.kind, now_ms, said.run, said.turn, data)  # type: ignore[arg-type] # a kind of the log: the server is ours


@contextlib.asynccontextmanager
async def open_door(environment: dict[str, str], log: Path, on_open: Opened) -> AsyncIterator[FrontDoor]:
    """Open the front door; it is closed on the way out. Raises `Unavailable` when the server does not start."""
    door = FrontDoor(environment, log, on_open)
    try:
        await door.open()
        yield door
    finally:
        await door.close()


@contextlib.asynccontextmanager
async def visiting(door: FrontDoor, patience_s: float) -> AsyncIterator[Visitor]:
    """Let a customer come to the door."""
    async with connected(door.url) as server:
        yield Visitor(server, patience_s)
