"""A bounded wait in a workflow that takes the same steps of its loop under every Python.

The SDK's own (`wait_condition` with a timeout) stands on `asyncio.wait_for`, which goes on one step of the loop earlier
from Python 3.12 on than before. The order of a history's commands then differs, and a task that began under 3.11 would
not go on under 3.12 (P11).
"""

import asyncio
from collections.abc import Callable

from temporalio import workflow


async def within(holds: Callable[[], bool], bound_s: float) -> bool:
    """Wait until it holds, for so many seconds at most; return whether it does."""
    over = False

    def end() -> None:
        nonlocal over
        over = True

    timer = asyncio.get_running_loop().call_later(bound_s, end)
    try:
        await workflow.wait_condition(lambda: holds() or over)
        await asyncio.sleep(0)  # the step that `wait_for` took up to 3.11: recorded tasks have their order from it
    finally:
        timer.cancel()
    return holds()
