"""What there is to kill while a client follows, and how it comes back: server, workers and Temporal.

`Together` is the one command: its workers and its Temporal are its children. `Apart` has each in a process of its own,
over one data folder, so that each dies alone.
"""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen
from typing import Protocol

from perdure.temporal.embedded import find_record
from tests.a2a.house import House

OWNER = Path(__file__).parents[1] / "embedded" / "owner.py"
STARTS_MAX = 3
KINDS = ("server", "worker", "temporal")


class Place(Protocol):
    """Running processes of all three kinds."""

    def revive(self) -> None:
        """Start again what nobody else starts; return when it does its part."""

    def victims(self, kind: str) -> list[int]:
        """Return the processes of that kind that can be killed now."""

    def kill(self, pid: int) -> None:
        """Kill it, and whatever dies with it."""


class _Commands:
    """Commands that are started again when they are dead."""

    def __init__(self, house: House, environment: dict[str, str]) -> None:
        self.house = house
        self.environment = environment
        self.running: dict[str, Popen[bytes]] = {}

    def dead(self, name: str) -> bool:
        return name not in self.running or self.running[name].poll() is not None

    def serve(self, *options: str) -> None:
        """Serve, and return when it does. A start that finds Temporal just killed says so, and is made again."""
        words = ("serve", self.house.agent, "--port", str(self.house.port), "--json", *options)
        for _ in range(STARTS_MAX):
            if not self.dead("server"):
                return
            self.running["server"] = self.house.command(*words, **self.environment)
            self.house.until(lambda: self.dead("server") or self.house.answers(), "the server answers")
            assert not self.dead("server") or "no server runs" in self.house.said, self.house.said
        raise AssertionError(self.house.said)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        for process in self.running.values():
            if process.pid == pid:
                process.wait()

    def workers_under(self, name: str) -> list[int]:
        """Return the workers that have been ready: the death of one that was not proves nothing."""
        if self.dead(name):
            return []
        ready = re.findall(r'"event": "worker.ready", "part": "calls", "pid": (\d+)', self.house.said)
        return sorted({int(pid) for pid in ready} & set(_processes_under(self.running[name].pid)))


class Together(_Commands):
    """`perdure serve`, and everything below it."""

    def revive(self) -> None:
        self.serve()

    def victims(self, kind: str) -> list[int]:
        if self.dead("server"):
            return []
        server_pid = self.running["server"].pid
        match kind:
            case "server":
                return [server_pid]
            case "worker":
                return self.workers_under("server")
            case _:
                return _temporal_of(self.house)


class Apart(_Commands):
    """`perdure serve --no-worker`, `perdure worker`, and a Temporal that neither of them owns."""

    def __init__(self, house: House, environment: dict[str, str]) -> None:
        super().__init__(house, environment)
        self._changing = threading.RLock()  # a thread may kill while another revives

    def revive(self) -> None:
        with self._changing:
            self._revive()

    def _revive(self) -> None:
        if self.dead("owner"):
            database = self.house.folder / "home" / "temporal.db"
            database.parent.mkdir(mode=0o700, exist_ok=True)
            self.running["owner"] = self.house.start([sys.executable, str(OWNER), str(database)])
            self.house.until(lambda: _temporal_of(self.house), "Temporal runs")
        self._work()
        self.serve("--no-worker")

    def kill(self, pid: int) -> None:
        with self._changing:
            super().kill(pid)
            self._work()  # the client's stream goes on without workers, and nobody else would start them

    def _work(self) -> None:
        if self.dead("worker"):
            self.running["worker"] = self.house.command("worker", self.house.agent, "--json", **self.environment)

    def victims(self, kind: str) -> list[int]:
        match kind:
            case "server":
                return [] if self.dead("server") else [self.running["server"].pid]
            case "worker":
                workers = self.workers_under("worker")
                return [*workers, self.running["worker"].pid] if workers else []
            case _:
                return _temporal_of(self.house)


def _temporal_of(house: House) -> list[int]:
    record = find_record(house.folder / "home" / "temporal.db")
    return [] if record is None or record.server_pid is None else [record.server_pid]


def _processes_under(ancestor: int) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if ancestor in _ancestors(int(folder.name)):
                yield int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            continue


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rsplit(")", 1)[1].split()[1])
        yield pid
