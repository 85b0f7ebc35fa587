"""The README's promises about itself: every command and every example in it runs."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import JsonValue

from perdure import Call, Check
from perdure.tools.handing_over import handed_over
from tests.models.wire import Said, serving
from tests.requirements import REQUIREMENTS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines() if line.strip()]


def run(command: str, folder: Path, home: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PERDURE_HOME": str(home), "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def test_every_command_is_one_of_those_run_here() -> None:
    assert commands() == [
        "sh scripts/demo",  # test_the_demo_from_a_fresh_clone
        "sh scripts/test",  # what `.ci/run` calls
        "perdure init shop",  # test_the_shell_commands, and so on
        "cd shop",
        'perdure run agent.toml "What can you do?"',
        "perdure tasks",
        "perdure show TASK",
        'perdure send http://127.0.0.1:8000 "Where is my order A-1?"',  # test_the_client_commands
        "perdure tasks http://127.0.0.1:8000",
        "perdure watch http://127.0.0.1:8000 TASK",
        'perdure chaos agent.toml "What can you do?" --every 0.5-1',  # test_the_chaos_commands
        "perdure chaos --experiment ten-steps --step-s 0.5 --every 0.5-1",
    ]


def test_the_checks_run_the_test_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "sh scripts/test" in lines


PROVED = re.findall(r"^\| \*\*(P\d+)\*\* \| .* \| (.*) \| (.*) \|$", README, flags=re.MULTILINE)
KILLS = re.compile(r"kill\(|SIGKILL|PERDURE_FAULT|@dies|Fleet\(|Arena|soaked\(")
"""What kills processes, or is what does it for several tests."""


def test_the_promises_are_those_that_are_tested() -> None:
    assert [number for number, _, _ in PROVED] == [f"P{i}" for i in range(1, 12)]
    for number, _, cell in PROVED:
        named = re.findall(r"`([^`]+)`", cell)
        unproved = set(named) - {test.partition("::")[2] for test in REQUIREMENTS[number].tests}
        assert named
        assert not unproved, f"{number}: {sorted(unproved)} is not in tests/requirements.py"


def test_what_is_said_to_be_proved_by_kills_is_proved_by_tests_that_kill_processes() -> None:
    unkilled = [number for number, judge, _ in PROVED if judge.endswith("without a kill")]
    assert unkilled == [number for number, row in REQUIREMENTS.items() if row.unkilled]
    assert f"{' and '.join(unkilled)} are not proved by kills" in README
    for number, _, cell in PROVED:
        for test in REQUIREMENTS[number].tests:
            path, _, name = test.partition("::")
            if f"`{name}`" in cell and number not in unkilled:
                text = (ROOT / "tests" / path).read_text(encoding="utf-8")
                assert KILLS.search(text), f"{number}: {path} kills nothing"
                assert "pytest.mark.slow" in text, f"{number}: {path} runs no processes"


@pytest.mark.slow
def test_the_shell_commands(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run("perdure init shop", tmp_path, home)
    shop = tmp_path / "shop"
    assert run('perdure run agent.toml "What can you do?"', shop, home).stdout.strip()
    assert run("perdure tasks", shop, home).stdout.strip()
    listed = run("perdure tasks --json", shop, home).stdout.splitlines()
    task_id = json.loads(listed[0])["task_id"]
    assert "invoke_llm" in run(f"perdure show {task_id}", shop, home).stdout


@pytest.mark.slow
def test_the_client_commands(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run("perdure init shop", tmp_path, home)
    send, tasks, watch = (command for command in commands() if "http://" in command)
    environment = {**os.environ, "PERDURE_HOME": str(home)}
    serve = [str(SCRIPTS / "perdure"), "serve", "agent.toml", "--port", "0"]
    with subprocess.Popen(serve, cwd=tmp_path / "shop", env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            sent = run(send.replace("http://127.0.0.1:8000", url), tmp_path, home)
            assert "Your order is a blender" in sent.stdout.splitlines()[-1]
            task_id = sent.stderr.split()[-1]
            assert task_id in run(tasks.replace("http://127.0.0.1:8000", url), tmp_path, home).stdout
            watched = run(watch.replace("http://127.0.0.1:8000", url).replace("TASK", task_id), tmp_path, home)
            assert watched.stdout == sent.stdout
        finally:
            server.terminate()


@pytest.mark.slow
def test_the_chaos_commands(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run("perdure init shop", tmp_path, home)
    chaos = [command for command in commands() if command.startswith("perdure chaos")]
    told = [run(command, tmp_path / "shop", home).stdout for command in chaos]
    assert len(told) == 2
    assert all("broken: none" in text for text in told)
    assert not list((home / "chaos").iterdir()), "what is not kept is removed"


@pytest.mark.slow
def test_the_agent_in_python(tmp_path: Path) -> None:
    program = blocks("python")[0]
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    with serving() as wire:
        wire.prepare(
            Said(calls=(("c1", "get_order", '{"order_id": "A-1001"}'),)),
            Said(calls=(("c2", "ask_participant", '{"question": "Refund 79.00?"}'),)),
            Said(calls=(("c3", "refund", '{"order_id": "A-1001", "amount": 79.0}'),)),
            Said(text="Your 79.00 are on their way."),
        )
        done = subprocess.run(
            [sys.executable, "shop.py"],
            cwd=tmp_path,
            input="yes\n",
            env={
                **os.environ,
                "PERDURE_HOME": str(tmp_path / "home"),
                "OPENAI_API_KEY": "none-is-needed",
                "OPENAI_BASE_URL": f"{wire.url}/v1",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Your 79.00 are on their way."
    assert "refunded 79.0 for A-1001" in done.stdout


async def test_the_guarded_refund(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = ModuleType("guarded")
    exec(blocks("python")[1], program.__dict__)
    arguments: dict[str, JsonValue] = {"order_id": "A-1001", "amount": 79.0}
    call = Call(idempotency_key="t/1/0", attempt=1, task_id="t", tool="refund")
    for _ in range(2):
        assert await program.refund.invoke(arguments, call) == {"refunded": 79.0}
    assert await program.refund.check(call) == Check.happened({"refunded": 79.0})
    with closing(sqlite3.connect("shop.db")) as connection:
        assert connection.execute("SELECT * FROM refunds").fetchall() == [("A-1001", 79.0)]


def test_the_sources_of_tools() -> None:
    program = ModuleType("shop")
    exec(blocks("python")[2], program.__dict__)
    agent = program.__dict__["agent"]
    assert [source.name for source in agent.tools] == ["orders", "shipping"]
    assert len(agent.models) == 2


async def test_the_receipt_that_is_handed_over() -> None:
    program = ModuleType("receipts")
    exec(blocks("python")[3], program.__dict__)
    call = Call(idempotency_key="t/1/0", attempt=1, task_id="t", tool="receipt")
    given, told = handed_over(await program.receipt.invoke({"order_id": "A-1001"}, call))
    assert given is not None
    assert told == "Handed over to whoever asked: receipt (A-1001.txt, text/plain)."


@pytest.mark.slow
def test_the_chaos_fixture(tmp_path: Path) -> None:
    shop, test = blocks("python")[1], blocks("python")[4]
    (tmp_path / "shop.py").write_text(shop, encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(test, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n", encoding="utf-8"
    )
    with serving() as wire:
        wire.prepare(
            Said(calls=(("c1", "refund", '{"order_id": "A-1001", "amount": 79.0}'),)),
            Said(text="Your 79.00 are on their way."),
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PERDURE_HOME": str(tmp_path / "home"),
                "OPENAI_API_KEY": "none-is-needed",
                "OPENAI_BASE_URL": f"{wire.url}/v1",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "1 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is needed to clone")
def test_the_demo_from_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    environment = {key: value for key, value in os.environ.items() if key not in {"VENV", "VIRTUAL_ENV"}}
    done = subprocess.run(
        ["sh", "scripts/demo"],
        cwd=clone,
        env={**environment, "PERDURE_HOME": str(tmp_path / "home"), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
