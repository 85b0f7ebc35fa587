"""A served agent as real processes: started, killed whole, started again at the same address; and a client of it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from perdure.a2a.extension import URI

WAIT_S = 45.0
"""A bound for what takes two seconds on a quiet machine."""

COMMAND = (sys.executable, "-m", "perdure.cli.main")
V1 = {"A2A-Version": "1.0"}

Json = dict[str, Any]


class House:
    """One data folder, one address, and the processes over it."""

    def __init__(self, folder: Path, agent: str = "clerk:agent") -> None:
        self.folder = folder
        self.agent = agent
        self.world = folder / "world.log"
        self.hold = folder / "hold"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, headers=V1, timeout=WAIT_S)
        self._running: list[subprocess.Popen[bytes]] = []
        for name in ("clerk", "keeper"):
            (folder / f"{name}.py").write_text(Path(__file__).with_name(f"{name}.txt").read_text())

    # --- processes ----------------------------------------------------------------------------------------------

    def command(self, *words: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Start a command in a session of its own."""
        return self.start([*COMMAND, *words], **environment)

    def start(self, words: list[str], **environment: str) -> "subprocess.Popen[bytes]":
        """Start a process in a session of its own; it ends with the house."""
        given = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE", "TEMPORAL"))}
        mine = {"PERDURE_HOME": str(self.folder / "home"), "CLERK_WORLD": str(self.world), "PYTHONUNBUFFERED": "1"}
        with (self.folder / "out").open("a") as out, (self.folder / "err").open("a") as err:
            process = subprocess.Popen(
                words,
                cwd=self.folder,
                env={**given, **mine, **environment},
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def open(self, *options: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Serve, and return when it does."""
        process = self.command("serve", self.agent, "--port", str(self.port), *options, **environment)
        self.until(lambda: process.poll() is not None or self.answers(), "the server answers")
        assert process.poll() is None, self.said
        return process

    def kill(self, process: "subprocess.Popen[bytes]") -> None:
        """SIGKILL to the server; its workers and its Temporal die with it."""
        process.kill()
        process.wait()

    def close(self) -> None:
        self.hold.unlink(missing_ok=True)
        self.client.close()
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def answers(self) -> bool:
        try:
            return self.client.get("/.well-known/agent-card.json").status_code == 200
        except httpx.TransportError:
            return False

    @property
    def said(self) -> str:
        return (self.folder / "out").read_text() + (self.folder / "err").read_text()

    def until(self, holds: Callable[[], object], what: str) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < deadline_s, f"waited {WAIT_S} s until {what}\n{self.said}"
            time.sleep(0.01)

    def world_lines(self, kind: str) -> list[list[str]]:
        lines = self.world.read_text().splitlines() if self.world.exists() else []
        return [line.split()[1:] for line in lines if line.startswith(kind)]

    # --- a client -----------------------------------------------------------------------------------------------

    def rpc(self, method: str, params: Json, **headers: str) -> Json:
        """Return the whole JSON-RPC answer."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer: Json = self.client.post("/", json=body, headers=headers).json()
        return answer

    def result(self, method: str, params: Json, **headers: str) -> Json:
        """Return the result of a call that must succeed."""
        answer = self.rpc(method, params, **headers)
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    def send(self, text: str, *, wait: bool = True, headers: dict[str, str] | None = None, **message: Any) -> Json:
        """Send a message; return its task."""
        params = {"message": said(text, **message), "configuration": {"returnImmediately": not wait}}
        task: Json = self.result("SendMessage", params, **(headers or {}))["task"]
        return task

    def task(self, task_id: str) -> Json:
        return self.result("GetTask", {"id": task_id})

    @contextlib.contextmanager
    def stream(
        self, method: str, params: Json, after: int | None = None, headers: dict[str, str] | None = None
    ) -> Iterator[Iterator[tuple[int, Json]]]:
        """Yield the events of a stream as (SSE id, StreamResponse); it ends where the connection does."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        named = {**(headers or {}), **({} if after is None else {"Last-Event-ID": str(after)})}
        with self.client.stream("POST", "/", json=body, headers=named) as response:
            assert response.headers["content-type"].startswith("text/event-stream"), response.read()
            yield _events(response)


def _events(response: httpx.Response) -> Iterator[tuple[int, Json]]:
    number = -1
    with contextlib.suppress(httpx.TransportError):  # the server was killed
        for line in response.iter_lines():
            if line.startswith("id: "):
                number = int(line.removeprefix("id: "))
            elif line.startswith("data: "):
                yield number, json.loads(line.removeprefix("data: "))["result"]


def said(text: str, message_id: str = "m-1", **fields: Any) -> Json:
    return {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **fields}


def number_in(response: Json) -> int:
    """Return the number that an update or a task has in its metadata."""
    (content,) = response.values()
    return int(content["metadata"][URI]["generation"])


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
