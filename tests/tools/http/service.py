"""An HTTP service as a process of its own: `python service.py LOG PORT`. It knows nothing of the harness.

It writes each request and each effect to LOG, synced, before it goes on; a judge reads nothing else. A refund applies
each time that it arrives, as a careless service does; what the header `X-Trouble` names goes wrong at that moment, once
for the same request:

    before-effect, after-effect    the connection is dropped there
    die-before, die-after          the whole process is killed there
    gzip                           the answer is compressed, unasked
    hold                           there is no answer, after the effect
    cut                            the answer's body is cut off in the middle
    slow                           the answer's body stops in the middle
    status=N                       that status, after the effect where it is good
"""

import gzip
import json
import os
import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

LOG = Path(sys.argv[1])
LOCK = threading.Lock()


def log(**line: Any) -> None:
    with LOCK, LOG.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def lines() -> list[dict[str, Any]]:
    with LOCK:
        return [json.loads(line) for line in LOG.read_text().splitlines()]


def effects() -> list[dict[str, Any]]:
    return [line for line in lines() if line["what"] == "effect"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode(errors="replace")
        self.key = self.headers.get("Idempotency-Key", "")
        self.trouble = self._once(self.headers.get("X-Trouble", ""), body)
        headers = dict(self.headers.items())
        log(
            what="request",
            method=self.command,
            path=self.path,
            key=self.key,
            headers=headers,
            body=body,
            port=self.client_address[1],
        )
        name = parts.path.strip("/").split("/")
        answer = getattr(self, f"on_{name[0].replace('-', '_').replace('.', '_')}", None)
        if answer is None:
            self._say(404, {"problem": "there is nothing here"})
        else:
            answer([unquote(each) for each in name[1:]], dict(parse_qsl(parts.query)), body)

    def _once(self, trouble: str, body: str) -> str:
        which = f"{trouble} {self.command} {self.path} {body}"
        if any(line["what"] == "trouble" and line["which"] == which for line in lines()):
            return ""
        if trouble:
            log(what="trouble", which=which)
        return trouble

    # --- what it offers -------------------------------------------------------------------------------------------

    def on_openapi_json(self, path: list[str], query: dict[str, str], body: str) -> None:
        self._say(200, json.loads(Path(os.environ["DOCUMENT"]).read_text()))

    def on_echo(self, path: list[str], query: dict[str, str], body: str) -> None:
        self._say(200, {"path": self.path, "headers": dict(self.headers.items()), "body": body})

    def on_refunds(self, path: list[str], query: dict[str, str], body: str) -> None:
        """POST makes one; GET /refunds/KEY finds it; PUT /refunds/KEY/closed says what became of it, for good."""
        if self.command == "GET":
            found = [each for each in effects() if each["key"] == path[0] and not each.get("closed")]
            self._say(200, found[0]["result"]) if found else self._say(404, {"problem": "no such refund"})
            return
        if self.command == "PUT":
            found = [each for each in effects() if each["key"] == path[0]]
            if not found:
                log(what="effect", key=path[0], closed=True, result=None)
            happened = bool(found) and not found[0].get("closed")
            self._say(200, {"happened": happened, "final": True, "result": found[0]["result"] if happened else None})
            return
        self._effect(json.loads(body))

    def on_payments(self, path: list[str], query: dict[str, str], body: str) -> None:
        """POST makes one; nobody can find it later."""
        self._effect(json.loads(body))

    def on_orders(self, path: list[str], query: dict[str, str], body: str) -> None:
        """GET reads one, PUT and DELETE change it."""
        if self.command == "GET":
            self._trouble_before()
            self._say(200, {"order_id": path[0], "item": "blender"})
        else:
            self._effect({"order_id": path[0], "body": body}, repeats=False)

    def on_status(self, path: list[str], query: dict[str, str], body: str) -> None:
        wait = {"Retry-After": "7"} if path[0] in {"429", "503"} else {}
        self._say(int(path[0]), {"problem": query.get("say", "as you wished")}, **wait)

    def on_moved(self, path: list[str], query: dict[str, str], body: str) -> None:
        self._say(int(query.get("status", "302")), None, Location=query["to"])

    def on_file(self, path: list[str], query: dict[str, str], body: str) -> None:
        data = bytes(range(256)) * int(query.get("times", "1"))
        self._raw(200, data, query.get("type", "image/png"))

    def on_text(self, path: list[str], query: dict[str, str], body: str) -> None:
        self._raw(200, query["say"].encode("latin-1") * int(query.get("times", "1")), "text/plain; charset=latin-1")

    # --- what can go wrong ----------------------------------------------------------------------------------------

    def _effect(self, asked: dict[str, Any], *, repeats: bool = True) -> None:
        """Apply an effect: one that repeats each time, another once per key."""
        self._trouble_before()
        status = int(self.trouble.removeprefix("status=")) if self.trouble.startswith("status=") else 201
        result = {"refund": f"R-{len(effects()) + 1}", **asked}
        if any(each["key"] == self.key and each.get("closed") for each in effects()):
            self._say(409, {"problem": "this key is closed"})
            return
        known = any(each["key"] == self.key for each in effects())
        if (status < 300 or status >= 500) and (repeats or not known):
            log(what="effect", key=self.key, result=result)
        self._trouble_after()
        self._say(status, result)

    def _trouble_before(self) -> None:
        if self.trouble == "before-effect":
            self._drop()
        if self.trouble == "die-before":
            os.kill(os.getpid(), signal.SIGKILL)

    def _trouble_after(self) -> None:
        if self.trouble == "after-effect":
            self._drop()
        if self.trouble == "die-after":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "hold":
            threading.Event().wait(60)

    def _drop(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True
        raise ConnectionAbortedError

    def _say(self, status: int, value: Any, **headers: str) -> None:
        data = b"" if value is None or status == 304 else json.dumps(value).encode()
        self._raw(status, data, "application/json", **headers)

    def _raw(self, status: int, data: bytes, media_type: str, **headers: str) -> None:
        if self.trouble == "gzip":
            data, headers = gzip.compress(data), {**headers, "Content-Encoding": "gzip"}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.trouble in {"cut", "slow"}:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            if self.trouble == "slow":
                threading.Event().wait(60)
            self._drop()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    LOG.touch()
    server = Server(("127.0.0.1", int(sys.argv[2])), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
