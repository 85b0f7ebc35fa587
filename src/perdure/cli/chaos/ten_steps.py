"""The published experiment: ten steps of three seconds, each writing a line to an outside log before it works.

A step is a call of an *idempotent* tool: after a kill it is begun again with the same key, and works its three seconds
again. `once` with a check was refused: the check would find the line and call the step done, so that its work would
not be done again and the run would end below the floor.

The log is what the outside world would be: it knows nothing of the harness. Under a lock it looks whether it has the
key; a new key's line says `applied`, a known one's `repeated`. A step is judged by its number, not by its key: were it
begun again under another key, its line would be applied twice.
"""

import asyncio
import fcntl
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perdure.app.agent import Agent
from perdure.cli.chaos.case import Case
from perdure.cli.chaos.evidence import Evidence
from perdure.cli.chaos.verdict import Judgement
from perdure.core.errors import ConfigurationError
from perdure.core.ports import Call
from perdure.testing import call, say, scripted
from perdure.tools.function import tool

STEPS: Final = 10
STEP_S: Final = 3.0
LOG_VARIABLE: Final = "PERDURE_CHAOS_LOG"
STEP_VARIABLE: Final = "PERDURE_CHAOS_STEP_S"
AGENT_ID: Final = "ten-steps"


@dataclass(frozen=True)
class StepLog:
    """The outside log, one JSON line for each request. Any number of processes may use one file."""

    path: Path

    def receive(self, step: int, key: str) -> str:
        """Write the line of a request, synced to disk, and return what it was: `applied` or `repeated`."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(fd, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            known = any(json.loads(line)["key"] == key for line in file)
            outcome = "repeated" if known else "applied"
            file.write(json.dumps({"step": step, "key": key, "outcome": outcome, "pid": os.getpid()}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return outcome

    def lines(self) -> list[dict[str, Any]]:
        """Return every line, oldest first."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def effects(self) -> list[dict[str, str]]:
        """Tell what was applied, as a world probe does."""
        return [{"key": line["key"], "tool": "step"} for line in self.lines() if line["outcome"] == "applied"]


def ten_steps_agent(log: StepLog, step_s: float) -> Agent:
    """Return the agent over this log."""

    @tool(effect="idempotent")
    async def step(number: int, call: Call) -> str:
        """Write a line, then work."""
        await asyncio.to_thread(log.receive, number, call.idempotency_key)
        await asyncio.sleep(step_s)
        return f"step {number} is done"

    steps = [call("step", {"number": number}) for number in range(1, STEPS + 1)]
    return Agent(AGENT_ID, model=scripted(*steps, say("All ten steps are done.")), tools=(step,), asks=False)


def ten_steps(home: Path, step_s: float = STEP_S) -> Case:
    """Return the experiment, its log in the folder `home`."""
    log = StepLog(home / "outside.jsonl")

    def each_once(evidence: Evidence) -> tuple[Judgement, ...]:
        return (judge_steps([line for line in log.lines() if line["key"].startswith(f"{evidence.task_id}/")]),)

    return Case(
        agent=ten_steps_agent(log, step_s),
        reference="perdure.cli.chaos.ten_steps:agent",
        folder=home,
        messages=("Do the ten steps.",),
        probe=log.effects,
        environment={LOG_VARIABLE: str(log.path), STEP_VARIABLE: str(step_s)},
        claims=each_once,
    )


def judge_steps(lines: list[dict[str, Any]]) -> Judgement:
    """Judge the outside log of one run: every step applied once, whatever was requested how often."""
    applied = Counter(line["step"] for line in lines if line["outcome"] == "applied")
    held = applied == Counter(range(1, STEPS + 1))
    repeated = sum(line["outcome"] == "repeated" for line in lines)
    found = f"{applied.total()} of {STEPS} steps applied, {repeated} requests repeated under their own key"
    return Judgement(
        "steps", "held" if held else "broken", found if held else f"{found}: {dict(sorted(applied.items()))}"
    )


def agent_from(environment: Mapping[str, str]) -> Agent:
    """Return the agent that a worker's environment describes; raises `ConfigurationError` naming the variable."""
    path = environment.get(LOG_VARIABLE)
    if not path:
        raise ConfigurationError(LOG_VARIABLE, "is not set; `perdure chaos --experiment ten-steps` sets it")
    return ten_steps_agent(StepLog(Path(path)), float(environment.get(STEP_VARIABLE) or STEP_S))


def __getattr__(name: str) -> Agent:
    if name != "agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return agent_from(os.environ)
