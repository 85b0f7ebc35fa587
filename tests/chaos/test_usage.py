"""Wrong usage is told before anything is started: exit code 2, and the option is named."""

from pathlib import Path

import pytest

from perdure.cli.chaos.evidence import Applied
from perdure.cli.chaos.modes import HEARTBEAT_S, NEVER_S, START_TO_CLOSE_S, recorded_spec
from perdure.cli.chaos.probe import ask, load_probe, since
from perdure.cli.chaos.ten_steps import StepLog, agent_from, ten_steps_agent
from perdure.cli.chaos.victims import chosen
from perdure.cli.main import run_command
from perdure.core.errors import ConfigurationError

SHOP = ("--experiment", "shop")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "AGENT"),
        (("shop:agent",), "MESSAGE"),
        (("shop:agent", "hello", *SHOP), "--experiment"),
        ((*SHOP, "--answer", "yes"), "--experiment"),
        ((*SHOP, "--every", "6-2"), "--every"),
        ((*SHOP, "--seed", "x"), "--seed"),
        ((*SHOP, "--kills", "0"), "--kills"),
        ((*SHOP, "--targets", "nothing"), "--targets"),
        ((*SHOP, "--targets", "app", "--mode", "timeout"), "--mode"),
        (("nothing-here:agent", "hello"), "AGENT"),
        (("perdure.cli.chaos.ten_steps:agent", "hello"), "PERDURE_CHAOS_LOG"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert run_command(["chaos", *arguments]) == 2
    assert named in capsys.readouterr().err
    left = list(home.glob("chaos/*"))
    assert not left


def test_a_folder_that_was_used_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept" / "data").mkdir(parents=True)
    assert run_command(["chaos", *SHOP, "--keep", "kept"]) == 2
    assert "--keep: kept cannot be used" in capsys.readouterr().err


async def test_a_probe_is_asked_sync_or_async() -> None:
    def plain() -> list[dict[str, str]]:
        return [{"key": "a"}, {"key": "b", "tool": "pay"}]

    async def awaited() -> list[dict[str, str]]:
        return plain()

    expected = (Applied(key="a"), Applied(key="b", tool="pay"))
    assert await ask(plain) == await ask(awaited) == expected
    assert since(expected[:1], (*expected, expected[0])) == (expected[1], expected[0])


@pytest.mark.parametrize("told", [None, "text", {"key": "a"}, [{"tool": "pay"}], [{"key": ""}], [{"key": 1}], ["a"]])
async def test_a_probe_that_tells_no_keys_is_refused(told: object) -> None:
    with pytest.raises(ConfigurationError, match="--probe"):
        await ask(lambda: told)


async def test_a_probe_that_fails_is_refused(tmp_path: Path) -> None:
    def fails() -> None:
        raise OSError("no world")

    with pytest.raises(ConfigurationError, match="OSError: no world"):
        await ask(fails)
    for reference in ("", "module", "nothing_here:effects", "json:nothing"):
        with pytest.raises(ConfigurationError, match="--probe"):
            load_probe(reference, tmp_path)


def test_the_plain_modes_change_only_what_finds_a_death(tmp_path: Path) -> None:
    spec = ten_steps_agent(StepLog(tmp_path / "log"), 1.0).spec()
    supervised = recorded_spec(spec, "supervised", 8)
    assert supervised == spec.model_copy(update={"crashes_max": 9})
    heartbeat, timeout = recorded_spec(spec, "heartbeat", 8), recorded_spec(spec, "timeout", 8)
    assert (heartbeat.tools[0].heartbeat_timeout_s, heartbeat.model.heartbeat_timeout_s) == (HEARTBEAT_S, HEARTBEAT_S)
    assert heartbeat.tools[0].timeout_s == spec.tools[0].timeout_s
    assert (timeout.tools[0].timeout_s, timeout.tools[0].heartbeat_timeout_s) == (START_TO_CLOSE_S, NEVER_S)
    assert timeout.tools[0].retry.attempts_max == spec.tools[0].retry.attempts_max + 8


def test_the_busy_one_is_taken_and_never_one_that_was_not_started_here() -> None:
    assert chosen((7, 2), (1, 2, 3), 0) == 2
    assert chosen((7,), (1, 2, 3), 4) == 2
    assert chosen((7,), (), 4) is None


def test_the_steps_log_takes_a_key_once(tmp_path: Path) -> None:
    log = StepLog(tmp_path / "log")
    assert log.effects() == []
    assert [log.receive(1, "a"), log.receive(1, "a"), log.receive(1, "b")] == ["applied", "repeated", "applied"]
    assert [effect["key"] for effect in log.effects()] == ["a", "b"]
    with pytest.raises(ConfigurationError, match="PERDURE_CHAOS_LOG"):
        agent_from({})
