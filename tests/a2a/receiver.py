"""A client's webhook as a process of its own: it writes down what it got before it answers. No harness code runs here.

The path says how it behaves: `/ok`; `/fail/N` refuses the first N; `/slow` answers late, for ever; `/gone`; `/away`
sends elsewhere; `/held` answers once there is no file `held` in its folder.
"""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

Json = dict[str, Any]

SLOW_S = 60.0
"""Longer than anybody here waits."""


class Receiver:
    """Runs the process, and reads what it wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "received"
        self.log.touch()
        self.held = folder / "held"
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            os.set_inheritable(taken.fileno(), True)
            self.port: int = taken.getsockname()[1]
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(taken.fileno()), str(folder)], pass_fds=[taken.fileno()]
            )

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        self.held.unlink(missing_ok=True)
        self._process.kill()
        self._process.wait()

    def got(self, path: str) -> list["Received"]:
        """Return what came to a path, in order."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [Received(**line) for line in lines if line["path"] == path]

    def numbers(self, path: str) -> list[int]:
        return [each.number for each in self.got(path)]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: Json
    status: int

    @property
    def number(self) -> int:
        (update,) = self.body.values()
        (fields,) = update["metadata"].values()
        return int(fields["generation"])

    @property
    def state(self) -> str:
        (update,) = self.body.values()
        status: str = update.get("status", {}).get("state", "")
        return status.removeprefix("TASK_STATE_")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path
    refused: ClassVar[dict[str, int]] = {}

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self._status()
        said = {"path": self.path, "headers": dict(self.headers.items()), "body": json.loads(body), "status": status}
        with (self.folder / "received").open("a") as log:
            log.write(json.dumps(said) + "\n")
        if self.path.startswith("/slow"):
            time.sleep(SLOW_S)
        while self.path.startswith("/held") and (self.folder / "held").exists():
            time.sleep(0.01)
        try:
            self.send_response(status)
            if status == 307:
                self.send_header("Location", f"http://{self.headers['Host']}/reached")
            self.send_header("Content-Length", "0")
            self.end_headers()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # whoever sent it has been killed, or waits no more

    def _status(self) -> int:
        words = self.path.partition("?")[0].strip("/").split("/")
        if words[0] == "fail":
            self.refused[self.path] = self.refused.get(self.path, 0) + 1
            return 500 if self.refused[self.path] <= int(words[1]) else 204
        return {"gone": 410, "away": 307}.get(words[0], 200)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main() -> None:
    listening, folder = sys.argv[1:]
    Handler.folder = Path(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=int(listening))
    server.server_address = server.socket.getsockname()
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
