"""A client's side of tasks: starts and updates, with Temporal's errors turned into ours."""

import asyncio
import time
from datetime import timedelta
from typing import TypeVar, cast

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.core import limits
from perdure.core.content import Frozen
from perdure.core.digests import safe_text
from perdure.core.errors import (
    Diverged,
    InvalidInput,
    MessageConflict,
    MessageNotWaiting,
    PerdureError,
    TaskClosed,
    TaskNotFound,
    Unavailable,
)
from perdure.core.state import TaskState
from perdure.temporal.contracts import (
    ROLLING,
    TASK_WORKFLOW,
    AnswerRequest,
    InboxItem,
    InboxReply,
    Monitor,
    OperateRequest,
    Operation,
    Receipt,
    Recorded,
    TaskStart,
)

ANSWER_WITHIN_S = limits.ACKNOWLEDGE_WITHIN_S + 5.0
"""An update needs a live worker; without one it is reported as unavailable after this long."""

ASK_AGAIN_S = 0.02
"""Between two looks for what takes milliseconds."""

ResultT = TypeVar("ResultT")


class TaskClient:
    """Starts tasks and sends them updates. One per connection and task queue."""

    def __init__(self, client: Client, task_queue: str) -> None:
        self._client = client
        self._task_queue = task_queue

    async def start(self, start: TaskStart) -> None:
        """Start a task; when this returns it is durable, also with no worker up (P1).

        Raises `InvalidInput` when the id was used before, `Unavailable` when Temporal does not answer.
        """
        try:
            await self._client.start_workflow(
                TASK_WORKFLOW,
                start,
                id=start.task_id,
                task_queue=self._task_queue,
                task_timeout=timedelta(seconds=limits.WORKFLOW_TASK_TIMEOUT_S),
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            )
        except WorkflowAlreadyStartedError as error:
            raise InvalidInput("task_id", f"{start.task_id!r} exists already; choose another id") from error
        except RPCError as error:
            raise _unavailable(error) from error

    async def started_with(self, task_id: str) -> tuple[TaskStart, int] | None:
        """Return what a task was started with, and when in ms, from its history; None where there is none.

        This is what is known of a task that no worker has touched yet, and needs none.
        """
        try:
            async for event in self._client.get_workflow_handle(task_id).fetch_history_events(page_size=1):
                started = event.workflow_execution_started_event_attributes
                if started.workflow_type.name != TASK_WORKFLOW:
                    return None
                (start,) = await self._client.data_converter.decode(started.input.payloads, [TaskStart])
                return cast(TaskStart, start), event.event_time.ToMilliseconds()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return None
            raise _unavailable(error) from error
        return None

    async def operate(self, task_id: str, operations: tuple[Operation, ...]) -> tuple[Receipt, ...]:
        """Ask for operations in one request; one receipt each, in order, refusals among them."""
        reply = await self._update(task_id, "operate", OperateRequest(operations=operations), InboxReply)
        return reply.receipts

    async def send(self, task_id: str, item: InboxItem) -> Receipt:
        """Send one message; a receipt that comes back is durable. Raises what the task refused it with."""
        return await self._one(task_id, Operation(message=item))

    async def answer(self, task_id: str, help_id: str, text: str, by: str = "") -> Recorded:
        """Answer a help request. Raises `InvalidInput` when it is not open (any more), or does not take this."""
        return recorded(await self._one(task_id, answering(help_id, text, by)))

    async def stop(self, task_id: str) -> Recorded:
        """Stop the run; afterwards no call of it begins (P9)."""
        return recorded(await self._one(task_id, Operation(stop=True)))

    async def cancel(self, task_id: str) -> Recorded:
        """Cancel the task for good."""
        return recorded(await self._one(task_id, Operation(cancel=True)))

    async def _one(self, task_id: str, operation: Operation) -> Receipt:
        (receipt,) = await self.operate(task_id, (operation,))
        return accepted(task_id, receipt)

    async def state(self, task_id: str) -> TaskState:
        """Return the task's state from its workflow; needs a live worker."""
        return await self._query(task_id, "task", TaskState)

    async def monitor(self, task_id: str) -> Monitor:
        """Return what the task's workflow has under way; needs a live worker."""
        return await self._query(task_id, "monitor", Monitor)

    async def returned(self, task_id: str, within_s: float) -> bool:
        """Wait until the workflow of a task that has ended has returned; False when it has not in time.

        Its terminal row is in the store before that, and one more workflow task lies between: whoever ends the workers
        meanwhile leaves it to the next ones.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._client.get_workflow_handle(task_id).result()
        except (TimeoutError, RPCError):
            return False
        except WorkflowFailureError:
            pass
        return True

    async def _update(self, task_id: str, name: str, argument: Frozen, result: type[ResultT]) -> ResultT:
        handle = self._client.get_workflow_handle(task_id)
        rolling_until_s = time.monotonic() + limits.ROLLING_S
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                while True:
                    try:
                        return cast(ResultT, await handle.execute_update(name, argument, result_type=result))
                    except RPCError as error:
                        if not _came_too_late(error):
                            raise
                        # Never accepted: a task that continued takes it now, one that ended says so.
                    except WorkflowUpdateFailedError as error:
                        if not _is_rolling(error) or time.monotonic() >= rolling_until_s:
                            raise
                        await asyncio.sleep(ASK_AGAIN_S)
        except WorkflowUpdateFailedError as error:
            raise refused(task_id, error) from error
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
            _go_on_cancelling()
            raise Unavailable(f"no worker answered for task {task_id}; start one with `perdure worker`") from error
        except RPCError as error:
            raise _translated(task_id, error) from error

    async def _query(self, task_id: str, name: str, result: type[ResultT]) -> ResultT:
        handle = self._client.get_workflow_handle(task_id)
        within = timedelta(seconds=ANSWER_WITHIN_S)
        try:
            return cast(ResultT, await handle.query(name, result_type=result, rpc_timeout=within))
        except RPCError as error:
            raise _translated(task_id, error) from error


def _go_on_cancelling() -> None:
    """Go on being cancelled, where the SDK made an error of its own of that."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def answering(help_id: str, text: str, by: str = "") -> Operation:
    """Return the operation that answers a help request, in the name of who does."""
    return Operation(answer=AnswerRequest(help_id=safe_text(help_id), text=safe_text(text), by=safe_text(by)))


def recorded(receipt: Receipt) -> Recorded:
    """Return what an accepted operation recorded."""
    return Recorded(recorded=receipt.recorded, number=receipt.number or 0)


def accepted(task_id: str, receipt: Receipt) -> Receipt:
    """Return a receipt that took the message in; raise what the task refused it with."""
    match receipt.code:
        case None:
            return receipt
        case MessageConflict.code:
            raise MessageConflict(receipt.message_id)
        case TaskClosed.code:
            raise TaskClosed(task_id, receipt.closed or "closed")
        case Unavailable.code:
            raise Unavailable(receipt.problem or "the task takes nothing in now; send again later")
        case MessageNotWaiting.code:
            raise MessageNotWaiting((receipt.problem or "").removeprefix("message_id: "))
        case Diverged.code:
            raise Diverged(receipt.problem or "store and task disagree")
        case _:
            raise _invalid(receipt.problem or "message: refused")


def refused(task_id: str, error: WorkflowUpdateFailedError) -> PerdureError:
    """Say in our terms why an update failed."""
    cause = error.cause
    code = cause.type if isinstance(cause, ApplicationError) else None
    text = cause.message if isinstance(cause, ApplicationError) else str(cause)
    if code == "unavailable":
        return Unavailable(text)
    if code == Diverged.code:
        return Diverged(text)
    if code in {TaskClosed.code, "AcceptedUpdateCompletedWorkflow"}:
        return TaskClosed(task_id, "closed")
    return _invalid(text)


def _invalid(text: str) -> InvalidInput:
    field, _, problem = text.partition(": ")
    return InvalidInput(field, problem) if problem else InvalidInput("request", text)


def _came_too_late(error: RPCError) -> bool:
    """Whether an update was on its way when the workflow's run closed; it was not accepted."""
    return error.status == RPCStatusCode.NOT_FOUND and "aborted by closing workflow" in error.message


def _is_rolling(error: WorkflowUpdateFailedError) -> bool:
    """Whether a task refused only because it was continuing in a new run."""
    cause = error.cause
    return isinstance(cause, ApplicationError) and ROLLING in cause.details


def _translated(task_id: str, error: RPCError) -> PerdureError:
    if error.status == RPCStatusCode.NOT_FOUND:
        if "already completed" in error.message:
            return TaskClosed(task_id, "closed")
        return TaskNotFound(task_id)
    return _unavailable(error)


def _unavailable(error: RPCError) -> Unavailable:
    return Unavailable(f"Temporal does not answer ({error.status.name.lower()}): {error.message}")
