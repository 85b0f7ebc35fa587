"""Every wrong use is one line that names the key, and the code of design section 11."""

import os
import sys
from pathlib import Path

import pytest

from perdure.cli.main import run_command
from tests.cli.desk import COMMAND, Desk

WRONG = [
    pytest.param([], "", id="nothing"),
    pytest.param(["bogus"], "No such command 'bogus'", id="command"),
    pytest.param(["tasks", "--bogus"], "No such option: --bogus", id="option"),
    pytest.param(["tasks", "--limit", "0"], "--limit", id="limit"),
    pytest.param(["--home", " ", "tasks"], "--home: is empty", id="home"),
    pytest.param(["show"], "Missing argument 'TASK'", id="show"),
    pytest.param(["show", "t-1"], "task_id: there is no task 't-1'", id="unknown task"),
    pytest.param(["run"], "AGENT: is missing", id="no agent"),
    pytest.param(["run", "helpdesk:agent"], "MESSAGE: is missing", id="no message"),
    pytest.param(["run", "helpdesk:agent", "  "], "MESSAGE: is empty", id="empty message"),
    pytest.param(["run", "helpdesk", "hi"], "AGENT: 'helpdesk' does not name an agent", id="reference"),
    pytest.param(["run", "nowhere:agent", "hi"], "AGENT: there is no module 'nowhere'", id="module"),
    pytest.param(["run", "helpdesk:nothing", "hi"], "AGENT: module 'helpdesk' has no 'nothing'", id="attribute"),
    pytest.param(["run", "helpdesk:not_one", "hi"], "AGENT: helpdesk:not_one is a int", id="type"),
    pytest.param(["run", "--resume", "t-1"], "task_id: there is no task 't-1'", id="unknown resume"),
    pytest.param(["worker"], "Missing argument 'AGENT'", id="worker"),
    pytest.param(["worker", "helpdesk:nothing"], "AGENT: module 'helpdesk' has no 'nothing'", id="worker's agent"),
]


@pytest.fixture
def here(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(desk.folder)
    monkeypatch.syspath_prepend(desk.folder)
    monkeypatch.setattr(os, "environ", dict(desk.environment))
    monkeypatch.setitem(sys.modules, "helpdesk", None)  # put back afterwards: the next test has its own file
    del sys.modules["helpdesk"]
    return desk


@pytest.mark.parametrize(("words", "text"), WRONG)
def test_wrong_usage_exits_2_and_names_the_key(
    here: Desk, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    assert run_command(words) == 2
    said = capsys.readouterr()
    if text:
        assert said.err.startswith("error: ")
        assert text in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""
    assert not (here.home / "store.db").exists(), "a wrong use must change nothing"


def test_a_home_that_is_a_file_is_named(here: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    here.home.write_text("")
    assert run_command(["run", "helpdesk:agent", "hi"]) == 2
    assert "error: PERDURE_HOME: " in capsys.readouterr().err


def test_a_remote_temporal_without_a_shared_store_is_refused(
    here: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TEMPORAL_ADDRESS", "127.0.0.1:1")
    assert run_command(["tasks"]) == 2
    assert "error: PERDURE_STORE_URL: is not set" in capsys.readouterr().err


def test_a_temporal_that_does_not_answer_exits_1(
    here: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.setitem(os.environ, "PERDURE_STORE_URL", f"sqlite:///{here.folder / 'store.db'}")
    assert run_command(["run", "helpdesk:agent", "hi"]) == 1
    said = capsys.readouterr().err
    assert "error: address: Temporal at 127.0.0.1:1 does not answer" in said
    assert "Traceback" not in said


def test_a_defect_is_told_in_a_line_and_kept_whole(
    here: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> int:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr("perdure.cli.tasks.now_ms", broken)
    here.home.mkdir()
    assert run_command(["tasks"]) == 1
    said = capsys.readouterr().err
    assert "error: ZeroDivisionError: by design" in said
    assert "Traceback" not in said
    assert "by design" in (here.home / "defect.log").read_text()
    assert (here.home / "defect.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["show", "-h"], ["init", "--help"]])
def test_help_exits_0(here: Desk, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert run_command(words) == 0
    assert "Usage: perdure" in capsys.readouterr().out


def test_the_default_data_folder_is_documented(here: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["--help"])
    said = capsys.readouterr().out
    assert "PERDURE_HOME" in said
    assert "~/.local/share/perdure" in said


@pytest.mark.slow
def test_real_processes_exit_alike(desk: Desk) -> None:
    script = str(Path(COMMAND[0]).with_name("perdure"))
    for command in (COMMAND, (script,)):
        version = desk.perdure("--version", command=command)
        assert (version.code, version.err) == (0, "")
        assert version.out.startswith("perdure ")
        wrong = desk.perdure("--home", "elsewhere", "show", "t-1", command=command)
        assert (wrong.code, wrong.out) == (2, "")
        assert wrong.err.startswith("error: task_id: ")
    assert not (desk.folder / "elsewhere").exists(), "asking must not make a data folder"
