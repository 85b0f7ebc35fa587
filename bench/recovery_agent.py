"""The agent whose workers are killed: its tool and its model note when an attempt of theirs began, and where."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

from perdure import Agent, Call, tool
from perdure.core.content import Entry
from perdure.core.faults import install
from perdure.testing import call, replies, say, scripted
from perdure.testing.script import Step

PLACE = Path(os.environ.get("PERDURE_BENCH_PLACE", "/nonexistent"))
STARTS = PLACE / "starts.log"
HELD = PLACE / "held"
HEARTBEAT_TIMEOUT_S = 2.0


def note(what: str, key: str = "", attempt: int = 0) -> None:
    line = json.dumps({"what": what, "key": key, "attempt": attempt, "pid": os.getpid(), "at_ns": time.time_ns()})
    log = os.open(STARTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(log, f"{line}\n".encode())
    os.close(log)


@tool(effect="idempotent", heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S)
async def hold(call: Call) -> str:
    """Work until it is killed; a second attempt has nothing left to do."""
    note("tool", call.idempotency_key, call.attempt)
    while call.attempt == 1 and HELD.exists():  # noqa: ASYNC110 - another process takes it away
        await asyncio.sleep(0.02)
    return "done"


def step(transcript: tuple[Entry, ...]) -> Step:
    note("model")
    return say("done") if replies(transcript) else call("hold")


def die_when_armed(point: str, concerns: tuple[str, ...]) -> None:
    """Kill this process inside a workflow task, once for each time that the file `armed` is made."""
    if point != "run.promoted":
        return
    try:
        os.rename(PLACE / "armed", PLACE / "fired")
    except FileNotFoundError:
        return
    os.utime(PLACE / "fired")
    os.kill(os.getpid(), signal.SIGKILL)


install(die_when_armed)

agent = Agent("recovery", model=scripted(step, loop=True), tools=[hold])
