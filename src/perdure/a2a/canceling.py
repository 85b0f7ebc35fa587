"""CancelTask: terminal, and answered with the task as it then is."""

import asyncio

from a2a.utils.errors import TaskNotCancelableError

from perdure.a2a.streams import Streams
from perdure.a2a.tasks import Found
from perdure.a2a.translate import TaskView
from perdure.app.app import App
from perdure.core import limits
from perdure.core.errors import TaskClosed


async def canceled(app: App, streams: Streams, found: Found) -> TaskView:
    """Cancel a task; return it as of its end.

    When this returns nothing of it begins any more (P9). A call that was under way may take longer than
    CANCEL_WAIT_S to end; then the task is returned as it is until that, and is canceled all the same.

    Raises A2A's TaskNotCancelableError for a task that has ended; `Unavailable` where no worker answers.
    """
    if found.terminal:
        raise _ended(found, found.state)
    try:
        recorded = await app.inboxes.cancel(found.header.task_id)
    except TaskClosed as error:
        raise _ended(found, error.problem) from error
    view = await streams.as_of(found, recorded.number)
    try:
        async with asyncio.timeout(limits.CANCEL_WAIT_S):
            return await streams.until_rest(found, recorded.number)
    except TimeoutError:
        return view


def _ended(found: Found, state: str) -> TaskNotCancelableError:
    return TaskNotCancelableError(
        message=f"task {found.header.task_id!r} has ended ({state}) and cannot be canceled",
        data={"taskId": found.header.task_id},
    )
