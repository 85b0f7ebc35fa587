"""Runs the kit's scenarios, one after the other in a few lanes, and reads what it made of each.

The kit can run a suite by itself, all of it at once. On a machine with two cores its scenarios then wait for each
other, and some of them measure time. So each is run alone, and what it writes (`checks.json`) is added up here.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LANES: Final = 2
WITHIN_S: Final = 120.0
"""For one scenario; the kit ends its client after 30 s."""

_LISTED: Final = re.compile(r"^\s+- (\S+) \[", re.MULTILINE)
_NO_GOOD_END: Final = ("CLIENT EXITED WITH ERROR", "CLIENT TIMED OUT")


@dataclass(frozen=True)
class Judged:
    """What the kit made of one scenario: checks by name, and whether the client came to a good end."""

    scenario: str
    passed: int
    failed: tuple[str, ...]
    warned: tuple[str, ...]
    ended_well: bool


@dataclass(frozen=True)
class Verdict:
    """What it made of all; failures are `scenario:check`."""

    scenarios: int
    passed: int
    failures: tuple[str, ...]
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    def beyond(self, other: "Verdict") -> list[str]:
        """Return what went wrong here and not there."""
        mine, theirs = asdict(self), asdict(other)
        return [
            f"{kind}: {each}"
            for kind in ("failures", "warnings", "errors")
            for each in mine[kind]
            if each not in theirs[kind]
        ]


def verdict_of(judged: Sequence[Judged]) -> Verdict:
    return Verdict(
        scenarios=len(judged),
        passed=sum(each.passed for each in judged),
        failures=tuple(f"{each.scenario}:{check}" for each in judged for check in each.failed),
        warnings=tuple(f"{each.scenario}:{check}" for each in judged for check in each.warned),
        errors=tuple(each.scenario for each in judged if not each.ended_well),
    )


class Kit:
    """The kit in the folder where `scripts/mcp-kit` put it; what it writes goes into `results`."""

    def __init__(self, folder: Path, results: Path) -> None:
        self._node = folder / "node"
        self._program = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        self._results = results

    def scenarios(self) -> list[str]:
        """Return the names of all scenarios for clients."""
        return _LISTED.findall(self._run("list", "--client"))

    def judge(self, client: str, scenarios: Sequence[str]) -> Verdict:
        """Run these scenarios with a client's command, to which the kit adds the URL."""
        with ThreadPoolExecutor(LANES) as lanes:
            return verdict_of(list(lanes.map(lambda scenario: self._judge(client, scenario), scenarios)))

    def _judge(self, client: str, scenario: str) -> Judged:
        folder = self._results / scenario.replace("/", "-")
        said = self._run("client", "--command", client, "--scenario", scenario, "-o", str(folder))
        checks = [check for path in folder.rglob("checks.json") for check in json.loads(path.read_text())]
        return Judged(
            scenario,
            passed=len(_of(checks, "SUCCESS")),
            failed=tuple(_of(checks, "FAILURE")),
            warned=tuple(_of(checks, "WARNING")),
            ended_well=bool(checks) and not any(each in said for each in _NO_GOOD_END),
        )

    def _run(self, *words: str) -> str:
        """Return what the kit said. It, and what it has started, does not outlive WITHIN_S."""
        with tempfile.TemporaryFile() as said:
            running = subprocess.Popen(
                [self._node, self._program, *words],
                cwd=ROOT,  # a client's command is a module of these tests
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                running.wait(WITHIN_S)
            except subprocess.TimeoutExpired:
                said.write(b"\nCLIENT TIMED OUT, and the kit with it")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                running.wait()
            said.seek(0)
            return said.read().decode(errors="replace")


def _of(checks: list[dict[str, Any]], status: str) -> list[str]:
    return [check["id"] for check in checks if check["status"] == status]
