"""The README's section on who may come in: its commands run, its variables are there, its numbers are the limits."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.app.entry import EntryLimits, JwtSettings
from perdure.core import limits
from tests.a2a.house import House

README = (Path(__file__).parents[2] / "README.md").read_text()
SECTION = README.split("### Who may come in")[1].split("\n## ")[0]


def _commands() -> list[str]:
    (block,) = re.findall(r"```console\n(.*?)```", SECTION, flags=re.DOTALL)
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.slow
def test_its_commands_run(house: House) -> None:
    key = ""
    export, add, serve, curl, tasks, revoke = _commands()
    name, _, value = export.removeprefix("export ").partition("=")
    assert serve == "perdure serve agent.toml --host 0.0.0.0"
    house.open(**{name: value})  # on loopback, where tests stay

    def run(command: str) -> str:
        command = command.replace("http://127.0.0.1:8000", house.url).replace("perdure_3f0c9a1be2d4_…", key)
        command = re.sub(r"\bperdure (?=keys|tasks)", f"{sys.executable} -m perdure.cli.main ", command)
        command = command.replace("3f0c9a1be2d4", key.split("_")[1] if key else "")
        home = f"PERDURE_HOME={house.folder / 'home'}"
        done = subprocess.run(
            ["env", home, "sh", "-c", command], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    key = run(add).strip()
    task = house.send("hello", headers={"X-API-Key": key})
    assert task["id"] in run(curl)
    assert task["id"] in run(tasks)
    assert "is revoked" in run(revoke)
    assert "UNAUTHENTICATED" in run(curl)


def test_every_variable_is_one_and_every_one_is_there() -> None:
    named = set(re.findall(r"PERDURE_[A-Z_]+", SECTION))
    bounds = {f"PERDURE_{field.upper()}" for field in EntryLimits.model_fields}
    tokens = {f"PERDURE_JWT_{field.upper()}" for field in JwtSettings.model_fields}
    assert named == bounds | tokens | {"PERDURE_AUTH", "PERDURE_CARD_KEY", "PERDURE_TOKEN"}


def test_its_numbers_are_the_limits() -> None:
    rows = re.findall(r"^\| (`PERDURE_.*?`) \| ([\d, MiB]+) \|", SECTION, flags=re.MULTILINE)
    told = {
        name: number
        for names, numbers in rows
        for name, number in zip(re.findall(r"`PERDURE_(\w+)`", names), numbers.split(", "), strict=True)
    }
    assert told.pop("REQUEST_BYTES_MAX") == f"{limits.REQUEST_BYTES_MAX // 2**20} MiB"
    assert {name: float(number) for name, number in told.items()} == {
        field.upper(): float(value)
        for field, value in EntryLimits().model_dump().items()
        if field != "request_bytes_max"
    }
    assert f"within {limits.CREDENTIAL_RECHECK_S:g} s" in SECTION
