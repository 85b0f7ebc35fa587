"""A call to the shop as its caller sees it: it takes time before the effect and after it.

A kill or a cancellation therefore hits a call that has not happened yet, or one that has and whose answer nobody
got. A cancelled call either applied or did not; the shop's log tells which.
"""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

from tests.retail.data import Json
from tests.retail.shop import Answer, Finding, Shop, shop_path, task_of

Hold = Callable[[str, int], tuple[float, float]]
"""From a key and an attempt: the seconds that a call takes before its effect is committed, and after."""


def no_hold(key: str, attempt: int) -> tuple[float, float]:
    """Take no time."""
    del key, attempt
    return 0.0, 0.0


def seeded_hold(seed: int, low_s: float, high_s: float) -> Hold:
    """Take between `low_s` and `high_s` in all, the effect anywhere within; the same for the same seed and attempt."""

    def hold(key: str, attempt: int) -> tuple[float, float]:
        drawn = hashlib.sha256(f"{seed}/{key}/{attempt}".encode()).digest()
        length, moment = (int.from_bytes(part, "big") / 2**64 for part in (drawn[:8], drawn[8:16]))
        whole_s = low_s + (high_s - low_s) * length
        return whole_s * moment, whole_s * (1 - moment)

    return hold


async def serve(folder: Path, tool: str, arguments: Json, key: str, attempt: int, hold: Hold) -> Answer:
    """Make a call to the shop of the key's task, with its time."""
    shop = Shop(shop_path(folder, task_of(key)))
    before_s, after_s = hold(key, attempt)
    # Both notes are short and unsynced; in a thread, a cancellation in between could leave an arrival open.
    arrival = shop.arrive(tool, key)
    try:
        await asyncio.sleep(before_s)
        # A cancelled call leaves the thread to commit behind its back. A check that came first has closed the key.
        answer = await asyncio.to_thread(shop.call, tool, arguments, key)
        await asyncio.sleep(after_s)
    finally:
        shop.leave(arrival)
    return answer


async def look_up(folder: Path, key: str) -> Finding:
    """Ask the shop what became of a key; closes one that it does not know."""
    return await asyncio.to_thread(Shop(shop_path(folder, task_of(key))).find, key)
