"""What people ask of tasks, on its way: one request per task in flight, and what waits meanwhile goes as one batch.

Temporal takes ten updates of a workflow at once, two thousand in one history, and answers each the later the more there
are: with fifty in flight five hundred messages did not arrive in minutes. One update that carries a batch takes as long
as one that carries a message. So messages, moves, withdrawals and answers go in batches, in the order in which this
process was given them.

A stop and a cancel wait for nothing: they have a request of their own beside that one, and overtake messages that
nobody has acknowledged yet.
"""

import asyncio
from typing import Final, Literal

from perdure.app.messages import refuse_unusable
from perdure.core import limits
from perdure.core.errors import InvalidInput, PerdureError, Unavailable
from perdure.temporal.contracts import InboxItem, Operation, Receipt, Recorded
from perdure.temporal.tasks import TaskClient, accepted, answering, recorded

BATCH_MAX: Final = 64
"""Operations of one batch; each adds an event or two, which leave with one write."""

Way = tuple[str, Literal["in order", "at once"]]
"""A task, and which of its two requests carries an operation."""

Waiting = tuple[Operation, "asyncio.Future[Receipt]"]


class Inboxes:
    """Asks tasks for one process."""

    def __init__(self, client: TaskClient) -> None:
        self._client = client
        self._waiting: dict[Way, list[Waiting]] = {}
        self._carriers: set[asyncio.Task[None]] = set()

    async def send(self, task_id: str, item: InboxItem) -> Receipt:
        """Send a message; a receipt that comes back is durable. Raises what the task refused it with, or `Unavailable`.

        A caller that is cancelled meanwhile takes nothing back: the message may arrive.
        """
        return await self._ask((task_id, "in order"), Operation(message=item))

    async def steer(self, task_id: str, message_id: str) -> Recorded:
        """Move a message that waits to the steer lane (R5); raises `MessageNotWaiting` for one that does not."""
        _refuse_unusable(message_id)
        return recorded(await self._ask((task_id, "in order"), Operation(steer=message_id)))

    async def withdraw(self, task_id: str, message_id: str) -> Recorded:
        """Take a message back (R6); raises `MessageNotWaiting` for one that does not wait."""
        _refuse_unusable(message_id)
        return recorded(await self._ask((task_id, "in order"), Operation(withdraw=message_id)))

    async def answer(self, task_id: str, help_id: str, text: str, by: str = "") -> Recorded:
        """Answer a help request; raises `InvalidInput` when it is not open (any more), or does not take this."""
        return recorded(await self._ask((task_id, "in order"), answering(help_id, text, by)))

    async def stop(self, task_id: str) -> Recorded:
        """Stop the run; afterwards no call of it begins (P9)."""
        return recorded(await self._ask((task_id, "at once"), Operation(stop=True)))

    async def cancel(self, task_id: str) -> Recorded:
        """Cancel the task for good."""
        return recorded(await self._ask((task_id, "at once"), Operation(cancel=True)))

    async def close(self) -> None:
        """Wait for what is on its way; it is bounded by the time that a request may take."""
        while self._carriers:
            await asyncio.wait(set(self._carriers))

    async def _ask(self, way: Way, operation: Operation) -> Receipt:
        receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.get(way)
        if waiting is None:
            self._waiting[way] = [(operation, receipt)]
            carrier = asyncio.create_task(self._carry(way), name=f"perdure: inbox of {way[0]}")
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)
        else:
            waiting.append((operation, receipt))
        return accepted(way[0], await receipt)

    async def _carry(self, way: Way) -> None:
        """Send batch after batch until nothing waits."""
        batch: list[Waiting] = []
        try:
            while waiting := self._waiting[way]:
                count = _fitting(waiting)
                batch = waiting[:count]
                del waiting[:count]
                await self._send(way[0], batch)
        finally:
            unsent = Unavailable("it was not sent; ask again, a message under its id")
            _fail([*batch, *self._waiting.pop(way)], unsent)

    async def _send(self, task_id: str, batch: list[Waiting]) -> None:
        try:
            receipts = await self._client.operate(task_id, tuple(operation for operation, _ in batch))
        except PerdureError as error:
            _fail(batch, error)
            return
        except ValueError as error:  # what no JSON in UTF-8 can say; others that wait are not to be held up by it
            _fail(batch, InvalidInput("operation", f"cannot be sent ({error}); correct its text"))
            return
        for (_, receipt), answer in zip(batch, receipts, strict=True):
            if not receipt.done():
                receipt.set_result(answer)


def _refuse_unusable(message_id: str) -> None:
    """Raise `InvalidInput` for an id that no message can have: nobody else's batch is to be refused for it."""
    refuse_unusable("message_id", message_id, limits.MESSAGE_ID_CHARS_MAX)


def _fitting(waiting: list[Waiting]) -> int:
    """Return how many of those that wait go as one batch: at least one."""
    if len(waiting) == 1:
        return 1
    count, size = 0, 0
    for operation, _ in waiting[:BATCH_MAX]:
        size += len(operation.model_dump_json().encode())
        if count and size > limits.BATCH_BYTES_MAX:
            break
        count += 1
    return count


def _fail(batch: list[Waiting], error: PerdureError) -> None:
    for _, receipt in batch:
        if not receipt.done():
            receipt.set_exception(error)
