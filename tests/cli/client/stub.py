"""A server that says what a test tells it to say, byte for byte: what no real server can be made to do on demand.

It is HTTP on a socket, in a thread; nothing of ours is in it. It answers each request with the next step, and keeps
what it was asked.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from perdure.a2a.extension import URI

Json = dict[str, Any]


EXTENSION: Json = {
    "uri": URI,
    "params": {
        "operations": [
            {"method": f"perdure.{name}"} for name in ("StopTask", "SteerMessage", "WithdrawMessage", "GetInbox")
        ]
    },
}


@dataclass(frozen=True)
class Stream:
    """Events, and whether the connection breaks after them instead of ending."""

    events: tuple[Json, ...]
    breaks: bool = False


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    body: Json | str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


BREAK = Stream((), breaks=True)
"""Nothing: the connection breaks with the request in hand."""

Step = Stream | Answer


class Stub:
    """The steps that are left, and the requests that came: their headers and JSON-RPC."""

    def __init__(self, steps: tuple[Step, ...], *, numbers: bool, secured: bool) -> None:
        self.steps = list(steps)
        self.asked: list[tuple[dict[str, str], Json]] = []
        self.url = ""
        self.card_url = ""
        self._numbers, self._secured = numbers, secured

    @property
    def methods(self) -> list[str]:
        return [body["method"] for _, body in self.asked]

    def card(self) -> Json:
        card: Json = {
            "name": "stub",
            "supportedInterfaces": [
                {"url": self.card_url or self.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ],
            "capabilities": {"streaming": True, "extensions": [EXTENSION] if self._numbers else []},
        }
        if self._secured:
            card["securitySchemes"] = {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}}
            card["securityRequirements"] = [{"schemes": {"key": {}}}]
        return card


class Handler(BaseHTTPRequestHandler):
    """Answers for the stub that its server carries."""

    protocol_version = "HTTP/1.1"

    @property
    def stub(self) -> Stub:
        found: Stub = vars(self.server)["stub"]
        return found

    def do_GET(self) -> None:
        self._say(Answer(self.stub.card()))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.stub.asked.append(({name.lower(): value for name, value in self.headers.items()}, body))
        step = self.stub.steps.pop(0) if self.stub.steps else Answer("no step is left", 500)
        if isinstance(step, Answer):
            self._say(step)
            return
        self.close_connection = True
        if step.events or not step.breaks:
            self._stream(step)

    def _stream(self, stream: Stream) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in stream.events:
            self._chunk(f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': event})}\n\n")
        if not stream.breaks:
            self._chunk("")

    def _chunk(self, text: str) -> None:
        self.wfile.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())

    def _say(self, answer: Answer) -> None:
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def stub(*steps: Step, numbers: bool = True, secured: bool = False) -> Iterator[Stub]:
    """Serve these steps."""
    made = Stub(steps, numbers=numbers, secured=secured)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    vars(server)["stub"] = made
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def task(number: int | None, state: str = "WORKING", task_id: str = "t-1") -> Json:
    """Return a task as a stream's element."""
    metadata = {} if number is None else {"metadata": {URI: {"generation": str(number)}}}
    return {"task": {"id": task_id, "contextId": "c-1", "status": {"state": f"TASK_STATE_{state}"}, **metadata}}


def update(number: int, kind: str, state: str = "WORKING", run: int = 1, **data: Any) -> Json:
    """Return an update as a stream's element."""
    told = {"generation": str(number), "kind": kind, "run": run, "turn": 1, **data}
    return {
        "statusUpdate": {
            "taskId": "t-1",
            "contextId": "c-1",
            "status": {"state": f"TASK_STATE_{state}"},
            "metadata": {URI: told},
        }
    }


def result(value: Json) -> Answer:
    """Return a JSON-RPC result."""
    return Answer({"jsonrpc": "2.0", "id": 1, "result": value})


def error(number: int, message: str, /, **metadata: str) -> Answer:
    """Return a JSON-RPC error with the details that A2A has for it."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "X", "domain": "d", "metadata": metadata}
    return Answer({"jsonrpc": "2.0", "id": 1, "error": {"code": number, "message": message, "data": [info]}})
