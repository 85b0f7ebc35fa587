"""The agent whose line is cut, as a worker process loads it: `tests.races.stepping:agent`.

Each message is worked on in steps, one `once` call a turn, which the outside notes when it begins.
"""

import asyncio
import os
from pathlib import Path

from perdure import Agent, Call, tool
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, ModelEntry, UserEntry
from perdure.testing import call, say, scripted
from perdure.testing.script import Step
from tests.crash import without
from tests.temporal.outside import Outside

OUTSIDE = Outside(Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent")) / "outside.log")
HEARTBEAT_S = 2.0
"""Shorter than the cut: an attempt whose end could not be told is given up, and made again."""

STEPS = 2
STEP_S = 0.4
PATIENT = RetryPolicy(attempts_max=20, first_ms=100, factor=1.0)


@tool(effect="once", heartbeat_timeout_s=HEARTBEAT_S)
async def step(call: Call) -> str:
    """Change something once."""
    OUTSIDE.note("step", call.idempotency_key)
    await asyncio.sleep(STEP_S)  # what a request to somebody else takes
    return "stepped"


def script(transcript: tuple[Entry, ...]) -> Step:
    latest = max(place for place, entry in enumerate(transcript) if isinstance(entry, UserEntry))
    taken = sum(isinstance(entry, ModelEntry) for entry in transcript[latest:])
    if taken < STEPS:
        return call("step")
    return say(" ".join(entry.message.text for entry in transcript if isinstance(entry, UserEntry)))


without.take_out(os.environ.get(without.GUARD, ""))
agent = Agent(
    os.environ.get("PERDURE_TEST_AGENT", "stepping"),
    model=scripted(script, loop=True),
    tools=(step,),
    after_answer="input_required",
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=PATIENT,
)
