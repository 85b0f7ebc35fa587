"""The agent of the outage tests: each message makes one `once` call, which the outside notes, and gets an answer.

A first message of "held" makes a run of three calls, the first and third of which wait for the file `open-TURN`.
"""

import asyncio
import os
from pathlib import Path

from perdure import Agent, Call, tool
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, ToolEntry, UserEntry
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


@tool(effect="idempotent", heartbeat_timeout_s=HEARTBEAT_S)
async def hold(call: Call) -> str:
    """Change something in a way that is safe to repeat, when a file says so."""
    place = Path(os.environ[PLACE])
    Outside(place / "outside.log").note("hold", call.idempotency_key)
    while not (place / f"open-{call.idempotency_key.split('/')[1]}").exists():  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.02)
    return "held"


def script(transcript: tuple[Entry, ...]) -> Step:
    first = transcript[0]
    said = len(replies(transcript))
    if isinstance(first, UserEntry) and first.message.text == "held" and said < 3:
        return call("act" if said == 1 else "hold")
    if isinstance(transcript[-1], ToolEntry):
        return say(f"done, reply {len(replies(transcript)) + 1}")
    return call("act")


agent = Agent(
    AGENT,
    model=scripted(*([script] * MODEL_CALLS_MAX)),
    tools=[act, hold],
    after_answer="input_required",
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=FAST,
)
