"""Messages: one row per id, with what its admission in the log and its body say; both must name one content (P1).

A row of the log may be written before the body that it admits, or after it. The store knows every id that a task
ever took in, also those that its workflow has forgotten.
"""

from collections.abc import Sequence

from sqlalchemy import BindParameter, Connection, bindparam, insert, select, update

from perdure.core.content import Message, UserEntry
from perdure.core.errors import MessageConflict, StoreAhead, StoreUnavailable
from perdure.core.log import LogEvent
from perdure.core.ports import Admission
from perdure.store.bodies import encode, identifier
from perdure.store.inserting import insert_missing
from perdure.store.schema import entries, messages
from perdure.store.task_rows import OpenTask

_OF_TASK: BindParameter[str] = bindparam("of_task")
_OF_ID: BindParameter[str] = bindparam("of_id")
_MESSAGE = select(messages.c.digest, messages.c.number, messages.c.stored_at_ms).where(
    messages.c.task_id == _OF_TASK, messages.c.message_id == _OF_ID
)
_COMPLETE = update(messages).where(messages.c.task_id == _OF_TASK, messages.c.message_id == _OF_ID)
_INSERT = insert(messages)
_NAMED_BY: dict[str, str] = {"message.admitted": "digest", "help.answered": "message_digest"}
"""The rows that take a message in, and where each has its digest: an answer may come as a message."""


def write_messages(connection: Connection, task: OpenTask, given: Sequence[Message], at_ms: int) -> None:
    """Store bodies; raises `MessageConflict` where the id stands with other content."""
    for message in given:
        body = encode(UserEntry(message=message), f"message {message.message_id!r}")
        standing = connection.execute(_MESSAGE, {"of_task": task.task_id, "of_id": message.message_id}).one_or_none()
        if standing is not None and standing.digest != body.digest:
            raise MessageConflict(message.message_id)
        if standing is not None and standing.stored_at_ms is not None:
            continue
        _write(connection, task, message.message_id, standing is None, digest=body.digest, stored_at_ms=at_ms)
        insert_missing(connection, entries, [{"task_id": task.task_id, "digest": body.digest, "body": body.text}])


def write_admissions(connection: Connection, task: OpenTask, new: Sequence[LogEvent]) -> None:
    """Note the numbers of admissions; raises `StoreAhead` where the id stands with other content or number."""
    for row in new:
        if row.kind not in _NAMED_BY:
            continue
        message_id, digest = row.data.get("message_id"), row.data.get(_NAMED_BY[row.kind])
        if not isinstance(message_id, str) or not isinstance(digest, str):
            continue
        identifier(f"row {row.number}.data.message_id", message_id)
        standing = connection.execute(_MESSAGE, {"of_task": task.task_id, "of_id": message_id}).one_or_none()
        if standing is not None and (standing.digest != digest or standing.number is not None):
            raise StoreAhead(
                f"P1: message {message_id!r} of task {task.task_id} is admitted by row {row.number}, but stands in the "
                f"store with {'other content' if standing.digest != digest else f'row {standing.number}'}"
            )
        _write(connection, task, message_id, standing is None, digest=digest, number=row.number)


def _write(connection: Connection, task: OpenTask, message_id: str, new: bool, **values: object) -> None:
    if new:
        connection.execute(_INSERT, {"task_id": task.task_id, "message_id": message_id, **values})
    else:
        connection.execute(_COMPLETE, {"of_task": task.task_id, "of_id": message_id, **values})
    task.changed = True


def read_admission(connection: Connection, task_id: str, message_id: str) -> Admission | None:
    """Return how the message was admitted, or None.

    Raises `StoreUnavailable` for a body whose row of the log is still on its way: neither answer would be true.
    """
    standing = connection.execute(_MESSAGE, {"of_task": task_id, "of_id": message_id}).one_or_none()
    if standing is None:
        return None
    if standing.number is None:
        raise StoreUnavailable(f"message {message_id!r} of task {task_id} is stored, its admission not yet; ask again")
    return Admission(digest=standing.digest, number=standing.number)
