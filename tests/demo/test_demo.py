"""The demo itself, as real processes; its world is opened and counted here, past all of its own code."""

import asyncio
import json
import os
import pty
import signal
import sqlite3
import sys
import termios
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perdure.cli.main import run_command
from tests.models.wire import Said, serving

WITHIN_S = 120.0
"""The demo gives itself 60 s; what is left is for the process to start and end."""


@dataclass
class Played:
    """A demo that has ended."""

    status: int
    lines: list[str]
    errors: str

    @property
    def verdict(self) -> dict[str, Any]:
        last: dict[str, Any] = json.loads(self.lines[-1])
        assert last["event"] == "verdict", self.errors
        return last

    @property
    def broken(self) -> list[str]:
        return [judgement["claim"] for judgement in self.verdict["judgements"] if not judgement["held"]]


@asynccontextmanager
async def started(
    home: Path, *options: str, stdin: int = asyncio.subprocess.DEVNULL, by: tuple[str, ...] = ()
) -> AsyncIterator[Any]:
    process = await asyncio.create_subprocess_exec(
        *(*by, sys.executable, "-m", "perdure.cli.main", "demo", "--home", str(home), *options),
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**20,
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def played(home: Path, *options: str) -> Played:
    async with started(home, *options) as process:
        output, errors = await process.communicate()
        return Played(process.returncode, output.decode().splitlines(), errors.decode())


def rows(world: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{world.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def table(lines: list[str], title: str) -> list[list[str]]:
    """Return the words of a table's headings and rows."""
    (at,) = [place for place, line in enumerate(lines) if line.startswith(title)]
    found = []
    for line in lines[at + 1 :]:
        if line.strip(" ─"):
            found.append(line.split())
        elif len(found) > 1:
            break
    return found


def worlds_under(home: Path) -> list[Path]:
    return list(home.glob("demo/run-*/world.db"))


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.slow
async def test_killed_twice_the_customer_gets_one_replacement(tmp_path: Path) -> None:
    done = await played(tmp_path)
    assert done.status == 0, (done.lines, done.errors)
    worlds = worlds_under(tmp_path)
    assert len(worlds) == 1

    calls = rows(worlds[0], "SELECT tool, key, outcome FROM calls ORDER BY number")
    tools = Counter(tool for tool, _, _ in calls)
    assert tools == {"list_open_orders": 1, "get_order": 2, "look_up_policy": 3, "ship_replacement": 1}
    assert len({key for tool, key, _ in calls if tool == "get_order"}) == 1
    assert rows(worlds[0], "SELECT count(*) FROM refunds") == [(0,)]
    ((order, tracking_number),) = rows(worlds[0], "SELECT order_id, tracking_number FROM shipments")
    assert order == "A-1001"
    assert rows(worlds[0], "SELECT status FROM orders WHERE order_id = 'A-1002'") == [("in transit",)]

    assert "scripted" in done.lines[0]
    assert sum("✖" in line and "SIGKILL while" in line for line in done.lines) == 2
    assert any(tracking_number in line and "agent:" in line for line in done.lines)
    attempts, effects = table(done.lines, "Attempts per activity"), table(done.lines, "Effects, from the ledger")
    assert attempts[0] == ["turn", "activity", "scheduled", "completed", "timed", "out", "failed", "worker"]
    (get_order,) = [row for row in attempts if row[1:3] == ["invoke_tool", "get_order"]]
    assert get_order[:6] == ["2", "invoke_tool", "get_order", "2", "1", "1"]
    assert len(get_order) == 8, "on two workers"
    assert {row[0] for row in attempts[1:]} >= {"intake", "emit_event", "persist"}
    assert effects[0] == ["key", "tool", "class", "begun", "by", "worker", "outcome", "world's", "calls"]
    assert [(*row[:3], *row[-2:]) for row in effects[1:]] == [
        ("/1/0", "list_open_orders", "read", "done", "1"),
        ("/2/0", "get_order", "idempotent", "done", "2"),
        ("/3/0", "look_up_policy", "read", "done", "1"),
        ("/3/1", "look_up_policy", "read", "done", "1"),
        ("/3/2", "look_up_policy", "read", "done", "1"),
        ("/5/0", "ship_replacement", "once", "done", "1"),
    ]
    assert [len(row[3:-2]) for row in effects[1:]] == [1, 2, 1, 1, 1, 1], "workers that began it"
    last = done.lines[done.lines.index(next(line for line in done.lines if line.startswith("Judged"))) + 1 :]
    assert last[-1] == f"All {len(last) - 1} held."
    for claim in (
        "per turn (1 to 6) invoke_llm was scheduled once and completed once",
        "get_order was begun twice with one key",
        "the killed worker's call was scheduled again within 1000 ms",
        "ship_replacement was begun once",
        "A-1002, is untouched; refund was never called",
        "SUBMITTED → WORKING → INPUT_REQUIRED → WORKING → COMPLETED",
        "event numbers 1 to 38, without gap or duplicate",
        "agree on all 13 attempts",
        "killed with SIGKILL twice",
    ):
        assert sum(claim in line and " held " in line for line in last) == 1, claim
    assert {line.split()[0] for line in last[:-1]} == {"P1", "P2", "P3", "P4", "P5", "P6", "P8", "P10", "kill", "log"}


@pytest.mark.slow
async def test_killed_only_while_waiting_every_activity_has_one_attempt(tmp_path: Path) -> None:
    done = await played(tmp_path, "--kill", "waiting", "--json")
    assert done.status == 0, (done.lines, done.errors)
    verdict = done.verdict
    assert verdict["held"]
    assert done.broken == []
    lines = [json.loads(line) for line in done.lines]
    (killed,) = [line for line in lines if line["event"] == "worker.killed"]
    started_pids = [line["pid"] for line in lines if line["event"] == "worker.started"]
    assert killed["pid"] in started_pids
    assert len(started_pids) >= 4, "a worker, its standby and two for suspects"
    assert all(is_gone(pid) for pid in started_pids)
    numbers = [line["number"] for line in lines if "number" in line]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {row["outcome"] for row in verdict["attempts"]} == {"completed"}
    assert {row["attempt"] for row in verdict["attempts"]} == {1}
    served = [row["worker"].partition("@")[0] for row in verdict["attempts"] if row["turn"] >= 5]
    assert set(served) <= {str(pid) for pid in started_pids} - {str(killed["pid"])}
    assert rows(Path(verdict["world"]), "SELECT count(*) FROM calls WHERE tool = 'get_order'") == [(1,)]


@pytest.mark.slow
async def test_a_world_that_was_tampered_with_breaks_the_verdict(tmp_path: Path) -> None:
    first = await played(tmp_path, "--kill", "waiting", "--json")
    assert first.status == 0, first.errors
    folder, world = first.verdict["folder"], Path(first.verdict["world"])

    untouched = await played(tmp_path, "--judge", folder, "--json")
    assert (untouched.status, untouched.verdict["judgements"]) == (0, first.verdict["judgements"])

    with closing(sqlite3.connect(world)) as connection:
        connection.execute(
            "INSERT INTO shipments (order_id, item, address, tracking_number) "
            "SELECT order_id, item, address, 'TRK-2' FROM shipments"
        )
        connection.commit()
    tampered = await played(tmp_path, "--judge", folder, "--json")
    assert tampered.status == 1
    assert not tampered.verdict["held"]
    assert any("ship_replacement was begun once" in claim for claim in tampered.broken)
    shown = await played(tmp_path, "--judge", folder)
    assert shown.status == 1
    assert shown.lines[-1].endswith("did not hold.")
    assert any("BROKEN" in line for line in shown.lines)


@pytest.mark.slow
async def test_by_hand_the_user_kills_and_types_the_answer(tmp_path: Path) -> None:
    terminal, stdin = pty.openpty()
    settings = termios.tcgetattr(stdin)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(stdin, termios.TCSANOW, settings)
    try:
        async with started(tmp_path, "--by-hand", "--json", stdin=stdin) as process:
            lines: list[str] = []
            async for raw in process.stdout:
                lines.append(raw.decode())
                line = json.loads(raw)
                if line["event"] == "worker.kill_me":
                    assert f"kill -9 {line['pid']}" in line["text"]
                    os.kill(line["pid"], signal.SIGKILL)
                elif line["event"] == "note" and "Your answer" in line["text"]:
                    os.write(terminal, b"A replacement to 1 Elm Street, Lima\n")
            errors = (await process.stderr.read()).decode()
            done = Played(await process.wait(), lines, errors)
    finally:
        os.close(terminal)
        os.close(stdin)
    assert done.status == 0, (done.lines, done.errors)
    assert sum(json.loads(line)["event"] == "worker.killed" for line in lines) == 2
    world = Path(done.verdict["world"])
    assert rows(world, "SELECT address FROM shipments") == [("1 Elm Street, Lima",)]
    assert rows(world, "SELECT count(*) FROM calls WHERE tool = 'get_order'") == [(2,)]


def asks(tool: str, **arguments: str) -> Said:
    return Said(calls=((f"call_{tool}", tool, json.dumps(arguments)),))


@pytest.mark.slow
async def test_a_real_model_is_judged_by_what_does_not_depend_on_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{wire.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test-0123456789")
        wire.prepare(
            asks("get_order", order_id="A-1001"),
            asks("ask_participant", question="Refund or replacement?"),
            asks("ask_participant", question="And where to?"),
            asks("ship_replacement", order_id="A-1001", address="1 Elm Street"),
            asks("get_order", order_id="A-1002"),
            Said(text="It is on its way."),
        )
        done = await played(tmp_path, "--model", "openai-chat:gpt-4.1", "--json")
        assert done.status == 0, (done.lines, done.errors)
        assert len(wire.received) == 6
        assert "openai-chat:gpt-4.1" in json.loads(done.lines[0])["text"]
        claims = [judgement["claim"] for judgement in done.verdict["judgements"]]
        assert any("get_order was begun twice with one key" in claim for claim in claims)
        assert not any("refund was never called" in claim for claim in claims)

        wire.prepare(Said(text="I cannot help with that."))
        idle = await played(tmp_path, "--model", "openai-chat:gpt-4.1", "--json")
        assert idle.status == 0, (idle.lines, idle.errors)
        assert not any("SIGKILL" in judgement["claim"] for judgement in idle.verdict["judgements"])

        refused = await played(tmp_path, "--model", "openai-chat:gpt-4.1", "--json")
        assert refused.status == 1
        assert refused.broken == ["the task completed"]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_interrupted_it_leaves_no_worker_behind(number: signal.Signals, status: int, tmp_path: Path) -> None:
    """Also as a script's background job, to which shells give a SIGINT that is ignored."""
    background = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    async with started(tmp_path, "--by-hand", "--json", by=background) as process:
        pid = 0
        async for raw in process.stdout:
            print(raw.decode(), end="")  # where it stood, should it not end
            line = json.loads(raw)
            if line["event"] == "worker.kill_me":
                pid = line["pid"]
                process.send_signal(number)
        print("nothing more is said")
        assert await process.wait() == status
    assert is_gone(pid)


@pytest.mark.parametrize(
    ("option", "value"), [("--judge", "."), ("--kill", "never"), ("--model", "nobody:knows"), ("--within", "0")]
)
def test_a_wrong_option_is_named_and_starts_nothing(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["demo", "--home", str(tmp_path), option, value]) == 2
    assert option.removeprefix("--") in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


@pytest.mark.slow
async def test_a_demo_that_takes_too_long_says_what_it_waited_for(tmp_path: Path) -> None:
    done = await played(tmp_path, "--within", "1")
    assert done.status == 1
    assert "within 1 s" in done.errors
    assert "--within" in done.errors
