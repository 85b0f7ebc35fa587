"""What `perdure serve` refuses, before it starts anything: exit code 2 and the key that is wrong."""

import socket
from pathlib import Path

import pytest

from perdure.cli.main import run_command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "agent.example.org"])
def test_nobody_is_let_in_from_beyond_this_machine(host: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["serve", "nothing:agent", "--host", host]) == 2
    said = capsys.readouterr().err
    assert "--host" in said
    assert "without authentication" in said
    assert not home.exists()


def test_a_port_that_is_taken(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "agent_of_port.py").write_text('from perdure import Agent\nagent = Agent("a", model="nowhere:model")\n')
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(str(home))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run_command(["serve", "agent_of_port:agent", "--port", str(taken.getsockname()[1])]) == 2
    assert "--port" in capsys.readouterr().err
