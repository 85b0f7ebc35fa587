"""The agent of the races, as a worker process loads it: `tests.races.acting:agent`.

What the latest message says is what the model does: it fails, works, asks for tools, or says what it heard. Model and
tools note in the outside's log that they were reached, and wait while a file holds them (`hold`). So does the source of
one of the tools, to which every worker connects before it takes anything. Rules are taken out for the tasks whose ids
name one.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from perdure import Agent, Call, tool
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, ModelReply, UserEntry
from perdure.core.errors import ModelError
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest, ToolPort
from perdure.testing import call, calls, fail, say, scripted
from perdure.testing.script import Step
from tests.races import without
from tests.temporal.outside import Outside

PLACE = Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent"))
OUTSIDE = Outside(PLACE / "outside.log")
ID = os.environ.get("PERDURE_TEST_AGENT", "racing")
HEARTBEAT_S = 60.0
"""Longer than any race: what goes on was told of a death, and no timeout found it."""

FAST = RetryPolicy(attempts_max=3, first_ms=20, factor=1.0)
PAUSE_S = 0.02


def hold(place: Path, task_id: str, what: str) -> Path:
    """Return the file that holds the model or a tool of a task while it is there, or the agent's `connecting`."""
    return place / f"hold-{task_id}-{what}"


async def _while_held(task_id: str, what: str) -> None:
    while hold(PLACE, task_id, what).exists():  # noqa: ASYNC110 - another process removes it, and sets no event here
        await asyncio.sleep(PAUSE_S)


@tool(effect="read", parallel=True, heartbeat_timeout_s=HEARTBEAT_S, retry=FAST)
async def work(call: Call) -> str:
    """Work until it is let go; it does not hear that it is told to stop."""
    OUTSIDE.note("work", call.idempotency_key)
    while True:
        try:
            await _while_held(call.task_id, "work")
        except asyncio.CancelledError:
            continue
        return "worked"


@tool(effect="once", parallel=True, in_doubt="fail", settle_s=0, heartbeat_timeout_s=HEARTBEAT_S)
async def doubtful(call: Call) -> str:
    """Leave the run in doubt, which fails it."""
    await _while_held(call.task_id, "doubtful")
    raise RuntimeError("nobody knows")


@tool(effect="idempotent", heartbeat_timeout_s=HEARTBEAT_S, retry=FAST)
async def poison(call: Call) -> str:
    """Kill the worker."""
    OUTSIDE.note("poison", call.idempotency_key)
    os.kill(os.getpid(), signal.SIGKILL)
    return "not reached"


@tool(effect="read")
async def brief(call: Call) -> str:
    """Take no time."""
    OUTSIDE.note("brief", call.idempotency_key)
    return "brief"


class Elsewhere:
    """Tools that are somewhere else: connecting to them takes as long as it is held."""

    name = "elsewhere"

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[ToolPort, ...]]:
        if hold(PLACE, ID, "connecting").exists():
            OUTSIDE.note("connecting")
            await _while_held(ID, "connecting")
        yield (brief,)


def script(transcript: tuple[Entry, ...]) -> Step | ModelError:
    last = transcript[-1]
    match last.message.text.split()[0] if isinstance(last, UserEntry) else "":
        case "fail":
            return fail("the provider says no")
        case "busy":
            return fail("429", retryable=True, retry_after_s=600)
        case "doubt":
            return calls(call("doubtful"), call("work"))
        case "work" | "poison" | "brief" as name:
            return call(name)
        case said:
            return say(f"heard {said}" if said else "done")


class Heard:
    """The scripted model; the outside notes what it was told, before it answers."""

    name = "scripted"

    def __init__(self) -> None:
        self._model = scripted(script, loop=True)

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        words = [entry.message.text for entry in request.transcript if isinstance(entry, UserEntry)]
        OUTSIDE.note(f"asked {','.join(words)}", f"{request.task_id}/{request.turn}")
        await _while_held(request.task_id, "model")
        await asyncio.sleep(PAUSE_S)
        return await self._model.reply(request, on_delta, blobs)


if "PERDURE_TEST_PLACE" in os.environ:  # in a worker; whoever only stages the races keeps the core as it is
    without.take_out()
agent = Agent(
    ID,
    model=Heard(),
    tools=(work, doubtful, poison, Elsewhere()),
    after_answer="input_required",
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=FAST,
)
