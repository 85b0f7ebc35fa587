"""A folder with the shop's server in it: what it wrote, and what it is told to be."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from perdure import McpServer
from perdure.core.ports import Call, ToolPort

SERVER = Path(__file__).with_name("shop_door.py")
ODD = Path(__file__).with_name("odd_server.py")
WITHIN_S = 60.0


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Shop:
    """What a test knows of the server, all of it by files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def server(self, **options: Any) -> McpServer:
        return McpServer("shop", command=(sys.executable, str(SERVER), str(self.folder)), **options)

    def odd(self, what: str, **options: Any) -> McpServer:
        """Return a server that is odd in one way."""
        return McpServer("odd", command=(sys.executable, str(ODD), str(self.folder), what), **options)

    def told(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def world(self) -> list[dict[str, Any]]:
        """The effects that there were, in order."""
        return self.told("world")

    @property
    def pids(self) -> list[int]:
        """The processes that the server was, and those that it started."""
        return [line["pid"] for line in self.told("pids")]

    def be(self, name: str) -> None:
        (self.folder / name).touch()

    def be_no_more(self, name: str) -> None:
        (self.folder / name).unlink()

    async def reached(self, at: str, times: int = 1) -> None:
        await until(lambda: sum(line["at"] == at for line in self.told("reached")) >= times)

    def kill(self) -> None:
        os.kill(self.pids[-1], signal.SIGKILL)


async def until(condition: Any) -> None:
    end_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end_s, "it did not come to that"
        await asyncio.sleep(0.01)


def named(tools: tuple[ToolPort, ...]) -> dict[str, Any]:
    """Return tools by their names, without the server's."""
    return {tool.spec.name.partition(".")[2]: tool for tool in tools}


def call(key: str = "t/1/0", attempt: int = 1) -> Call:
    return Call(idempotency_key=key, attempt=attempt, task_id="t", tool="shop.tool")
