"""The agent of the forty conversations, as worker processes load it.

A worker is given its settings by the environment: the data, the folder of the shops, and the seed of the calls' times.
"""

import os
from pathlib import Path

from perdure import Agent
from tests.retail.data import NO_DATA, load_tasks, retail_folder
from tests.retail.replaying import ReplayingModel
from tests.retail.serving import seeded_hold
from tests.retail.tools import shop_tools

SHOPS_VARIABLE = "PERDURE_TEST_RETAIL_SHOPS"
HOLD_SEED_VARIABLE = "PERDURE_TEST_RETAIL_HOLD_SEED"
REFERENCE = "tests.retail.clerk:agent"

HEARTBEAT_TIMEOUT_S = 2.0
CALL_LOW_S, CALL_HIGH_S = 3.0, 8.0


def clerk(data_folder: Path, shops: Path, hold_seed: int) -> Agent:
    """Return the agent. An unanswered end fails its task, so that every conversation comes to a terminal state."""
    hold = seeded_hold(hold_seed, CALL_LOW_S, CALL_HIGH_S)
    return Agent(
        "clerk",
        model=ReplayingModel(load_tasks(data_folder)),
        tools=shop_tools(shops, hold=hold, heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S),
        model_heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S,
        on_unanswered="fail",
        asks=False,
    )


def __getattr__(name: str) -> Agent:
    """Make `agent` when it is asked for: a worker has the environment for it, a test that imports this has not."""
    if name != "agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    folder = retail_folder()
    if folder is None:
        raise RuntimeError(NO_DATA)
    return clerk(folder, Path(os.environ[SHOPS_VARIABLE]), int(os.environ[HOLD_SEED_VARIABLE]))
