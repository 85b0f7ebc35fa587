"""A workflow whose activities are completed by the test itself, so that each acknowledged completion is known."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

PROBE_QUEUE = "probe"
STEP_TIMEOUT_S = 3
"""A step that Temporal counts as begun and this test never got is begun again after this long."""


@workflow.defn
class Probe:
    def __init__(self) -> None:
        self._over = False

    @workflow.run
    async def run(self) -> list[str]:
        """Make one step after the other until it is over; return what each was completed with."""
        said: list[str] = []
        while not self._over:
            result: str = await workflow.execute_activity(
                "step", len(said), result_type=str, start_to_close_timeout=timedelta(seconds=STEP_TIMEOUT_S)
            )
            said.append(result)
        return said

    @workflow.signal
    def end(self) -> None:
        self._over = True


class Completer:
    """Completes steps by their tokens; `acknowledged` is what Temporal said yes to, by workflow and step."""

    def __init__(self, client: Client) -> None:
        self.acknowledged: dict[tuple[str, int], str] = {}
        self._client = client
        self._begun: asyncio.Queue[tuple[str, int, bytes]] = asyncio.Queue()
        self._values = 0

    @activity.defn(name="step")
    async def step(self, number: int) -> str:
        info = activity.info()
        self._begun.put_nowait((str(info.workflow_id), number, info.task_token))
        activity.raise_complete_async()

    async def run(self) -> None:
        while True:
            workflow_id, number, token = await self._begun.get()
            self._values += 1
            await self._complete(workflow_id, number, token, f"value {self._values}")

    async def more(self, count: int) -> None:
        """Wait until so many more completions were acknowledged."""
        enough = len(self.acknowledged) + count
        while len(self.acknowledged) < enough:  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.005)

    async def _complete(self, workflow_id: str, number: int, token: bytes, value: str) -> None:
        handle: Any = self._client.get_async_activity_handle(task_token=token)
        while True:
            try:
                await handle.complete(value)
            except RPCError as error:
                if error.status == RPCStatusCode.NOT_FOUND:
                    return  # timed out meanwhile, or completed by a try whose answer was lost: nothing was promised
                await asyncio.sleep(0.05)
                continue
            self.acknowledged[workflow_id, number] = value
            return
