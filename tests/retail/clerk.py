"""The agent of the forty conversations, as worker processes load it.

A worker is given its settings by the environment: the data, the folder of the shops, the seed and bounds of the calls'
times, and, where more kills are to come than a task may take by default, its limit of crashes.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perdure import Agent
from perdure.core import limits
from perdure.core.agent import AgentSpec
from tests.retail.data import FOLDER_VARIABLE, NO_DATA, load_tasks, retail_folder
from tests.retail.replaying import ReplayingModel
from tests.retail.serving import seeded_hold
from tests.retail.tools import shop_tools

SHOPS_VARIABLE = "PERDURE_TEST_RETAIL_SHOPS"
HOLD_VARIABLE = "PERDURE_TEST_RETAIL_HOLD"
CRASHES_VARIABLE = "PERDURE_TEST_RETAIL_CRASHES"
REFERENCE = "tests.retail.clerk:agent"

HEARTBEAT_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class Clerk(Agent):
    """The agent with a limit of crashes in a row (R12) of its own: where a test does the killing, it sets it."""

    crashes_max: int = limits.CRASHES_MAX

    def spec(self) -> AgentSpec:
        """Return what a task records of the agent."""
        return super().spec().model_copy(update={"crashes_max": self.crashes_max})


@dataclass(frozen=True)
class Place:
    """Where and how a clerk works: the data, the shops, and what is drawn for each call's time."""

    data: Path
    shops: Path
    seed: int
    call_low_s: float
    call_high_s: float
    crashes_max: int = limits.CRASHES_MAX

    @property
    def environment(self) -> dict[str, str]:
        """Return what a process must be told to work here."""
        return {
            FOLDER_VARIABLE: str(self.data),
            SHOPS_VARIABLE: str(self.shops),
            HOLD_VARIABLE: f"{self.seed} {self.call_low_s} {self.call_high_s}",
            CRASHES_VARIABLE: str(self.crashes_max),
        }

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Place":
        """Return what a process was told."""
        folder = retail_folder()
        if folder is None:
            raise RuntimeError(NO_DATA)
        seed, low, high = environment[HOLD_VARIABLE].split()
        shops = Path(environment[SHOPS_VARIABLE])
        return cls(folder, shops, int(seed), float(low), float(high), int(environment[CRASHES_VARIABLE]))


def clerk(place: Place) -> Clerk:
    """Return the agent. An unanswered end fails its task, so that every conversation comes to a terminal state."""
    hold = seeded_hold(place.seed, place.call_low_s, place.call_high_s)
    return Clerk(
        "clerk",
        model=ReplayingModel(load_tasks(place.data)),
        tools=shop_tools(place.shops, hold=hold, heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S),
        model_heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S,
        on_unanswered="fail",
        asks=False,
        crashes_max=place.crashes_max,
    )


def __getattr__(name: str) -> Agent:
    """Make `agent` when it is asked for: a worker has the environment for it, a test that imports this has not."""
    if name != "agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return clerk(Place.of(os.environ))
