"""The operations of our extension: push a message ahead, take one back, stop the run, see what waits (`extension.py`).

What A2A has no operation for. They are called as the others are, on every binding, by the same callers under the same
limits, and answer with a plain JSON object:

- `StopTask` (`id`): the run ends, what waits is parked, and no call of it begins any more (P9). `stopped` is false when
  nothing ran. CancelTask ends the task instead; a stopped one goes on with the next message. For a task that is being
  canceled it is refused: no message will go on there.
- `SteerMessage` (`id`, `messageId`): a message that waits joins the run at its next turn, or opens one (R5).
- `WithdrawMessage` (`id`, `messageId`): a message that waits is taken back, and never acted on (R6).
- `GetInbox` (`id`): what waits, in the order in which it goes. Each message has its `lane`, whether it is `runnable` or
  parked, and the numbers of its admission and of its latest move. Both are 0, like `generation`, in a task that was
  accepted and that no worker has taken up yet.

`generation` is the number of the event that recorded it, or of the last one that there was. What is refused names the
field: a message that does not wait, a task that has ended.
"""

from typing import Final, cast

from a2a.server.context import ServerCallContext
from a2a.utils.errors import InvalidParamsError
from pydantic import JsonValue

from perdure.a2a import extension
from perdure.a2a.caller import caller_of, told_of
from perdure.a2a.errors import RETRY_AFTER_S, ServiceUnavailableError, invalid, translating
from perdure.a2a.tasks import Found, TaskReader
from perdure.app.app import App
from perdure.core.errors import InvalidInput, TaskClosed
from perdure.core.inbox import WaitingMessage, inbox_at_start

Json = dict[str, JsonValue]

FIELDS: Final = {
    extension.STOP: ("id",),
    extension.STEER: ("id", "messageId"),
    extension.WITHDRAW: ("id", "messageId"),
    extension.INBOX: ("id",),
}
"""What each operation is given; all of it texts, and all of it needed."""


class Lanes:
    """Serves the operations for one agent's tasks."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._reader = TaskReader(app)

    async def answer(self, name: str, params: JsonValue, context: ServerCallContext) -> Json:
        """Carry out the operation of that name; return its result. Raises A2A's errors."""
        try:
            with translating():
                given = _given(name, params)
                found = await self._reader.find(given["id"], caller_of(context))
                return await self._carried_out(name, found, given.get("messageId", ""))
        except ServiceUnavailableError:
            told_of(context).retry_after_s = RETRY_AFTER_S
            raise

    async def _carried_out(self, name: str, found: Found, message_id: str) -> Json:
        task_id = found.header.task_id
        if name == extension.INBOX:
            inbox = inbox_at_start(each.message_id for each in found.messages)
            inbox = await self._app.task(task_id).inbox() if found.last_number else inbox
            return {"generation": str(inbox.number), "messages": [_told(each) for each in inbox.messages]}
        if found.terminal:
            raise TaskClosed(task_id, found.state)
        if name == extension.STOP:
            stopped = await self._app.inboxes.stop(task_id)
            return {"stopped": stopped.recorded, "generation": str(stopped.number)}
        ask = self._app.inboxes.steer if name == extension.STEER else self._app.inboxes.withdraw
        try:
            changed = await ask(task_id, message_id)
        except InvalidInput as error:
            if error.field != "message_id":
                raise
            raise invalid("messageId", error.problem, error.code) from error
        return {"generation": str(changed.number)}


def _given(name: str, params: JsonValue) -> dict[str, str]:
    """Return the parameters; raises A2A's error for what is missing or no text. Others are ignored, as in A2A."""
    if not isinstance(params, dict):
        raise InvalidParamsError(message=f"params: must be an object with {' and '.join(FIELDS[name])}")
    for field in FIELDS[name]:
        if not isinstance(params.get(field), str) or not params[field]:
            raise invalid(field, "is missing; give the id as a text")
    return {field: cast(str, params[field]) for field in FIELDS[name]}


def _told(message: WaitingMessage) -> Json:
    return {
        "messageId": message.message_id,
        "lane": message.lane,
        "runnable": message.runnable,
        "admitted": str(message.admitted),
        "tail": str(message.tail),
    }
