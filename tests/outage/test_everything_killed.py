"""Everything is killed at one moment, again and again: the next start finishes what was left, with all promises kept.

A moment is drawn, mostly while the task is at work, else from the command's start on. Asked is what holds whatever the
moments were; whether one of them met a call is chance.
"""

import contextlib
import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from perdure.core.ports import StoredEvent
from perdure.store import open_store
from tests.cli.desk import WAIT_S, until
from tests.outage.data_folder import DataFolder
from tests.outage.everything import Command
from tests.temporal.bench import (
    _gapless,
    _one_end_per_run,
    _one_result_per_call,
    entries_of,
    logged,
    results_of,
    rows_of,
)

AGENT = "tests.outage.acting:agent"
KILLS = 20 if os.environ.get("PERDURE_TEST_FULL") == "1" else 6
STEPS = 4

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the processes in /proc"),
]


def run(data: DataFolder, *words: str) -> Command:
    return Command(data.home.parent / "err", data.environment, AGENT, *words)


async def test_the_next_start_finishes_what_was_left(data: DataFolder) -> None:
    seed = int(os.environ.get("PERDURE_TEST_SEED", random.randrange(10_000)))
    print(f"seed {seed}")
    moments = random.Random(seed)
    began_s = time.monotonic()
    undisturbed = run(data, "steps")
    until(lambda: undisturbed.task_id, "the task's start", lambda: undisturbed.err)
    given_s = time.monotonic()
    until(lambda: len(data.outside.all()) == STEPS, "the last effect", lambda: undisturbed.err)
    worked_s = time.monotonic() - given_s + 0.5
    undisturbed.ended(WAIT_S)
    tasks = [undisturbed.task_id]
    for number in range(KILLS):
        command = run(data, "steps")
        if number % 5 == 4:
            moment_s = moments.uniform(0.0, given_s - began_s + worked_s)
        else:
            until(lambda: command.task_id, "the task's start", lambda: command.err)  # noqa: B023 - called here and now
            moment_s = moments.uniform(0.0, worked_s)
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.process.wait(moment_s)  # the moment of chance, unless it is over before
        task_id, before = command.task_id, len(data.outside.all())
        killed = command.kill_all()
        print(f"killed {killed} processes at {moment_s:.2f} s, task {task_id}, {before} effects before")
        again = run(data, "--resume", task_id) if task_id else run(data, "steps")
        again.ended(WAIT_S)
        tasks.append(task_id or again.task_id)
        assert len(await judge(data, str(tasks[-1]))) > 0
    # A start that was not acknowledged may have come through: what it began keeps the promises, too.
    store = await open_store(data.settings.store_url)
    try:
        known = {row.header.task_id for row in await store.tasks(1000)}
    finally:
        await store.close()
    assert set(tasks) <= known
    for key, count in data.outside.keys().items():
        assert count == 1, f"P3: {key} was done {count} times"
    assert {key.split("/")[0] for key in data.outside.keys()} <= known  # noqa: SIM118 - it is a method of ours


async def judge(data: DataFolder, task_id: str) -> list[StoredEvent]:
    """Judge a task that was finished by its log and by the outside's."""
    store = await open_store(data.settings.store_url)
    try:
        stored = await logged(store, task_id)
    finally:
        await store.close()
    rows = [each.event for each in stored]
    _gapless(rows)  # P5, P6
    _one_end_per_run(rows)
    _one_result_per_call(entries_of(stored))
    assert len(rows_of(stored, "message.promoted")) == 1, "P1"
    turns = [row.turn for row in rows_of(stored, "model.answered")]
    assert turns == list(range(1, STEPS + 2)), "P2"
    assert [row.data["end"] for row in rows_of(stored, "run.ended")] == ["answered"]
    results = results_of(stored)
    assert len(results) == STEPS
    for index, result in enumerate(results):
        prefix = f"{task_id}/{index + 1}/0"
        effects = [noted for noted in data.outside.all() if noted.key == prefix or noted.key.startswith(f"{prefix}/")]
        if result.result.status == "ok":
            assert len(effects) == 1, f"P3: {prefix}"
        else:
            assert result.result.tool == "act", "P4: what the outside can tell was not asked"
            assert result.result.status == "unknown", "P4"
            assert len(effects) <= 1, f"P3: {prefix}"
    return stored
