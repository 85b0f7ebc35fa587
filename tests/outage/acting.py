"""The agent of the outage tests: each message makes one `once` call, which the outside notes, and gets an answer."""

import asyncio
import os
from pathlib import Path

from perdure import Agent, Call, tool
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, ToolEntry
from perdure.testing import call, replies, say, scripted
from perdure.testing.script import Step
from tests.temporal.outside import Outside

AGENT = "outage"
PLACE = "PERDURE_TEST_PLACE"
"""The environment variable that says where the outside's log is."""

MODEL_CALLS_MAX = 200
HEARTBEAT_S = 2.0
"""An attempt that Temporal counts as begun and no worker got is waited for this long."""

FAST = RetryPolicy(attempts_max=5, first_ms=50, factor=1.0)


@tool(effect="once", heartbeat_timeout_s=HEARTBEAT_S)
async def act(call: Call) -> str:
    """Change something once."""
    Outside(Path(os.environ[PLACE]) / "outside.log").note("act", call.idempotency_key)
    await asyncio.sleep(0.03)  # what a request to somebody else takes
    return "acted"


def script(transcript: tuple[Entry, ...]) -> Step:
    if isinstance(transcript[-1], ToolEntry):
        return say(f"done, reply {len(replies(transcript)) + 1}")
    return call("act")


agent = Agent(
    AGENT,
    model=scripted(*([script] * MODEL_CALLS_MAX)),
    tools=[act],
    after_answer="input_required",
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=FAST,
)
