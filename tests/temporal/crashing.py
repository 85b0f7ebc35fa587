"""The agent of the crash tests, as a worker process loads it: `tests.temporal.crashing:agent`.

What a task does follows from its first message, so that one worker can be killed in the middle of everything at once.
Tools note in the outside's log that they were reached, and wait until a file says that they may go on.

`PERDURE_TEST_DIE_AFTER` names a method of the store after whose first commit in this place the process kills itself:
the exact instruction between "it is recorded" and "somebody knows".
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from perdure import Agent, Call, Check, tool
from perdure.core.agent import RetryPolicy
from perdure.core.content import Entry, UserEntry
from perdure.store.sql_store import SqlStore
from perdure.testing import call, replies, results, say, scripted
from perdure.testing.script import Step
from tests.temporal.outside import Outside

HOME = Path(os.environ.get("PERDURE_TEST_PLACE", "/nonexistent"))
OUTSIDE = Outside(HOME / "outside.log")
HEARTBEAT_S = 2.0
FAST = RetryPolicy(attempts_max=3, first_ms=50, factor=1.0)


async def _held(what: str, call: Call) -> str:
    OUTSIDE.note(what, call.idempotency_key)
    while not (HOME / "open").exists():  # noqa: ASYNC110 - another process makes it, and sets no event here
        await asyncio.sleep(0.02)
    OUTSIDE.note(f"{what}.end", call.idempotency_key)
    return f"{what} done"


@tool(effect="read", heartbeat_timeout_s=HEARTBEAT_S, retry=FAST)
async def read(call: Call) -> str:
    """Read."""
    return await _held("read", call)


@tool(effect="idempotent", heartbeat_timeout_s=HEARTBEAT_S, retry=FAST)
async def idempotent(call: Call) -> str:
    """Change something in a way that is safe to repeat."""
    return await _held("idempotent", call)


@tool(effect="once", heartbeat_timeout_s=HEARTBEAT_S)
async def once(call: Call) -> str:
    """Change something once."""
    return await _held("once", call)


@tool(
    effect="once", heartbeat_timeout_s=HEARTBEAT_S, settle_s=0, check=lambda key: Check.happened("the outside has it")
)
async def happened(call: Call) -> str:
    """Change something once; the outside can tell that it did."""
    return await _held("happened", call)


@tool(effect="once", heartbeat_timeout_s=HEARTBEAT_S, settle_s=0, check=lambda key: Check.never())
async def never(call: Call) -> str:
    """Change something once; the outside can tell that it did not and never will."""
    return await _held("never", call)


TOOLS = (read, idempotent, once, happened, never)


def script(transcript: tuple[Entry, ...]) -> Step:
    first = transcript[0]
    what = first.message.text if isinstance(first, UserEntry) else ""
    said = len(replies(transcript))
    OUTSIDE.note(f"model {what} {said + 1}")
    if what == "model" and said == 0:
        return say("thought about it", delay_s=60.0 if OUTSIDE.count(f"model {what} 1") == 1 else 0.0)
    if said == 0:
        return call("ask_participant", {"question": "Which?"}) if what == "ask" else call(what)
    return say(" | ".join(f"{result.status}: {result.text}" for result in results(transcript)))


def _dies_after(name: str) -> None:
    kept: Callable[..., Awaitable[Any]] = getattr(SqlStore, name)

    async def dying(*given: Any, **named: Any) -> Any:
        result = await kept(*given, **named)
        died = HOME / "died"
        if not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(SqlStore, name, dying)


if os.environ.get("PERDURE_TEST_DIE_AFTER"):
    _dies_after(os.environ["PERDURE_TEST_DIE_AFTER"])

agent = Agent(
    os.environ.get("PERDURE_TEST_AGENT", "crashing"),
    model=scripted(*([script] * 4)),
    tools=TOOLS,
    model_heartbeat_timeout_s=HEARTBEAT_S,
    model_retry=FAST,
)
