"""The smallest workflows that can be caught in the middle."""

import asyncio
from datetime import timedelta

from pydantic import BaseModel
from temporalio import activity, workflow

TASK_QUEUE = "embedded-tests"


class Greeting(BaseModel):
    """A typed payload, which only the pydantic converter carries as such."""

    text: str
    times: tuple[int, ...] = ()


@workflow.defn
class Waiting:
    """Returns what it was given once it was signalled, after a timer of its own."""

    def __init__(self) -> None:
        self._released = False

    @workflow.run
    async def run(self, greeting: Greeting) -> Greeting:
        await workflow.sleep(timedelta(milliseconds=100))
        await workflow.wait_condition(lambda: self._released)
        return Greeting(text=greeting.text, times=(*greeting.times, 1))

    @workflow.signal
    def release(self) -> None:
        self._released = True


@activity.defn
async def endless() -> None:
    """Runs until it is cancelled, and says so at once."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.1)


@workflow.defn
class Endless:
    """Runs an activity that has every reason to hear of its cancellation late."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            endless,
            start_to_close_timeout=timedelta(minutes=5),
            heartbeat_timeout=timedelta(seconds=30),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
