"""The demo's agent under kills of workers, app and Temporal: twenty schedules, and every promise holds in each.

    pytest tests/chaos/test_demo_seeds.py

is `perdure chaos --experiment shop` with the options below. The demo works for about a second between its start and
its end; eight kills within half a second of each other are what that allows, each waiting for somebody to kill.
"""

from pathlib import Path

import pytest

from tests.chaos.commanding import chaos
from tests.kept import keep

SEEDS = 20
OPTIONS = ("--experiment", "shop", "--targets", "all", "--kills", "8", "--every", "0.05-0.5", "--seeds", f"1-{SEEDS}")
JUDGED = ("P1", "P2", "P3", "P4", "P5", "P6", "end")
WITHIN_S = 1800.0
KEPT = ("seed", "state", "kills", "idle_kills", "cut_calls", "begun_again", "disturbed_s", "broken")


@pytest.mark.full
def test_every_promise_holds_over_twenty_seeds(tmp_path: Path) -> None:
    told = chaos(tmp_path, *OPTIONS, within_s=WITHIN_S)
    trials = [{name: trial[name] for name in KEPT} for trial in told.trials]
    for trial in trials:
        print(trial)
    killed = sum(trial["kills"] for trial in trials)
    keep("chaos-demo", {"command": " ".join(("perdure chaos", *OPTIONS)), "kills": killed, "trials": trials})
    assert [trial["seed"] for trial in trials] == list(range(1, SEEDS + 1))
    assert (told.code, told.sum["broken"]) == (0, []), [trial["found"] for trial in told.trials if trial["broken"]]
    for trial in told.trials:
        # What no kill reached has shown nothing, and is not said to hold.
        word = "held" if trial["kills"] else "not judged"
        assert {promise: trial["verdict"][promise] for promise in JUDGED} == dict.fromkeys(JUDGED, word), trial["seed"]
