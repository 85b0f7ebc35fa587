"""The agent whose calls are stopped, as a worker process loads it: `tests.stopping.acting:agent`.

Each tool begins, notes it in the outside's log, and does something else when it is told to stop. The outside says what
really happened.
"""

import asyncio
import os
from pathlib import Path

from perdure import Agent, Call, Check, ToolError, tool
from perdure.core.content import Entry
from perdure.core.ports import ToolPort
from perdure.testing import call, calls, last_user, results, say, scripted
from perdure.testing.script import Step
from tests.temporal.outside import Outside

HOME = Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent"))
OUTSIDE = Outside(HOME / "outside.log")


async def _until_stopped(what: str, call: Call) -> None:
    OUTSIDE.note(what, call.idempotency_key)
    await asyncio.Event().wait()


@tool(effect="once", parallel=True)
async def finishes(call: Call) -> str:
    """Bring it to its end when it is told to stop."""
    try:
        await _until_stopped("finishes", call)
    except asyncio.CancelledError:
        OUTSIDE.note("finishes.end", call.idempotency_key)
    return "finished in order"


@tool(effect="once", parallel=True)
async def refuses(call: Call) -> str:
    """Undo it when it is told to stop, and say so."""
    try:
        await _until_stopped("refuses", call)
    except asyncio.CancelledError:
        raise ToolError("undone") from None
    return "never"


def _did_not(key: str) -> Check:
    return Check.never()


@tool(effect="once", parallel=True, check=_did_not, settle_s=0)
async def checked(call: Call) -> str:
    """Give up when it is told to stop; its check knows that it did not happen and never will."""
    await _until_stopped("checked", call)
    return "never"


@tool(effect="once", parallel=True)
async def gives_up(call: Call) -> str:
    """Give up when it is told to stop; nobody knows what became of it."""
    await _until_stopped("gives_up", call)
    return "never"


@tool(effect="once")
async def waits(call: Call) -> str:
    """Is never begun: it runs alone, and those before it are still at work."""
    OUTSIDE.note("waits", call.idempotency_key)
    return "begun"


@tool(effect="once")
async def deaf(call: Call) -> str:
    """Go on, whatever it is told, until a file says that it may end."""
    OUTSIDE.note("deaf", call.idempotency_key)
    while not (HOME / "open").exists():
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            OUTSIDE.note("deaf.told", call.idempotency_key)
    OUTSIDE.note("deaf.end", call.idempotency_key)
    return "done all the same"


TOOLS: tuple[ToolPort, ...] = (finishes, refuses, checked, gives_up, waits, deaf)
AT_ONCE = ("finishes", "refuses", "checked", "gives_up")


def script(transcript: tuple[Entry, ...]) -> Step:
    match last_user(transcript):
        case "all":
            return calls(*(call(name) for name in (*AT_ONCE, "waits")))
        case "deaf":
            return call("deaf")
        case _:
            return say(" | ".join(f"{result.tool} {result.status}: {result.text}" for result in results(transcript)))


agent = Agent(os.environ.get("PERDURE_TEST_AGENT", "stopped"), model=scripted(script, loop=True), tools=TOOLS)
