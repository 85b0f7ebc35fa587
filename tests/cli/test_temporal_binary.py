"""`PERDURE_TEMPORAL_BINARY` at the command line: the binary that it names is run, or refused by that name."""

import shutil
from pathlib import Path

import pytest

from perdure.app.settings import Settings
from perdure.temporal.embedded_binary import find_binary
from perdure.temporal.settings import EmbeddedSettings
from tests.cli.desk import Desk


def named(desk: Desk, script: str = "exit 1") -> Path:
    """Return a program in a folder of its own, which nobody else can write to."""
    folder = desk.folder / "bin"
    folder.mkdir(mode=0o700)
    binary = folder / "temporal"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o700)
    return binary


def test_it_counts_for_a_demo_and_for_chaos_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_TEMPORAL_BINARY", "/opt/temporal")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example.org:7233")
    temporal = Settings.apart(tmp_path).temporal
    assert temporal == EmbeddedSettings(
        database=tmp_path / "temporal.db", own="auto", binary_path=Path("/opt/temporal")
    )


@pytest.mark.slow
def test_it_is_the_one_that_is_run(desk: Desk) -> None:
    binary = named(desk, f'touch {desk.folder / "was-run"}\nexec {find_binary()} "$@"')
    done = desk.perdure("run", "helpdesk:agent", "hello", PERDURE_TEMPORAL_BINARY=str(binary))
    assert done.code == 0, done.err
    assert (desk.folder / "was-run").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "folder_mode", "said"),
    [
        (0o722, 0o700, "temporal can be written by others (mode 0722)"),
        (0o700, 0o777, "bin can be written by others (mode 0777)"),
        (0o600, 0o700, "is not a program that can be run"),
    ],
)
def test_one_that_others_could_have_changed_is_refused_by_name(
    desk: Desk, mode: int, folder_mode: int, said: str
) -> None:
    binary = named(desk, f"touch {desk.folder / 'was-run'}")
    binary.chmod(mode)
    binary.parent.chmod(folder_mode)
    done = desk.perdure("run", "helpdesk:agent", "hello", PERDURE_TEMPORAL_BINARY=str(binary))
    assert (done.code, done.out) == (1, "")
    last = done.err.splitlines()[-1]
    assert last.startswith("error: PERDURE_TEMPORAL_BINARY, or binary_path: ")
    assert said in last
    assert not (desk.folder / "was-run").exists()
    assert not (desk.home / "temporal.db").exists()


@pytest.mark.slow
def test_one_that_is_missing_is_not_passed_over(desk: Desk) -> None:
    assert shutil.which(str(find_binary())), "there is one that it could fall back to"
    done = desk.perdure("run", "helpdesk:agent", "hello", PERDURE_TEMPORAL_BINARY="~/nowhere/temporal")
    assert done.code == 1
    assert "PERDURE_TEMPORAL_BINARY, or binary_path: " in done.err
    assert "No such file" in done.err
