"""Model calls: a start row per attempt, and one reply per turn, the first that was written (P2)."""

from sqlalchemy import BindParameter, Connection, bindparam, func, insert, select

from perdure.core.content import ModelEntry, ModelReply
from perdure.core.errors import Fenced
from perdure.core.log import Batch
from perdure.core.ports import ModelCallRow, RecordedReply
from perdure.store.bodies import decode, encode, identifier
from perdure.store.inserting import insert_missing
from perdure.store.log_rows import write_batch
from perdure.store.schema import entries, model_calls, replies
from perdure.store.statements import changed, rows
from perdure.store.task_rows import OpenTask, task_write

_OF_TASK: BindParameter[str] = bindparam("of_task")
_OF_TURN: BindParameter[int] = bindparam("of_turn")
_RECORDED = (
    select(replies.c.digest, replies.c.attempt, entries.c.body)
    .join(entries, (entries.c.task_id == replies.c.task_id) & (entries.c.digest == replies.c.digest))
    .where(replies.c.task_id == _OF_TASK, replies.c.turn == _OF_TURN)
)
_LATEST_ATTEMPT = select(
    func.max(model_calls.c.attempt),
    select(replies.c.turn).where(replies.c.task_id == _OF_TASK, replies.c.turn == _OF_TURN).scalar_subquery(),
).where(model_calls.c.task_id == _OF_TASK, model_calls.c.turn == _OF_TURN)
_CALLS = (
    select(model_calls).where(model_calls.c.task_id == _OF_TASK).order_by(model_calls.c.turn, model_calls.c.attempt)
)
_INSERT_CALL = insert(model_calls)


def begin_model(
    connection: Connection, batch: Batch, run: int, turn: int, attempt: int, worker: str, at_ms: int, model: str
) -> RecordedReply | None:
    """Write the batch, then return the recorded reply or write the start row; `Fenced` leaves nothing of either."""
    identifier("worker", worker)
    identifier("model", model)
    with task_write(connection, batch.task_id, at_ms, batch.header) as task:
        write_batch(connection, task, batch, at_ms)
        ((latest, replied),) = rows(connection, _LATEST_ATTEMPT, {"of_task": task.task_id, "of_turn": turn})
        if replied is not None:
            return _recorded(connection, task.task_id, turn)
        latest = latest or 0
        _refuse(task, run, turn, attempt, latest)
        if attempt > latest:
            changed(
                connection,
                _INSERT_CALL,
                {
                    "task_id": task.task_id,
                    "turn": turn,
                    "attempt": attempt,
                    "run": run,
                    "worker": worker,
                    "begun_at_ms": at_ms,
                    "model": model,
                },
            )
            task.changed = True
        return None


def record_reply(
    connection: Connection, task_id: str, turn: int, attempt: int, reply: ModelReply, at_ms: int
) -> RecordedReply:
    """Record the reply unless one is recorded; return the one that stands."""
    with task_write(connection, task_id, at_ms) as task:
        body = encode(ModelEntry(reply=reply), f"the reply of turn {turn}")
        row = {"task_id": task_id, "turn": turn, "attempt": attempt, "digest": body.digest, "recorded_at_ms": at_ms}
        if insert_missing(connection, replies, [row]) == 0:
            return _recorded(connection, task_id, turn)
        insert_missing(connection, entries, [{"task_id": task_id, "digest": body.digest, "body": body.text}])
        task.changed = True
        return RecordedReply(digest=body.digest, reply=reply, attempt=attempt)


def read_model_calls(connection: Connection, task_id: str) -> tuple[ModelCallRow, ...]:
    """Return the start rows of a task's model calls, in the order of turn and attempt."""
    return tuple(
        ModelCallRow(
            turn=row.turn, attempt=row.attempt, worker=row.worker, begun_at_ms=row.begun_at_ms, model=row.model
        )
        for row in connection.execute(_CALLS, {"of_task": task_id})
    )


def _refuse(task: OpenTask, run: int, turn: int, attempt: int, latest: int) -> None:
    if task.terminal_number is not None:
        raise Fenced(f"P5: task {task.task_id} is {task.state}; turn {turn} is not begun")
    if run <= task.fence:
        raise Fenced(f"P9: run {run} of task {task.task_id} was stopped before turn {turn} called the model")
    if latest > attempt:
        raise Fenced(f"P2: attempt {latest} of turn {turn} of task {task.task_id} began before attempt {attempt}")


def _recorded(connection: Connection, task_id: str, turn: int) -> RecordedReply:
    row = connection.execute(_RECORDED, {"of_task": task_id, "of_turn": turn}).one()
    (entry,) = decode([row.body])
    if not isinstance(entry, ModelEntry):
        raise TypeError(f"the reply of turn {turn} of task {task_id} is stored as an entry of kind {entry.kind}")
    return RecordedReply(digest=row.digest, reply=entry.reply, attempt=row.attempt)
