"""The demo's folder: fresh each time, private, and nobody else's data touched."""

from pathlib import Path

import pytest

from perdure.cli.demo.stage import finished_stage, fresh_stage
from perdure.core.errors import ConfigurationError


def test_each_demo_has_a_fresh_folder_and_removes_the_earlier_ones(tmp_path: Path) -> None:
    with fresh_stage(tmp_path, keep=False) as first:
        first.world.touch()
        assert first.folder.parent == tmp_path / "demo"
        assert first.folder.stat().st_mode & 0o777 == 0o700
    assert first.world.is_file()
    with fresh_stage(tmp_path, keep=True) as second:
        assert not second.world.exists()
    assert first.folder.is_dir()
    with fresh_stage(tmp_path, keep=False):
        assert not first.folder.exists()
        assert not second.folder.exists()


def test_a_demo_that_runs_and_what_is_no_demo_are_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "demo" / "notes"
    theirs.mkdir(parents=True)
    with fresh_stage(tmp_path, keep=False) as running:
        with fresh_stage(tmp_path, keep=False) as other:
            assert running.folder.is_dir()
            assert other.folder != running.folder
        running.notes.touch()
        with pytest.raises(ConfigurationError, match="still running"), finished_stage(running.folder):
            pass
    assert theirs.is_dir()


def test_only_a_finished_demo_is_judged_again(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--judge"), finished_stage(tmp_path):
        pass


def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="--home"), fresh_stage(tmp_path / "file", keep=False):
        pass


def test_nothing_of_the_environment_reaches_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "temporal.example.org:7233")
    monkeypatch.setenv("PERDURE_STORE_URL", "postgresql://example.org/tasks")
    with fresh_stage(tmp_path, keep=False) as stage:
        assert stage.settings.temporal.mode == "embedded"
        assert str(stage.folder) in stage.settings.store_url
        told = stage.environment("openai:gpt-5")
        assert (told["TEMPORAL_ADDRESS"], told["PERDURE_STORE_URL"]) == ("", "")
