"""Write a batch: log rows, the transcript entries they name, messages, fence and snapshot.

A row that stands is compared by digest, never overwritten (P6); one difference refuses the whole batch. Batches of
one task may arrive in any order, so the row's `contiguous` is advanced here, over what waited beyond a gap too.
"""

from collections.abc import Sequence

from sqlalchemy import BindParameter, Connection, bindparam, delete, insert, select

from perdure.core.digests import safe_text
from perdure.core.errors import InvalidInput, StoreAhead, StoreBehind
from perdure.core.log import Batch, EntryRef, LogEvent
from perdure.core.state import TERMINAL
from perdure.store.bodies import encode, identifier
from perdure.store.inserting import insert_missing
from perdure.store.message_rows import write_admissions, write_messages
from perdure.store.schema import entries, events, snapshots, transcript
from perdure.store.statements import changed
from perdure.store.task_rows import OpenTask

_OF_TASK: BindParameter[str] = bindparam("of_task")
_AMONG: BindParameter[list[int | str]] = bindparam("among", expanding=True)

_EVENT_DIGESTS = select(events.c.number, events.c.digest).where(
    events.c.task_id == _OF_TASK, events.c.number.in_(_AMONG)
)
_NUMBERS_PAST = (
    select(events.c.number)
    .where(events.c.task_id == _OF_TASK, events.c.number > bindparam("past"))
    .order_by(events.c.number)
)
_NUMBER_OF_ENTRY = select(transcript.c.number).where(
    transcript.c.task_id == _OF_TASK, transcript.c.entry == bindparam("of_entry")
)
_SNAPSHOT = select(snapshots.c.last_number, snapshots.c.body).where(snapshots.c.task_id == _OF_TASK)
_DROP_SNAPSHOT = delete(snapshots).where(snapshots.c.task_id == _OF_TASK)
_INSERT_EVENT = insert(events)
_INSERT_SNAPSHOT = insert(snapshots)


def check_batch(batch: Batch) -> None:
    """Raise `InvalidInput` for a batch that contradicts itself; needs no database."""
    identifier("batch.task_id", batch.task_id)
    if batch.header is not None and batch.header.task_id != batch.task_id:
        raise InvalidInput("batch.header.task_id", f"is {batch.header.task_id!r}; the batch is of {batch.task_id!r}")
    numbers = [row.number for row in batch.rows]
    if len(set(numbers)) != len(numbers):
        raise InvalidInput("batch.rows", f"two rows have one number: {sorted(numbers)}; number each row once (P6)")
    for message in batch.messages:
        identifier("batch.messages.message_id", message.message_id)


def write_batch(connection: Connection, task: OpenTask, batch: Batch, at_ms: int) -> None:
    """Write the batch of the locked `task`; raises `StoreBehind`, `StoreAhead` or `MessageConflict`."""
    if task.contiguous < batch.confirmed:
        raise StoreBehind(
            f"P6: the store has rows 1 to {task.contiguous} of task {task.task_id}, but it confirmed {batch.confirmed}"
        )
    write_messages(connection, task, batch.messages, at_ms)
    _write_rows(connection, task, batch.rows)
    if batch.fence is not None and batch.fence > task.fence:
        task.fence = batch.fence
        task.changed = True
    _write_snapshot(connection, task, batch)


# --- rows of the log --------------------------------------------------------------------------------------------


def _write_rows(connection: Connection, task: OpenTask, rows: Sequence[LogEvent]) -> None:
    new = _new_rows(connection, task, rows)
    if not new:
        return
    for row in new:
        _project_status(task, row)
        body = encode(row, f"row {row.number}")
        values = {"task_id": task.task_id, "number": row.number, "digest": body.digest, "body": body.text}
        changed(connection, _INSERT_EVENT, values)
    _write_links(connection, task, new)
    write_admissions(connection, task, new)
    task.last_number = max(task.last_number, new[-1].number)
    if task.terminal_number is not None and task.last_number > task.terminal_number:
        raise StoreAhead(
            f"P5: task {task.task_id} ends with row {task.terminal_number}, but there is a row {task.last_number}"
        )
    _advance(connection, task, {row.number for row in new})
    task.changed = True


def _new_rows(connection: Connection, task: OpenTask, rows: Sequence[LogEvent]) -> list[LogEvent]:
    old = [row.number for row in rows if row.number <= task.last_number]
    standing = {}
    if old:
        found = connection.execute(_EVENT_DIGESTS, {"of_task": task.task_id, "among": old})
        standing = {row.number: row.digest for row in found}
    new = []
    for row in sorted(rows, key=lambda row: row.number):
        digest = standing.get(row.number)
        if digest is None:
            new.append(row)
        elif digest != row.digest():
            raise StoreAhead(f"P6: the store has another row {row.number} of task {task.task_id} than {row.kind}")
    return new


def _project_status(task: OpenTask, row: LogEvent) -> None:
    if row.kind != "task.status":
        return
    state = row.data.get("state")
    if not isinstance(state, str):
        raise InvalidInput(f"row {row.number}.data.state", f"is {state!r}; a task.status row names the task's state")
    if state in TERMINAL:
        if task.terminal_number is not None:
            raise StoreAhead(f"P5: task {task.task_id} has ended with row {task.terminal_number} already")
        task.terminal_number = row.number
    if row.number > task.status_number:
        task.status_number = row.number
        task.status_at_ms = row.at_ms
        task.state = safe_text(state)
        task.reason = safe_text(str(row.data.get("reason") or ""))


def _advance(connection: Connection, task: OpenTask, new: set[int]) -> None:
    while task.contiguous + 1 in new:
        task.contiguous += 1
    if task.contiguous + 1 > task.last_number:
        return
    for number in connection.execute(_NUMBERS_PAST, {"of_task": task.task_id, "past": task.contiguous}).scalars():
        if number != task.contiguous + 1:
            break
        task.contiguous = number


# --- transcript -------------------------------------------------------------------------------------------------


def _write_links(connection: Connection, task: OpenTask, rows: Sequence[LogEvent]) -> None:
    refs = [(row.number, ref) for row in rows for ref in row.entries]
    if not refs:
        return
    for number, ref in refs:
        link = {"entry": ref.entry, "digest": ref.digest, "chain": ref.chain, "number": number}
        if insert_missing(connection, transcript, [{"task_id": task.task_id, **link}]) == 0:
            standing = connection.execute(_NUMBER_OF_ENTRY, {"of_task": task.task_id, "of_entry": ref.entry}).scalar()
            raise StoreAhead(
                f"P6: entry {ref.entry} of task {task.task_id} came with row {standing} already, "
                f"and again with row {number}"
            )
        _write_inline(connection, task, number, ref)


def _write_inline(connection: Connection, task: OpenTask, number: int, ref: EntryRef) -> None:
    if ref.inline is None:
        return
    field = f"row {number}.entries[{ref.entry}]"
    body = encode(ref.inline, field)
    if body.digest != ref.digest:
        raise InvalidInput(field, f"has digest {ref.digest}, its inline body has {body.digest}; they must agree")
    insert_missing(connection, entries, [{"task_id": task.task_id, "digest": body.digest, "body": body.text}])


# --- snapshot ---------------------------------------------------------------------------------------------------


def _write_snapshot(connection: Connection, task: OpenTask, batch: Batch) -> None:
    if batch.snapshot is None:
        return
    number = batch.snapshot.get("last_number")
    if not isinstance(number, int):
        raise InvalidInput("batch.snapshot.last_number", f"is {number!r}; a snapshot says which row it reaches to")
    body = encode(batch.snapshot, "batch.snapshot")
    standing = connection.execute(_SNAPSHOT, {"of_task": task.task_id}).one_or_none()
    if standing is not None:
        if standing.last_number > number or standing.body == body.text:
            return
        connection.execute(_DROP_SNAPSHOT, {"of_task": task.task_id})
    connection.execute(_INSERT_SNAPSHOT, {"task_id": task.task_id, "last_number": number, "body": body.text})
    task.changed = True
