"""Client commands as real processes, and the servers that they talk to."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from perdure.cli.client.said import DRAFT
from tests.a2a.house import House, free_port
from tests.cli.desk import COMMAND, WAIT_S, Finished, until


class Visitor:
    """Runs client commands in a folder of its own: nothing of the server's data is there."""

    def __init__(self, folder: Path, url: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.url = url

    @property
    def environment(self) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE", "TEMPORAL"))}
        return {**given, "PERDURE_HOME": str(self.folder / "home"), "PYTHONUNBUFFERED": "1"}

    def run(self, command: str, *words: str) -> Finished:
        """Run a command against the server to its end."""
        with self.begun(command, *words) as begun:
            return begun.ended()

    @contextlib.contextmanager
    def begun(self, command: str, *words: str) -> Iterator["Begun"]:
        name = f"{command}-{len(list(self.folder.iterdir()))}"
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with out.open("w") as to_out, err.open("w") as to_err:
            process = subprocess.Popen(
                [*COMMAND, command, self.url, *words],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
            )
        try:
            yield Begun(process, out, err)
        finally:
            process.kill()
            process.wait()


class Begun:
    """A command that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", out: Path, err: Path) -> None:
        self.process, self._out, self._err = process, out, err

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def until(self, holds: Callable[[], object], what: str) -> None:
        until(lambda: holds() or self.process.poll() is not None, what, lambda: self.out + self.err)
        assert holds(), f"ended with {self.process.returncode} before {what}:\n{self.out}{self.err}"

    def ended(self) -> Finished:
        code = self.process.wait(WAIT_S)
        return Finished(code, self.out, self.err)


def numbers(finished: Finished) -> list[int]:
    """Return the numbers that a command with `--json` has shown; drafts have none."""
    return [each["number"] for each in finished.objects if "outcome" not in each and each["kind"] != DRAFT]


class Plain:
    """The SDK's own default server, in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.hold = folder / "hold"
        self._running: list[subprocess.Popen[bytes]] = []
        (folder / "plain.py").write_text(Path(__file__).with_name("plain.txt").read_text())

    def open(self, **environment: str) -> "subprocess.Popen[bytes]":
        """Serve, and return when it does."""
        with (self.folder / "plain.err").open("a") as err:
            process = subprocess.Popen(
                [sys.executable, "plain.py", str(self.port)],
                cwd=self.folder,
                env={**os.environ, "PLAIN_HOLD": str(self.hold), **environment},
                stdout=err,
                stderr=err,
            )
        self._running.append(process)
        until(lambda: process.poll() is not None or self._answers(), "the server answers", self._said)
        assert process.poll() is None, self._said()
        return process

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/.well-known/agent-card.json").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def _said(self) -> str:
        return (self.folder / "plain.err").read_text()

    def close(self) -> None:
        self.hold.unlink(missing_ok=True)
        for process in self._running:
            process.kill()
            process.wait()


__all__ = ["Begun", "House", "Plain", "Visitor", "numbers"]
