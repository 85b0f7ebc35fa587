"""`perdure run` with all that it starts, to be killed at one moment.

Every process that descends from the command dies then, the embedded Temporal and its guard too, whatever process group
or session they are in: they are found in /proc, from the command down.
"""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.cli.desk import COMMAND
from tests.outage.data_folder import REPOSITORY


def family(pid: int) -> list[int]:
    """Return a process and all that descends from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found.extend(children.get(each, []))
    return found


class Command:
    """A running `perdure run`. `said` is what it gets on its standard input; `log` takes what it prints for people."""

    def __init__(self, log: Path, environment: Mapping[str, str], *words: str, said: str = "") -> None:
        self._log = log
        with log.open("w") as err:
            self.process = subprocess.Popen(
                [*COMMAND, "run", *words],
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=err,
                start_new_session=True,
            )
        if self.process.stdin is None:
            raise AssertionError("no input")
        # A line is far less than what a pipe holds: nobody has to read it for this to return.
        with self.process.stdin as given:
            given.write(said.encode())

    def kill_all(self) -> int:
        """Kill everything at once; return how many processes that were: none where the command had ended."""
        if self.process.poll() is not None:
            return 0  # its number may be somebody else's by now
        pids = family(self.process.pid)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        return len(pids)

    def ended(self, within_s: float) -> None:
        """Wait until it has ended as it should."""
        assert self.process.wait(within_s) == 0, self.err

    @property
    def err(self) -> str:
        return self._log.read_text()

    @property
    def task_id(self) -> str | None:
        """The task, once the command has named it: it is acknowledged then."""
        found = re.search(r"^task (t-\w+)$", self.err, re.MULTILINE)
        return found[1] if found else None
