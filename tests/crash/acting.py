"""The agent of the crash suite, as a worker process loads it: `tests.crash.acting:agent`.

A task's first message names the tool that it calls, once, or `all` of them side by side; with ` ask` behind it, a
question to a person follows. Each tool does what it does to the outside before it waits for the first time.
"""

import asyncio
import os
import signal
from pathlib import Path

from perdure import Agent, ApprovalRule, Call, Check, ToolError, tool
from perdure.core import limits
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, ModelEntry, ModelReply, ToolEntry, UserEntry
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest
from perdure.testing import call, calls, replies, say, scripted
from perdure.testing.script import Step
from tests.crash import without
from tests.crash.world import World

WORLD = World(Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent")) / "world.db")
HEARTBEAT_S = 20.0
"""Long: the supervisor acts on a death, and a case that waits for a heartbeat is seen by its time."""

FAST = RetryPolicy(attempts_max=3, first_ms=20, factor=1.0)
PAUSE_S = 0.02


@tool(effect="read", heartbeat_timeout_s=HEARTBEAT_S, retry=FAST)
async def read(call: Call) -> str:
    """Read."""
    WORLD.read("read", call.idempotency_key)
    await asyncio.sleep(PAUSE_S)
    return "read"


@tool(effect="idempotent", parallel=True, heartbeat_timeout_s=HEARTBEAT_S, retry=FAST)
async def idempotent(call: Call) -> str:
    """Change something in a way that is safe to repeat."""
    WORLD.apply("idempotent", call.idempotency_key, idempotent=True)
    await asyncio.sleep(PAUSE_S)
    return "changed"


def look_up(key: str) -> Check:
    return Check.happened("changed") if WORLD.happened(key) else Check.never()


@tool(effect="once", parallel=True, heartbeat_timeout_s=HEARTBEAT_S, settle_s=0, check=look_up)
async def checked(call: Call) -> str:
    """Change something once; the outside can tell whether it did, and closes the key when not."""
    return await change("checked", call)


@tool(effect="once", parallel=True, heartbeat_timeout_s=HEARTBEAT_S)
async def unchecked(call: Call) -> str:
    """Change something once; nobody can tell later."""
    return await change("unchecked", call)


@tool(effect="once", heartbeat_timeout_s=HEARTBEAT_S, settle_s=0, check=look_up, ask=True)
async def approved(call: Call) -> str:
    """Change something once, after a person's approval."""
    return await change("approved", call)


@tool(effect="once", heartbeat_timeout_s=HEARTBEAT_S)
async def expiring(call: Call) -> str:
    """Change something once, after an approval that does not come."""
    return await change("expiring", call)


@tool(effect="idempotent", heartbeat_timeout_s=HEARTBEAT_S, retry=FAST)
async def poison(call: Call) -> str:
    """Kill the worker, once more often than any task may."""
    WORLD.apply("poison", call.idempotency_key, idempotent=True)
    if WORLD.arrivals(call.task_id).count(call.idempotency_key) <= limits.CRASHES_MAX:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


async def change(name: str, call: Call) -> str:
    if not WORLD.apply(name, call.idempotency_key):
        raise ToolError("the key is closed")
    await asyncio.sleep(PAUSE_S)
    return "changed"


ALL = "all"
CLASSES = ("read", "idempotent", "checked", "unchecked")


def script(transcript: tuple[Entry, ...]) -> Step:
    first = transcript[0]
    words = first.message.text.split() if isinstance(first, UserEntry) else []
    said = len(replies(transcript))
    if said == 0:
        return calls(*map(call, CLASSES)) if words == [ALL] else call(words[0])
    if said == 1 and words[1:] == ["ask"]:
        return call("ask_participant", {"question": "Go on?"})
    results = [entry.result for entry in transcript if isinstance(entry, ToolEntry)]
    return say(" | ".join(f"{result.status}: {result.text}" for result in results))


class Asked:
    """The scripted model; the outside notes each time that it was asked, before it answers."""

    name = "scripted"

    def __init__(self) -> None:
        self._model = scripted(script, script, script)

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        turn = 1 + sum(isinstance(entry, ModelEntry) for entry in request.transcript)
        WORLD.ask(request.task_id, turn)
        await asyncio.sleep(PAUSE_S)
        return await self._model.reply(request, on_delta, blobs)


without.take_out(os.environ.get(without.GUARD, ""))
agent = Agent(
    os.environ.get("PERDURE_TEST_AGENT", "acting"),
    model=Asked(),
    tools=(read, idempotent, checked, unchecked, approved, expiring, poison),
    approvals=(ApprovalRule(then="ask", tool="expiring", expires_in_s=1),),
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=FAST,
)
