"""A folder with an agent, a data folder and a world log, and `perdure` commands run there as real processes."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from perdure.cli.main import run_command

WAIT_S = 45.0
"""A bound for what takes two seconds on a quiet machine."""

COMMAND = (sys.executable, "-m", "perdure.cli.main")


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def outcome(self) -> dict[str, Any]:
        return self.objects[-1]

    @property
    def task_id(self) -> str:
        return task_id_in(self.err)


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.world = folder / "world.log"
        self.hold = folder / "hold"
        (folder / "helpdesk.py").write_text(Path(__file__).with_name("helpdesk.txt").read_text())

    def beside(self, name: str) -> "Desk":
        """Return another folder over the same data folder and world."""
        (self.folder / name).mkdir(exist_ok=True)
        other = Desk(self.folder / name)
        other.home, other.world, other.hold = self.home, self.world, self.hold
        return other

    @property
    def environment(self) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE", "TEMPORAL"))}
        return {**given, "PERDURE_HOME": str(self.home), "HELPDESK_WORLD": str(self.world), "PYTHONUNBUFFERED": "1"}

    def perdure(
        self,
        *words: str,
        stdin: str = "",
        command: tuple[str, ...] = COMMAND,
        within_s: float = WAIT_S,
        **environment: str,
    ) -> Finished:
        done = subprocess.run(
            [*command, *words],
            cwd=self.folder,
            env={**self.environment, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def here(self, *words: str) -> Finished:
        """Run a command that only reads in this process: it starts nothing, and imports are what it costs."""
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, self.environment, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_command(list(words))
        return Finished(code, out.getvalue(), err.getvalue())

    @contextlib.contextmanager
    def started(self, *words: str, stdin: int = subprocess.PIPE) -> Iterator["Started"]:
        with (self.folder / "out").open("w") as out, (self.folder / "err").open("w") as err:
            process = subprocess.Popen(
                [*COMMAND, *words], cwd=self.folder, env=self.environment, stdin=stdin, stdout=out, stderr=err
            )
        started = Started(self, process)
        try:
            yield started
        finally:
            self.hold.unlink(missing_ok=True)
            process.kill()
            process.wait()
            for pid in started.worker_pids:
                with contextlib.suppress(ProcessLookupError):  # one that was orphaned and still drains
                    os.kill(pid, signal.SIGKILL)
            if process.stdin is not None:
                process.stdin.close()

    def world_lines(self, kind: str) -> list[list[str]]:
        lines = self.world.read_text().splitlines() if self.world.exists() else []
        return [line.split()[1:] for line in lines if line.startswith(kind)]


@dataclass
class Started:
    desk: Desk
    process: "subprocess.Popen[bytes]"

    @property
    def out(self) -> str:
        return (self.desk.folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self.desk.folder / "err").read_text()

    @property
    def task_id(self) -> str:
        return task_id_in(self.err)

    @property
    def worker_pids(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"^worker (\d+) ", self.err, re.MULTILINE)]

    def until(self, holds: Callable[[], object], what: str) -> None:
        until(lambda: holds() or self.process.poll() is not None, what, lambda: self.out + self.err)
        assert holds(), f"the command ended with {self.process.returncode} before {what}:\n{self.out}{self.err}"

    def end(self, number: signal.Signals) -> Finished:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> Finished:
        code = self.process.wait(WAIT_S)
        return Finished(code, self.out, self.err)


def task_id_in(text: str) -> str:
    found = re.search(r"^task (t-\w+)$", text, re.MULTILINE)
    assert found, f"no task was named in:\n{text}"
    return found[1]


def until(holds: Callable[[], object], what: str, context: Callable[[], str] = lambda: "") -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline_s, f"waited {WAIT_S} s for {what}\n{context()}"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"
