"""The README's session with curl, run as it stands there: a task is created, streamed, cut off and resumed."""

import re
import subprocess
from pathlib import Path

import pytest

from perdure.a2a.task_ids import derived_task_id
from tests.a2a.house import House

pytestmark = pytest.mark.slow

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    (block,) = [
        each for each in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL) if "Last-Event-ID" in each
    ]
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, flags=re.MULTILINE)


def curled(command: str, house: House) -> list[tuple[int, str]]:
    """Run a curl as the README has it, at this server's port; return (id, data) of each event."""
    here = command.replace("127.0.0.1:8000", f"127.0.0.1:{house.port}")
    said = subprocess.run(["sh", "-c", here], capture_output=True, text=True, timeout=60, check=True).stdout
    return [(int(number), data) for number, data in re.findall(r"^id: (\d+)\r?\ndata: (.*)$", said, flags=re.MULTILINE)]


def test_a_task_is_created_streamed_cut_and_resumed(tmp_path: Path) -> None:
    serve, create, kill, again, resume = commands()
    assert (serve, kill, again) == ("perdure serve agent.toml", "kill -9 PID", serve)
    house = House(tmp_path, "agent.toml")
    try:
        house.command("init", ".").wait()
        server = house.open()
        first = curled(create, house)
        task_id = derived_task_id("", "first", "order-1")
        assert [number for number, _ in first] == list(range(len(first)))
        assert len(first) >= 2
        assert task_id in first[0][1]
        assert task_id in resume
        house.kill(server)
        house.open()
        rest = curled(resume, house)
    finally:
        house.close()
    assert [number for number, _ in rest] == list(range(2, 2 + len(rest)))
    assert "TASK_STATE_COMPLETED" in rest[-1][1]
