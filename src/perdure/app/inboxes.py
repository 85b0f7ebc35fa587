"""Messages on their way to tasks: one update per task in flight, and what waits meanwhile goes as one batch.

Temporal takes ten updates of a workflow at once and answers each the later the more there are: with fifty in flight
five hundred messages did not arrive in minutes. One update that carries a batch takes as long as one that carries a
message. The order in which this process was given messages is the order in which their task gets them.
"""

import asyncio
from typing import Final

from perdure.core.errors import PerdureError, Unavailable
from perdure.temporal.contracts import InboxItem, Receipt
from perdure.temporal.tasks import TaskClient, accepted

BATCH_MAX: Final = 4
"""Messages of one update: with 256 KiB each (`MESSAGE_INLINE_BYTES_MAX`) they stay below Temporal's 2 MiB."""

Waiting = tuple[InboxItem, "asyncio.Future[Receipt]"]


class Inboxes:
    """Sends messages to tasks for one process."""

    def __init__(self, client: TaskClient) -> None:
        self._client = client
        self._waiting: dict[str, list[Waiting]] = {}
        self._carriers: set[asyncio.Task[None]] = set()

    async def send(self, task_id: str, item: InboxItem) -> Receipt:
        """Send a message; a receipt that comes back is durable. Raises what the task refused it with, or `Unavailable`.

        A caller that is cancelled meanwhile takes nothing back: the message may arrive.
        """
        receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(task_id)
        if waiting is None:
            self._waiting[task_id] = [(item, receipt)]
            carrier = asyncio.create_task(self._carry(task_id), name=f"perdure: inbox of {task_id}")
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)
        else:
            waiting.append((item, receipt))
        return accepted(task_id, await receipt)

    async def close(self) -> None:
        """Wait for what is on its way; it is bounded by the time that an update may take."""
        while self._carriers:
            await asyncio.wait(set(self._carriers))

    async def _carry(self, task_id: str) -> None:
        """Send batch after batch until nothing waits."""
        batch: list[Waiting] = []
        try:
            while waiting := self._waiting[task_id]:
                batch = waiting[:BATCH_MAX]
                del waiting[:BATCH_MAX]
                await self._send(task_id, batch)
        finally:
            unsent = Unavailable("the message was not sent; send it again under its id")
            _fail([*batch, *self._waiting.pop(task_id)], unsent)

    async def _send(self, task_id: str, batch: list[Waiting]) -> None:
        try:
            receipts = await self._client.send_all(task_id, tuple(item for item, _ in batch))
        except PerdureError as error:
            _fail(batch, error)
            return
        for (_, receipt), answer in zip(batch, receipts, strict=True):
            if not receipt.done():
                receipt.set_result(answer)


def _fail(batch: list[Waiting], error: PerdureError) -> None:
    for _, receipt in batch:
        if not receipt.done():
            receipt.set_exception(error)
