"""The agent of the outage tests: each message makes one `once` call, which the outside notes, and gets an answer.

A first message of "held" makes a run of three calls, the first and third of which wait for the file `open-TURN`; one
of "steps" makes a run of four that take a while, of which the outside can be asked about two.
"""

import asyncio
import os
from pathlib import Path

from perdure import Agent, Call, Check, tool
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, ToolEntry, UserEntry
from perdure.testing import call, replies, say, scripted
from perdure.testing.script import Step
from tests.temporal.outside import Outside

AGENT = "outage"
PLACE = "PERDURE_TEST_PLACE"
"""The environment variable that says where the outside's log is."""

MODEL_CALLS_MAX = 200
HEARTBEAT_S = float(os.environ.get("PERDURE_TEST_HEARTBEAT_S", "2"))
"""An attempt that Temporal counts as begun and no worker got is waited for this long."""

FAST = RetryPolicy(attempts_max=5, first_ms=50, factor=1.0)


@tool(effect="once", heartbeat_timeout_s=HEARTBEAT_S)
async def act(call: Call) -> str:
    """Change something once."""
    Outside(Path(os.environ[PLACE]) / "outside.log").note("act", call.idempotency_key)
    await asyncio.sleep(0.03)  # what a request to somebody else takes
    return "acted"


async def _find(key: str) -> Check:
    """Say what became of a `sure` call; whoever might have made it is dead, so that what did not happen never will."""
    noted = Outside(Path(os.environ[PLACE]) / "outside.log").of("sure")
    return Check.happened("it is done") if any(each.key == key for each in noted) else Check.never()


@tool(effect="once", check=_find, settle_s=0, heartbeat_timeout_s=HEARTBEAT_S)
async def sure(call: Call) -> str:
    """Change something once; the outside can tell whether it was done."""
    await asyncio.sleep(0.1)
    Outside(Path(os.environ[PLACE]) / "outside.log").note("sure", call.idempotency_key)
    await asyncio.sleep(0.2)
    return "it is done"


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
    if isinstance(first, UserEntry) and first.message.text == "steps" and said < 4:
        return call("act" if said % 2 else "sure", delay_s=0.1)
    if isinstance(transcript[-1], ToolEntry):
        return say(f"done, reply {len(replies(transcript)) + 1}")
    return call("act")


agent = Agent(
    AGENT,
    model=scripted(*([script] * MODEL_CALLS_MAX)),
    tools=[act, hold, sure],
    after_answer="input_required",
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=FAST,
)
