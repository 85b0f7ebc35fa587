"""The demo's agent, everything killed at once at twenty random moments: each time the next start finishes it.

The shop is the outside world, and its own log is the judge: every call of a task came through once, under one key, and
one replacement was shipped. The customer answers on the command's standard input, of each start anew.
"""

import contextlib
import os
import random
import subprocess
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import pytest

from perdure.app.events import TaskEvent
from perdure.app.judging import broken_promises
from perdure.cli.demo.agent import REFERENCE, WORLD_VARIABLE
from perdure.cli.demo.script import ANSWER, COMPLAINT, CONVERSATION
from perdure.cli.demo.world import World
from perdure.cli.reading import read_log
from tests.cli.desk import until
from tests.kept import keep
from tests.outage.data_folder import DataFolder
from tests.outage.everything import Command

KILLS = 20
FROM_THE_START_EVERY = 5
"""Every fifth moment is drawn from the command's start on, the others from the task's."""

WITHIN_S = 120.0
"""An attempt that Temporal counts as begun, and no worker got, is waited for until its heartbeat is missed: 30 s."""

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the processes in /proc"),
]


@dataclass(frozen=True)
class Killed:
    """One kill of everything: when, how many processes, and how long the next start took to finish the task."""

    moment_s: float
    processes: int
    task_id: str
    acknowledged: bool
    finished_s: float


class Desk:
    """The demo's shop, and `perdure run` for its agent over one data folder."""

    def __init__(self, data: DataFolder) -> None:
        self.data = data
        self.world = World.create(data.home.parent / "world.db", date.today())  # noqa: DTZ011 - the world's day
        self._environment = {**data.environment, WORLD_VARIABLE: str(self.world.path)}

    def run(self, *words: str) -> Command:
        log = self.data.home.parent / "err"
        return Command(log, self._environment, REFERENCE, *words, said=f"{ANSWER}\n")

    def finish(self, command: Command) -> str:
        """Wait until the command has ended; return its task."""
        command.ended(WITHIN_S)
        assert command.task_id is not None
        return command.task_id


async def test_whatever_the_moment_the_next_start_finishes_the_demo(data: DataFolder) -> None:
    seed = int(os.environ.get("PERDURE_TEST_SEED", random.randrange(10_000)))
    print(f"seed {seed}")
    moments, desk = random.Random(seed), Desk(data)
    began_s = time.monotonic()
    undisturbed = desk.run(COMPLAINT)
    until(lambda: undisturbed.task_id, "the task's start", lambda: undisturbed.err)
    given_s = time.monotonic()
    until(lambda: shipped(desk.world), "the replacement", lambda: undisturbed.err)
    worked_s = time.monotonic() - given_s + 0.5
    await judge(desk, desk.finish(undisturbed))
    kills = []
    for number in range(1, KILLS + 1):
        command = desk.run(COMPLAINT)
        if number % FROM_THE_START_EVERY:
            until(lambda: command.task_id, "the task's start", lambda: command.err)  # noqa: B023 - called here and now
            moment_s = moments.uniform(0.0, worked_s)
        else:
            moment_s = moments.uniform(0.0, given_s - began_s + worked_s)
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.process.wait(moment_s)  # the moment of chance, unless it is over before
        processes, given = command.kill_all(), command.task_id
        killed_s = time.monotonic()
        again = desk.run("--resume", given) if given else desk.run(COMPLAINT)
        task_id = given or desk.finish(again)
        again.ended(WITHIN_S)
        kills.append(Killed(round(moment_s, 2), processes, task_id, bool(given), round(time.monotonic() - killed_s, 2)))
        print(kills[-1])
        await judge(desk, task_id)
    repeated = {key: count for key, count in shipped(desk.world).items() if count > 1}
    assert not repeated, f"P3: {repeated}"
    keep("demo-killed", {"seed": seed, "kills": [asdict(kill) for kill in kills], "broken": []})


def shipped(world: World) -> Counter[str]:
    """Return how often a replacement was shipped for each call, whatever its keys."""
    calls = [call for call in world.calls() if call.tool == "ship_replacement" and call.outcome == "applied"]
    return Counter("/".join(call.key.split("/")[:3]) for call in calls)


async def judge(desk: Desk, task_id: str) -> None:
    """Judge a task that was finished by its records and by the shop's."""
    log = await read_log(desk.data.settings, task_id)
    assert broken_promises(log.events, log.effects) == ()
    assert (log.row.state, log.row.reason) == ("completed", ""), task_id
    assert len(of(log.events, "message.promoted")) == 1, "P1"
    assert [event.turn for event in of(log.events, "model.answered")] == list(range(1, len(CONVERSATION) + 1)), "P2"
    assert [event.data["end"] for event in of(log.events, "run.ended")] == ["answered"], "P5"
    assert of(log.events, "tool.in_doubt") == [], "P4: the shop can tell, and was not asked"
    assert {effect.status for effect in log.effects if effect.outcome == "done"} == {"ok"}, "P4"
    calls = {call: count for call, count in shipped(desk.world).items() if call.startswith(f"{task_id}/")}
    assert list(calls.values()) == [1], f"P3: {calls}"


def of(events: tuple[TaskEvent, ...], kind: str) -> list[TaskEvent]:
    return [event for event in events if event.kind == kind]
