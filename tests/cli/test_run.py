"""`perdure run` to the end, with real processes: answers, questions, refusals, a killed worker."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.desk import COMMAND, WAIT_S, Desk, is_running


@pytest.mark.slow
def test_a_question_that_nobody_answers_is_left_and_answered_later_on_a_terminal(desk: Desk) -> None:
    left = desk.perdure("run", "helpdesk:agent", "ask", "--json")
    assert left.code == 1
    assert [event["number"] for event in left.objects[:-1]] == list(range(1, len(left.objects)))
    assert [event["data"]["text"] for event in left.objects[:-1] if event["kind"] == "help.requested"]
    task_id = left.outcome["task_id"]
    assert left.outcome["outcome"] == "waiting"
    assert (left.outcome["state"], left.outcome["exit_code"]) == ("input_required", 1)
    assert f"perdure run --resume {task_id}" in left.err

    shown = desk.here("show", task_id)
    assert shown.code == 0
    assert "INPUT_REQUIRED (help)" in shown.out
    assert "for a person's answer to 'Refund or" in shown.out
    assert "\x1b" not in shown.out, "what a model wrote must not reach the terminal as a command to it"

    code, screen = _on_a_terminal(desk, ["run", "--resume", task_id], "Your answer", "a replacement")
    assert code == 0
    assert "COMPLETED" in screen
    assert "answer: a replacement" in screen
    assert "Refund or \ufffd[31mreplacement?" in screen

    over = desk.here("run", "--resume", task_id)
    assert over.code == 0
    assert over.out.endswith("\nanswer: a replacement\n")
    assert "worker" not in over.err, "nothing needs to run for a task that has ended"
    closed = desk.here("run", "helpdesk:agent", "more", "--resume", task_id)
    assert closed.code == 2
    assert "is completed; start a new task" in closed.err


def _on_a_terminal(desk: Desk, words: list[str], prompt: str, answer: str) -> tuple[int, str]:
    """Run with a terminal as standard input, output and error; type the answer when the prompt is there."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=desk.folder, env=desk.environment, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    screen, typed, deadline_s = b"", False, time.monotonic() + WAIT_S
    try:
        while time.monotonic() < deadline_s:
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(master, 65536)
            except OSError:  # the other side has closed
                break
            if not data:
                break
            screen += data
            if not typed and prompt.encode() in screen:
                os.write(master, f"\n{answer}\n".encode())  # an empty line is asked again
                typed = True
        return process.wait(WAIT_S), screen.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.slow
def test_a_failed_run_exits_1_with_the_reason_and_the_next_message_goes_on(desk: Desk) -> None:
    failed = desk.perdure("run", "helpdesk:agent", "fail", "--json")
    assert failed.code == 1
    assert failed.outcome["outcome"] == "unanswered"
    assert failed.outcome["reason"] == "model"
    task_id = failed.outcome["task_id"]
    assert f"error: task {task_id} is input_required without an answer (model): " in failed.err
    assert "the provider says no" in failed.err

    other = desk.perdure("run", "helpdesk:other", "--resume", task_id)
    assert other.code == 2
    assert "belongs to agent 'helpdesk', not to 'other'" in other.err

    on = desk.perdure("run", "helpdesk:agent", "go on", "--resume", task_id, "--json")
    assert (on.code, on.outcome["outcome"], on.outcome["task_id"]) == (0, "answered", task_id)


@pytest.mark.slow
def test_a_model_that_cannot_work_is_refused_before_anything_is_changed(desk: Desk) -> None:
    refused = desk.perdure("run", "helpdesk:no_key", "hi")
    assert (refused.code, refused.out) == (2, "")
    assert "nowhere" in refused.err.splitlines()[-1]
    assert refused.err.splitlines()[-1].startswith("error: ")
    assert desk.here("tasks", "--json").out == ""


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_the_task_goes_on(desk: Desk) -> None:
    desk.hold.touch()
    with desk.started("run", "helpdesk:agent", "ship", "--json") as run:
        run.until(lambda: desk.world_lines("begun"), "the tool's begin")
        first = int(desk.world_lines("begun")[0][2])
        run.until(lambda: first in run.worker_pids, "its name")
        os.kill(first, signal.SIGKILL)
        run.until(lambda: len(desk.world_lines("begun")) == 2, "its second begin")
        desk.hold.unlink()
        done = run.ended()
    assert done.code == 0
    assert f"worker {first} was killed (SIGKILL); another one is started" in done.err
    assert f"worker {first}: attempts that begin again elsewhere: 1" in done.err
    assert "WARN" not in done.err, "what the SDK logs belongs in the workers' log"
    assert "worker_died" in done.out
    (key, attempt, pid), again = desk.world_lines("begun")
    assert again[:2] == [key, "2"]
    assert attempt == "1"
    assert again[2] != pid
    assert desk.world_lines("shipped") == [[key]]
    log = desk.home / "worker.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "tools print too" in log.read_text()
    shown = desk.here("show", "--json", done.task_id).objects[0]
    tries = [(row["attempt"], row["outcome"]) for row in shown["attempts"] if row["activity"] == "invoke_tool"]
    assert tries == [(1, "failed"), (2, "completed")]
    workers = [row["worker"] for row in shown["attempts"] if row["activity"] == "invoke_tool"]
    assert [int(worker.partition("@")[0]) for worker in workers] == [int(pid), int(again[2])]
    (effect,) = shown["effects"]
    assert (effect["key"], effect["outcome"], len(effect["begun"])) == (key, "done", 2)
    assert not is_running(int(again[2])), "the worker ends with the command"


@pytest.mark.slow
def test_the_first_agent_runs_as_it_is(desk: Desk) -> None:
    script = (str(Path(COMMAND[0]).with_name("perdure")),)
    made = desk.perdure("init", "first", command=script)
    assert made.code == 0
    assert "cd first && perdure run agent.toml" in made.out
    agent = desk.folder / "first" / "agent.toml"
    before = agent.read_text()
    again = desk.perdure("init", "first")
    assert again.code == 2
    assert "first/agent.toml exists already" in again.err
    assert agent.read_text() == before
    done = desk.beside("first").perdure("run", "agent.toml", "Where is my order A-1?", command=script)
    assert done.code == 0
    assert "a blender, delivered on Monday" in done.out
    listed = desk.here("tasks", "--json")
    assert [json.loads(line)["agent"] for line in listed.out.splitlines()] == ["first"]
