"""The agent whose runs are stopped: its tool and its model note when they were called and when they were cancelled."""

import asyncio
import json
import os
import time
from pathlib import Path

from perdure import Agent, Call, RetryPolicy, tool
from perdure.core.content import ModelReply, ToolCall
from perdure.core.errors import ModelError
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest
from perdure.testing import last_user

NOTES = Path(os.environ.get("PERDURE_BENCH_PLACE", "/nonexistent")) / "notes.log"
BACKOFF_MS = 600_000


def note(what: str, task_id: str) -> None:
    line = json.dumps({"what": what, "task": task_id, "at_ns": time.time_ns()})
    log = os.open(NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(log, f"{line}\n".encode())
    os.close(log)


async def until_stopped(task_id: str) -> None:
    note("begun", task_id)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note("cancelled", task_id)
        raise


@tool(effect="once")
async def hold(call: Call) -> str:
    """Work until it is stopped."""
    await until_stopped(call.task_id)
    return "never"


class Asked:
    """A model that does what the message says: call the tool, think until it is stopped, or be busy."""

    name = "asked"

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        match last_user(request.transcript):
            case "tool":
                return ModelReply(calls=(ToolCall(call_id="c-1", tool="hold", arguments={}),), model=self.name)
            case "model":
                await until_stopped(request.task_id)
            case _:
                raise ModelError("busy", retryable=True)
        return ModelReply(text="never", model=self.name)


agent = Agent(
    "stopped",
    model=Asked(),
    tools=[hold],
    model_retry=RetryPolicy(attempts_max=5, first_ms=BACKOFF_MS, delay_max_ms=BACKOFF_MS),
)
