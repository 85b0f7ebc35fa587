"""A20: the whole machine goes down, in order or not, and boots: everything goes on, and no crash is counted.

What there is on the machine is one command and all that descends from it: supervisor, nursery, workers, the embedded
Temporal and its guard. In order means that each of them is told to end at one moment, as an init does it, and that
none knows which of the others are still there.
"""

import contextlib
import os
import signal
from pathlib import Path
from typing import Literal

import pytest

from tests.cli.desk import WAIT_S, until
from tests.outage.conftest import data
from tests.outage.data_folder import DataFolder
from tests.outage.everything import Command, family
from tests.outage.test_everything_killed import judge
from tests.races.booting import GUARD
from tests.supervisor.fleet import is_gone
from tests.temporal.bench import rows_of

__all__ = ["data"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the processes in /proc"),
]

ROUNDS = 5 if os.environ.get("PERDURE_TEST_FULL") == "1" else 1


End = Literal["in_order", "at_once"]


@pytest.mark.parametrize("end", ["in_order", pytest.param("at_once", marks=pytest.mark.full)])
@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_a20_the_machine_goes_down_and_boots(data: DataFolder, end: End, round_: int) -> None:
    await down_and_up(data, end, round_, {})


@pytest.mark.full
async def test_a20_told_as_crashes_the_losses_would_count(data: DataFolder) -> None:
    """With heartbeats that find nothing in time: it is the roster that tells of the dead."""
    with pytest.raises(AssertionError, match="R12: a crash was counted"):
        await down_and_up(data, "at_once", 0, {GUARD: "1", "PERDURE_TEST_HEARTBEAT_S": "60"})


async def down_and_up(data: DataFolder, end: End, effects: int, without: dict[str, str]) -> None:
    command = run(data, without, "steps")
    until(lambda: len(data.outside.all()) > effects % 4, "an effect", lambda: command.err)
    task_id = str(command.task_id)
    if end == "in_order":
        shut_down(command)
    else:
        assert command.kill_all() > 4
    run(data, without, "--resume", task_id).ended(WAIT_S)
    stored = await judge(data, task_id)
    failures = {str(row.data["failure"]) for row in rows_of(stored, "tool.failed") + rows_of(stored, "model.failed")}
    assert "worker_died" not in failures, "R12: a crash was counted, and nobody crashed"
    assert len(data.outside.keys()) == sum(data.outside.keys().values()), "P3"


def run(data: DataFolder, without: dict[str, str], *words: str) -> Command:
    return Command(data.home.parent / "err", {**data.environment, **without}, "tests.races.booting:agent", *words)


def shut_down(command: Command) -> None:
    """Tell every process to end at one moment; all are gone within the bound, and none had to be killed."""
    pids = family(command.process.pid)
    assert len(pids) > 4
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    assert command.process.wait(WAIT_S) == 128 + signal.SIGTERM, command.err
    until(lambda: all(is_gone(pid) for pid in pids), "they are gone", lambda: f"{pids} {command.err}")
