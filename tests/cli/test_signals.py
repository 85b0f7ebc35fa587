"""`perdure run` is ended in every way in the middle of its work; the task is kept, and what it did is not repeated."""

import contextlib
import os
import re
import signal
from typing import Any

import pytest

from tests.cli.desk import Desk, Started, is_running, until
from tests.outage.everything import family

pytestmark = pytest.mark.slow


def _in_the_tool(desk: Desk, run: Started) -> None:
    run.until(lambda: desk.world_lines("begun"), "the tool's begin")


def test_killed_in_the_middle_of_a_tool_it_is_finished_by_resume(desk: Desk) -> None:
    desk.hold.touch()
    with desk.started("run", "helpdesk:agent", "ship") as run:
        _in_the_tool(desk, run)
        assert run.end(signal.SIGKILL).code == -signal.SIGKILL
        task_id, workers = run.task_id, run.worker_pids
        opened = desk.here("show", "--json", task_id).objects[0]
        assert opened["sources"] == "store"
        assert [wait["kind"] for wait in opened["waits"]] == ["attempt"]
        assert desk.here("tasks").out.count("WORKING") == 1
        desk.hold.unlink()
        done = desk.perdure("run", "--resume", task_id, "--json")
        until(lambda: not any(map(is_running, workers)), "the end of the orphaned workers")
    assert (done.code, done.outcome["outcome"]) == (0, "answered")
    assert done.outcome["answer"] == "answer: tracking 77"
    assert [event["number"] for event in done.objects[:-1]] == list(range(1, len(done.objects)))
    keys = {key for key, *_ in desk.world_lines("begun")}
    assert len(keys) == 1, "one key, however often it began"
    assert {key for (key,) in desk.world_lines("shipped")} == keys


def test_killed_with_all_that_it_started_it_is_finished_by_a_worker(desk: Desk) -> None:
    """The process of `perdure run` with its workers and its Temporal; judged by the world's log."""
    desk.hold.touch()
    with desk.started("run", "helpdesk:agent", "ship") as run:
        _in_the_tool(desk, run)
        run.until(lambda: run.worker_pids, "the workers are named")
        everything = family(run.process.pid)
        assert run.end(signal.SIGKILL).code == -signal.SIGKILL
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        task_id = run.task_id
    until(lambda: not any(map(is_running, everything)), "the end of all that it started")
    assert desk.world_lines("shipped") == []
    with desk.beside("later").started("worker", "helpdesk:agent") as worker:
        worker.until(lambda: desk.world_lines("shipped"), "the call's end")
        worker.until(lambda: "COMPLETED" in desk.here("tasks").out, "the task's end")
        joined = desk.here("show", "--json", task_id).objects[0]
        done = worker.end(signal.SIGTERM)
    assert done.code == 143, done.err
    (key,) = {key for key, *_ in desk.world_lines("begun")}
    assert len(desk.world_lines("begun")) > 1, "the cut call began again"
    assert desk.world_lines("shipped") == [[key]], "it was shipped once"
    shown = desk.here("show", "--json", task_id).objects[0]
    assert shown["task"]["state"] == "completed"
    assert [event["number"] for event in shown["events"]] == list(range(1, len(shown["events"]) + 1))
    assert (joined["sources"], shown["sources"]) == ("store and Temporal", "store")
    assert _tries(joined) == _tries(shown), "history and log tell another story of the attempt that was cut"


@pytest.mark.parametrize("words", [("worker", "helpdesk:agent"), ("serve", "helpdesk:agent", "--port", "0")])
def test_ctrl_c_ends_what_runs_until_it_is_ended_with_130(desk: Desk, words: tuple[str, ...]) -> None:
    """With 143 after SIGTERM: the worker above, and the server in `tests/a2a/test_served.py`."""
    with desk.started(*words) as command:
        command.until(lambda: "works for" in command.out or "is served at" in command.out, "it is ready")
        done = command.end(signal.SIGINT)
    assert (done.code, done.err) == (130, "")


def test_sigterm_lets_the_tool_end_exits_143_and_keeps_the_task(desk: Desk) -> None:
    desk.hold.touch()
    with desk.started("run", "helpdesk:agent", "ship", "--json") as run:
        _in_the_tool(desk, run)
        _is_shown(desk, run)
        run.process.send_signal(signal.SIGTERM)
        run.until(lambda: "SIGTERM; the worker lets begun calls end" in run.err, "its word")
        desk.hold.unlink()
        done = run.ended()
    assert done.code == 143
    assert f"task {done.task_id} is kept; go on with: perdure run --resume {done.task_id}" in done.err
    assert (done.outcome["outcome"], done.outcome["exit_code"]) == ("interrupted", 143)
    assert len(desk.world_lines("shipped")) == 1, "a begun call ends before its worker does"
    on = desk.perdure("run", "--resume", done.task_id)
    assert on.code == 0
    assert len(desk.world_lines("begun")) == len(desk.world_lines("shipped")) == 1


def _tries(shown: dict[str, Any]) -> list[tuple[object, ...]]:
    """Return the attempts at calls; store writes stand in Temporal's history alone."""
    return [(row["attempt"], row["outcome"], row["worker"]) for row in shown["attempts"] if row["turn"]]


def _is_shown(desk: Desk, run: Started) -> None:
    """While it runs, another command joins its Temporal and tells until when the attempt may take."""
    opened = desk.here("show", "--json", run.task_id).objects[0]
    assert opened["sources"] == "store and Temporal"
    (wait,) = opened["waits"]
    assert wait["kind"] == "attempt"
    assert wait["until_ms"] - wait["since_ms"] >= 299_000
    assert int(wait["worker"].partition("@")[0]) in run.worker_pids
    assert "waits    ship (turn 1, call 0): attempt 1 is under way by" in desk.here("show", run.task_id).out


def test_ctrl_c_at_a_question_exits_130_and_a_second_one_ends_at_once(desk: Desk) -> None:
    with desk.started("run", "helpdesk:agent", "ask") as run:
        run.until(lambda: "INPUT_REQUIRED" in run.out, "the question")
        done = run.end(signal.SIGINT)
        assert done.code == 130
        assert f"perdure run --resume {done.task_id}" in done.err
    answered = desk.perdure("run", "--resume", done.task_id, stdin="\na refund\n")
    assert answered.code == 0
    assert answered.out.endswith("\n\nanswer: a refund\n")
    times = [float(time_s) for time_s in re.findall(r"^ *\+(\d+\.\d+)s  ", answered.out, re.MULTILINE)]
    assert len(times) > 10
    assert times == sorted(times)
    desk.hold.touch()
    with desk.started("run", "helpdesk:agent", "ship") as run:
        _in_the_tool(desk, run)
        worker = int(desk.world_lines("begun")[-1][2])
        run.process.send_signal(signal.SIGINT)
        run.until(lambda: "again to end at once" in run.err, "its word")
        assert is_running(worker)
        assert run.end(signal.SIGINT).code == -signal.SIGINT, "the shell shows 130"


def test_a_command_that_had_joined_says_so_when_its_temporal_ends(desk: Desk) -> None:
    desk.hold.touch()
    with desk.started("run", "helpdesk:agent", "ship") as owner:
        _in_the_tool(desk, owner)
        joined_desk = desk.beside("joined")
        with joined_desk.started("run", "helpdesk:agent", "ask") as joined:
            joined.until(lambda: "INPUT_REQUIRED" in joined.out, "the question")
            owner.end(signal.SIGKILL)
            desk.hold.unlink()
            done = joined.ended()
    assert done.code == 1
    assert f"error: the embedded Temporal has ended with process {owner.process.pid}" in done.err
    assert f"perdure run --resume {done.task_id}" in done.err
    assert desk.perdure("run", "--resume", done.task_id, stdin="a refund\n").code == 0
