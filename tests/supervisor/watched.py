"""The agent of these tests, as a supervised worker loads it: `tests.supervisor.watched:agent`.

What a task does follows from its first message: the tool of that name. Tools note in the outside's log that they were
reached, and wait until a file says that they may go on.
"""

import asyncio
import os
import signal
import subprocess
from pathlib import Path

from perdure import Agent, Call, tool
from perdure.core.content import Entry, UserEntry
from perdure.core.errors import ConfigurationError
from perdure.core.faults import install
from perdure.testing import call, replies, results, say, scripted
from perdure.testing.script import Step
from tests.temporal.outside import Outside

HOME = Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent"))
OUTSIDE = Outside(HOME / "outside.log")
if (HOME / "broken").exists():
    raise ConfigurationError("tools", "a source of tools refuses its agent")

ZOMBIE_HEARTBEAT_S = 2.0
MODEL_HEARTBEAT_S = 3.0
"""Short: a model call that is handed to a stopped worker, whose polls stay open, waits for this."""

HELD_HEARTBEAT_S = 300.0
"""Longer than any test: what goes on with a held call within a test was told of a death, and no timeout found it."""


async def _opened(what: str, call: Call) -> str:
    OUTSIDE.note(what, call.idempotency_key)
    try:
        while not (HOME / "open").exists():  # noqa: ASYNC110 - another process makes it, and sets no event here
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        OUTSIDE.note(f"{what}.cancelled", call.idempotency_key)
        raise
    OUTSIDE.note(f"{what}.end", call.idempotency_key)
    return f"{what} done"


@tool(effect="idempotent", heartbeat_timeout_s=HELD_HEARTBEAT_S)
async def held(call: Call) -> str:
    """Work until it is let go."""
    return await _opened("held", call)


@tool(effect="idempotent")
async def neighbour(call: Call) -> str:
    """Work until it is let go; a second attempt has nothing left to do."""
    if call.attempt > 1:
        OUTSIDE.note("neighbour.again", call.idempotency_key)
        return "neighbour done"
    return await _opened("neighbour", call)


@tool(effect="once")
async def once(call: Call) -> str:
    """Change something once."""
    return await _opened("once", call)


@tool(effect="idempotent")
async def poison(call: Call) -> str:
    """Kill the worker."""
    OUTSIDE.note("poison", call.idempotency_key)
    os.kill(os.getpid(), signal.SIGKILL)
    return "not reached"


@tool(effect="idempotent", heartbeat_timeout_s=HELD_HEARTBEAT_S)
async def spawning(call: Call) -> str:
    """Start a subprocess, and work until it is let go."""
    if call.attempt == 1:
        sleeper = subprocess.Popen(["sleep", "1000"])  # noqa: ASYNC220 - it is only started
        OUTSIDE.note(f"sleeper {sleeper.pid}")
    return await _opened("spawning", call)


@tool(effect="idempotent", heartbeat_timeout_s=ZOMBIE_HEARTBEAT_S)
async def zombie(call: Call) -> str:
    """Work until it is let go, in a worker that is stopped meanwhile."""
    if call.attempt > 1:
        OUTSIDE.note("zombie.again", call.idempotency_key)
        return "done elsewhere"
    return await _opened("zombie", call)


@tool(effect="once", heartbeat_timeout_s=ZOMBIE_HEARTBEAT_S)
async def late(call: Call) -> str:
    """Change something once; its first attempt is stopped before it begins."""
    OUTSIDE.note("late", call.idempotency_key)
    return "late done"


def script(transcript: tuple[Entry, ...]) -> Step:
    first = transcript[0]
    what = first.message.text if isinstance(first, UserEntry) else ""
    if what == "neighbour" and len(replies(transcript)) == 1:
        question = f"{results(transcript)[0].text}, and now?"
        return call("ask_participant", {"question": question})  # its run stays open, and no worker has it
    if what == "talk" or replies(transcript):
        return say(" | ".join(f"{result.status}: {result.text}" for result in results(transcript)) or "talked")
    return call(what)


def _stop_before_begun(point: str, concerns: tuple[str, ...]) -> None:
    """Stop this process before it asks the ledger, once."""
    if point == "tool.before_begun" and "late" in concerns:
        try:
            os.close(os.open(HOME / "stopped", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        OUTSIDE.note("stopping")
        os.kill(os.getpid(), signal.SIGSTOP)


install(_stop_before_begun)

TOOLS = (held, neighbour, once, poison, spawning, zombie, late)
agent = Agent(os.environ.get("PERDURE_TEST_AGENT", "watched"), model=scripted(script, loop=True), tools=TOOLS)
