"""The agent of the soak, as worker processes load it: `tests.races.soaking:agent`.

Each message that it is told leads to one call: a message with `?` in its name to a question, any other to one effect
under that name, which waits for an approval where the name has a `!`. The outside notes when the model is asked, with
which messages and which results, and when a call arrives and ends: one that does not was cut.
"""

import asyncio
import os
import zlib
from pathlib import Path

from perdure import Agent, Call, Check, ToolError, tool
from perdure.core.agent import Budget, RetryPolicy
from perdure.core.content import Entry, ModelEntry, ModelReply, ToolEntry, UserEntry
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest
from perdure.testing import call, calls, say, scripted
from perdure.testing.script import Step
from tests.crash.world import World
from tests.races import breaking
from tests.races.notes import Notes

PLACE = Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent"))
OUTSIDE = Notes(PLACE / "outside.jsonl")
WORLD = World(PLACE / "world.db")
HEARTBEAT_S = 5.0
ASKS, PAYS = "?", "!"
ENDLESS = Budget(turns_max=10_000)
"""A run whose clients never let it rest goes on: no end of it is the agent's own doing."""

FAST = RetryPolicy(attempts_max=20, first_ms=50, factor=1.0)


def pause_s(name: str, most_s: float) -> float:
    """Return how long something takes: by its name, so that every process agrees."""
    return most_s * (zlib.crc32(name.encode()) % 100) / 100


def find(key: str) -> Check:
    return Check.happened("acted") if WORLD.happened(key) else Check.never()


@tool(effect="once", parallel=True, check=find, settle_s=0, heartbeat_timeout_s=HEARTBEAT_S)
async def act(name: str, call: Call) -> str:
    """Act on a message, once."""
    return await _acted(name, call)


@tool(effect="once", ask=True, parallel=True, check=find, settle_s=0, heartbeat_timeout_s=HEARTBEAT_S)
async def pay(name: str, call: Call) -> str:
    """Act on a message, once, when a person agrees."""
    return await _acted(name, call)


async def _acted(name: str, call: Call) -> str:
    OUTSIDE.note(what="call", task=call.task_id, name=name, key=call.idempotency_key)
    if not WORLD.apply(name, call.idempotency_key):
        raise ToolError("the key is closed")
    await asyncio.sleep(pause_s(name, 0.4))
    OUTSIDE.note(what="end", task=call.task_id, name=name, key=call.idempotency_key)
    return "acted"


def script(transcript: tuple[Entry, ...]) -> Step:
    called = {
        str((each.arguments or {}).get("name") or (each.arguments or {}).get("question"))
        for entry in transcript
        if isinstance(entry, ModelEntry)
        for each in entry.reply.calls
    }
    todo = [name for name in said_in(transcript) if name not in called]
    if not todo:
        return say("done")
    return calls(*(_call_for(name) for name in todo))


def _call_for(name: str) -> Step:
    if ASKS in name:
        return call("ask_participant", {"question": name})
    return call("pay" if PAYS in name else "act", {"name": name})


def said_in(transcript: tuple[Entry, ...]) -> list[str]:
    return [entry.message.text for entry in transcript if isinstance(entry, UserEntry)]


def results_in(transcript: tuple[Entry, ...]) -> list[tuple[str, str]]:
    """Return what the model is told of each call that acts: the message's name, and the result's status."""
    names = {
        each.call_id: str((each.arguments or {}).get("name"))
        for entry in transcript
        if isinstance(entry, ModelEntry)
        for each in entry.reply.calls
    }
    results = [entry.result for entry in transcript if isinstance(entry, ToolEntry)]
    return [(names[result.call_id], result.status) for result in results if result.tool in {"act", "pay"}]


class Noted:
    """The scripted model; the outside notes each request."""

    name = "scripted"

    def __init__(self) -> None:
        self._model = scripted(script, loop=True)

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        transcript = request.transcript
        said = said_in(transcript)
        answers = [
            entry.result.text
            for entry in transcript
            if isinstance(entry, ToolEntry) and entry.result.tool == "ask_participant" and entry.result.status == "ok"
        ]
        told = {"said": said, "answers": answers, "results": results_in(transcript)}
        OUTSIDE.note(what="model", task=request.task_id, turn=request.turn, **told)
        await asyncio.sleep(pause_s(f"{request.task_id}/{request.turn}", 0.2))
        return await self._model.reply(request, on_delta, blobs)


if os.environ.get(breaking.GUARD):
    breaking.take_out()
agent = Agent(
    os.environ.get("PERDURE_TEST_AGENT", "soaking"),
    model=Noted(),
    tools=(act, pay),
    after_answer="input_required",
    budget=ENDLESS,
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=FAST,
)
