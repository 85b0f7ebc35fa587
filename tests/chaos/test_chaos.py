"""The whole command over real processes: what holds is said to hold, and what is broken is seen.

Whom a kill hits, and in the middle of what, is chance. So nothing here asks for a hit: asked is what every schedule
guarantees, and where a certain death is needed, the agent under test dies by its own hand.
"""

import json
from pathlib import Path

import pytest

from perdure.cli.chaos.ten_steps import STEPS
from tests.chaos.commanding import chaos

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "payments.py").write_text(Path(__file__).with_name("payments.txt").read_text())
    return tmp_path


def test_ten_short_steps_are_applied_once_each(folder: Path) -> None:
    told = chaos(folder, "--experiment", "ten-steps", "--step-s", "0.3", "--kills", "4", "--every", "0.3-0.8")
    assert (told.code, told.sum["broken"]) == (0, [])
    assert {told.verdict[promise] for promise in ("P1", "P2", "P3", "P4", "P5", "P6", "end", "steps")} == {"held"}
    assert told.objects[0]["begun_again"] == told.sum["cut_calls"], "each step that a kill cut off, and no other"
    assert [call["seen"] for call in told.objects[0]["calls"]] == [1] * STEPS
    kept = folder / "kept" / "supervised-seed-1"
    schedule = json.loads((kept / "schedule.json").read_text())
    assert len(schedule["planned"]) == 4
    assert len(schedule["done"]) == told.sum["kills"] > 0
    assert json.loads((kept / "history-1.json").read_text())["events"]
    assert len(json.loads((kept / "world.json").read_text())) == STEPS


def test_the_demos_shop_ships_once_whatever_is_killed(folder: Path) -> None:
    told = chaos(
        folder, "--experiment", "shop", "--targets", "all", "--kills", "3", "--every", "0.05-0.2", "--seed", "3"
    )
    assert (told.code, told.sum["broken"]) == (0, []), told.objects[0]["found"]
    # A machine that is busy elsewhere may let it end before the first kill; then nothing is said to hold.
    word = "held" if told.sum["kills"] else "not judged"
    assert (told.verdict["P3"], told.verdict["P4"]) == (word, word)
    shipped = [call["seen"] for call in told.objects[0]["calls"] if call["tool"] == "ship_replacement"]
    assert sum(shipped) == 1, "a kill before the effect may have closed a key, and the next one shipped"


PAYING = ("pay", "--kills", "3", "--every", "0.3-0.5")


def test_an_honest_once_tool_keeps_every_promise(folder: Path) -> None:
    told = chaos(folder, "payments:honest", *PAYING, "--probe", "payments:effects")
    assert (told.code, told.sum["broken"]) == (0, [])
    assert (told.verdict["P3"], told.verdict["P4"]) == ("held", "held")


def test_a_once_tool_whose_check_lies_is_found_out(folder: Path) -> None:
    told = chaos(folder, "payments:lying", "pay", "--kills", "1", "--every", "0.3-0.5", "--probe", "payments:effects")
    assert told.code == 1
    assert {"P3", "P4"} <= set(told.sum["broken"])


def test_an_effect_that_the_probe_saw_twice_breaks_p3(folder: Path) -> None:
    told = chaos(folder, "payments:honest", *PAYING, "--probe", "payments:doubled")
    assert (told.code, told.sum["broken"]) == (1, ["P3"])
