"""A `once` tool over an outside that can close keys, and ways for its first attempt to end.

Run as `python -m tests.tools.striking PLACE STORE POINT` it makes the first attempt, and kills itself at a fault point.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from perdure import Call, Check, tool
from perdure.core import faults
from perdure.store import open_store
from perdure.tools import FunctionTool, LedgerExecutor
from tests.temporal.outside import Outside
from tests.tools.bench import BATCH, NOW_MS, Bench

Strike = Callable[[Call], Awaitable[None]]


async def spare(call: Call) -> None:
    """Let the call go on."""


class Acting:
    """The outside, and the tool `act` that changes it. The strikes are what becomes of a call before and after."""

    def __init__(self, place: Path, *, checks: bool = False, before: Strike = spare, after: Strike = spare) -> None:
        self.outside = Outside(place / "outside.log")

        @tool(name="act", check=self.check if checks else None, settle_s=0 if checks else None)
        async def act(call: Call) -> str:
            await before(call)
            self.change(call.idempotency_key)
            await after(call)
            return "done"

        self.act: FunctionTool[..., Any] = act

    def change(self, key: str) -> None:
        if any(noted.key == key for noted in self.outside.of("closed")):
            raise OSError(f"the outside has closed {key}")
        self.outside.note("change", key)

    def check(self, key: str) -> Check:
        if any(noted.key == key for noted in self.outside.of("change")):
            return Check.happened("the outside has it")
        self.outside.note("closed", key)
        return Check.never()

    @property
    def changes(self) -> list[str]:
        """The keys of the changes that the outside saw."""
        return [noted.key for noted in self.outside.of("change")]


async def main(place: str, store_url: str, point: str) -> None:
    def die(reached: str, concerns: tuple[str, ...]) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    store = await open_store(store_url)
    acting = Acting(Path(place))
    executor = LedgerExecutor(store, {"act": acting.act}, "worker-killed", lambda: NOW_MS)
    faults.install(die)
    await executor.execute(BATCH, Bench(store).request("act"), "call-1", {})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
