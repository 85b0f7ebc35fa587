"""Taking messages in: what SendMessage and its streaming form have in common.

A first message starts a task. The start is durable in Temporal before anything else is written, and the message
travels in it, so that a server killed right after has lost nothing and left nothing behind: the next worker writes the
task's rows. Before that the store is only asked, and the context claimed, which alone shows nowhere. After it the
server writes the task's row without events, so that the task is listed before a worker has touched it; the workflow's
first write finds the same row. Refused: a row of our own before the start. Killed in between, it would be a task that
nothing works on.

The same first message under the same idempotency key is the same task; other content under it is refused. To a task
that exists a message goes through its inbox, which knows the ids that it has seen (P1) and lets a message answer the
question that is open, in one step.
"""

import reprlib
from dataclasses import dataclass
from typing import cast

from a2a.types.a2a_pb2 import SendMessageRequest
from a2a.utils.errors import UnsupportedOperationError
from pydantic import JsonValue

from perdure.a2a import extension
from perdure.a2a.caller import Caller, checked_key
from perdure.a2a.errors import invalid
from perdure.a2a.incoming import taken_in
from perdure.a2a.sharing import shared_with
from perdure.a2a.task_ids import derived_task_id, fresh_context_id, fresh_task_id
from perdure.a2a.tasks import Found, TaskReader
from perdure.app.app import App
from perdure.app.clock import now_ms
from perdure.core import faults, limits
from perdure.core.content import Lane, Message
from perdure.core.digests import safe_text
from perdure.core.errors import InvalidInput, MessageConflict, StoreUnavailable, TaskClosed
from perdure.core.log import Batch
from perdure.temporal.admissible import message_digest
from perdure.temporal.contracts import InboxItem


@dataclass(frozen=True)
class Accepted:
    """A message that is durable: its task, and the number of the event before the one that took it in."""

    found: Found
    message: Message
    after: int


class Sending:
    """Takes messages in for one agent."""

    def __init__(self, app: App, reader: TaskReader) -> None:
        self._app = app
        self._reader = reader

    async def accept(self, request: SendMessageRequest, caller: Caller) -> Accepted:
        """Take the message in; when this returns it is durable.

        Raises A2A's errors for what is refused, and errors of this package.
        """
        if request.message.task_id:
            return await self._to_task(request, caller)
        return await self._first(request, caller)

    # --- a first message ----------------------------------------------------------------------------------------

    async def _first(self, request: SendMessageRequest, caller: Caller) -> Accepted:
        key = _key(request, caller)
        task_id = fresh_task_id() if key is None else derived_task_id(caller.principal, self._app.agent.id, key)
        faults.reach("send.arrived", task_id, request.message.message_id)
        named = _context_id(request.message.context_id)
        context_id = named or fresh_context_id()
        if named:
            await self._app.store.claim_context(context_id, caller.principal, now_ms())
            faults.reach("send.claimed", task_id, request.message.message_id)
        message = await taken_in(request.message, self._app.store)
        if key is not None and await self._app.store.task(task_id) is not None:
            return await self._again(task_id, named, message, caller)
        earlier = await self._app.ended_in(named, caller.principal)
        shared = shared_with(request, caller)
        start = self._app.start_of(message, task_id, context_id, caller.principal, shared_with=shared, earlier=earlier)
        try:
            await self._app.client.start(start)
        except InvalidInput:
            return await self._again(task_id, named, message, caller)
        faults.reach("send.started", task_id, message.message_id)
        found = Found(start.header, created_at_ms=now_ms(), messages=start.messages)
        await self._show(found)
        faults.reach("send.shown", task_id, message.message_id)
        return Accepted(found, message, after=0)

    async def _show(self, found: Found) -> None:
        """Write the row by which the task is listed. Where that fails the task is accepted all the same."""
        batch = Batch(task_id=found.header.task_id, header=found.header)
        try:
            await self._app.store.write(batch, found.created_at_ms)
        except StoreUnavailable:
            return  # its workflow writes it as soon as the store answers

    async def _again(self, task_id: str, named: str, message: Message, caller: Caller) -> Accepted:
        """Return the task that this key stands for; raises `MessageConflict` when it was another message's."""
        found = await self._reader.find(task_id, caller)
        digest = message_digest(message)
        if found.messages:
            await self._show(found)
            known = {each.message_id: message_digest(each) for each in found.messages}.get(message.message_id)
        else:
            admission = await self._app.store.admission(task_id, message.message_id)
            known = None if admission is None else admission.digest
        if known != digest or named not in {"", found.header.context_id}:
            raise MessageConflict(message.message_id)
        return Accepted(found, message, after=0)

    # --- a further message --------------------------------------------------------------------------------------

    async def _to_task(self, request: SendMessageRequest, caller: Caller) -> Accepted:
        given = request.message
        faults.reach("send.arrived", given.task_id, given.message_id)
        found = await self._reader.find(given.task_id, caller)
        if given.context_id and given.context_id != found.header.context_id:
            raise invalid("message.contextId", f"is not that of task {given.task_id!r}; leave it out or give that one")
        message = await taken_in(given, self._app.store)
        if found.terminal:
            return await self._known(found, message)
        fields = extension.asked(given.metadata)
        lane, help_id = _lane(fields), _help_id(fields)
        # Who names a lane says where the message is to wait, and means no question that happens to be open by then.
        answers = lane is None or help_id is not None
        item = InboxItem(message=message, lane=lane, answers=answers, help_id=help_id, by=caller.principal)
        try:
            receipt = await self._app.inboxes.send(given.task_id, item)
        except TaskClosed:
            # It ended meanwhile. Whether it had taken this message in before tells the store (P1).
            if await self._app.store.admission(given.task_id, message.message_id) is None:
                raise
            return await self._known(await self._reader.find(given.task_id, caller), message)
        faults.reach("send.admitted", given.task_id, message.message_id)
        return Accepted(found, message, after=(receipt.number or 1) - 1)

    async def _known(self, found: Found, message: Message) -> Accepted:
        """Return a message that a task took in before it ended; every other one is refused (A2A 3.1.1)."""
        admission = await self._app.store.admission(found.header.task_id, message.message_id)
        if admission is None:
            raise UnsupportedOperationError(
                message=f"task {found.header.task_id!r} is {found.state} and takes no more messages; start a new task",
                data={"taskId": found.header.task_id, "state": found.state},
            )
        if admission.digest != message_digest(message):
            raise MessageConflict(message.message_id)
        return Accepted(found, message, after=admission.number - 1)


def _key(request: SendMessageRequest, caller: Caller) -> str | None:
    for metadata in (request.message.metadata, request.metadata):
        key = extension.asked(metadata).get("idempotencyKey")
        if key is not None:
            return checked_key("metadata.idempotencyKey", key if isinstance(key, str) else "")
    return caller.idempotency_key


def _context_id(named: str) -> str:
    if len(named) > limits.CONTEXT_ID_CHARS_MAX or safe_text(named) != named:
        problem = f"must have at most {limits.CONTEXT_ID_CHARS_MAX} characters, no NUL among them"
        raise invalid("message.contextId", problem)
    return named


def _lane(fields: dict[str, JsonValue]) -> Lane | None:
    lane = fields.get("lane")
    if lane is None or (isinstance(lane, str) and lane in {"steer", "queue"}):  # any JSON may have come
        return cast(Lane | None, lane)
    raise invalid("message.metadata.lane", f"{reprlib.repr(lane)} is no lane; use steer or queue")


def _help_id(fields: dict[str, JsonValue]) -> str | None:
    help_id = fields.get("helpId")
    if help_id is None or isinstance(help_id, str):
        return help_id
    raise invalid("message.metadata.helpId", f"{reprlib.repr(help_id)} is no id; give an open question's, as a text")
