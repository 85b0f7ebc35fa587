"""The effect ledger: what was begun under a key, and what became of it.

The policy is `core.effects.judge`; here is its view and what its verdict writes, all under the lock of the task, so
that of two workers with one key exactly one begins (P3). An outcome, once recorded, is never changed: a result that
comes after its key was closed is kept beside it as late.
"""

from typing import Any

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, insert, select, update

from perdure.core.content import Entry, ToolEntry
from perdure.core.digests import cut_text
from perdure.core.effects import EffectRequest, Late, LedgerView, judge
from perdure.core.errors import Fenced, InvalidInput, KeyReused, StoreBehind
from perdure.core.limits import PROBLEM_BYTES_MAX
from perdure.core.log import Batch
from perdure.core.ports import Ledgered
from perdure.store.bodies import decode, encode, identifier
from perdure.store.inserting import insert_missing
from perdure.store.log_rows import write_batch
from perdure.store.schema import effect_attempts, effects, entries
from perdure.store.statements import changed, rows
from perdure.store.task_rows import OpenTask, task_write

_OF_KEY: BindParameter[str] = bindparam("of_key")
_EFFECT = (
    select(effects, effect_attempts.c.attempt, effect_attempts.c.asked)
    .join(effect_attempts, effect_attempts.c.key == effects.c.key, isouter=True)
    .where(effects.c.key == _OF_KEY)
    .order_by(effect_attempts.c.attempt)
)
_TASK_OF_KEY = select(effects.c.task_id).where(effects.c.key == _OF_KEY)
_SETTLE = update(effects).where(effects.c.key == _OF_KEY)
_BODY = select(entries.c.body).where(
    entries.c.task_id == bindparam("of_task"), entries.c.digest == bindparam("of_digest")
)
_RESULT = func.coalesce(effects.c.result_digest, effects.c.late_digest)
_RESULTS = (
    select(effects.c.key, entries.c.body)
    .join(entries, and_(entries.c.task_id == effects.c.task_id, entries.c.digest == _RESULT))
    .where(effects.c.task_id == bindparam("of_task"), effects.c.key.in_(bindparam("among", expanding=True)))
    .order_by(effects.c.key)
)
_INSERT_EFFECT = insert(effects)
_INSERT_ATTEMPT = insert(effect_attempts)
_ASKED = update(effect_attempts).where(
    effect_attempts.c.key == _OF_KEY, effect_attempts.c.attempt == bindparam("of_attempt")
)


def begin_effect(connection: Connection, batch: Batch, request: EffectRequest, at_ms: int) -> Ledgered:
    """Write the batch, judge, and write the verdict; a refusal (`Fenced`, `KeyReused`) leaves nothing of either."""
    if request.task_id != batch.task_id:
        raise InvalidInput("request.task_id", f"is {request.task_id!r}; the batch is of {batch.task_id!r}")
    for field in ("key", "tool", "worker"):
        identifier(f"request.{field}", getattr(request, field))
    with task_write(connection, batch.task_id, at_ms, batch.header) as task:
        write_batch(connection, task, batch, at_ms)
        row, begun, asked = _row(connection, request.key)
        if row is not None and row.task_id != request.task_id:
            raise KeyReused(f"P3: {request.key} was begun by task {row.task_id}, not by {request.task_id}")
        view = _view(row, begun, asked, task.fence)
        verdict = judge(request, view)
        if verdict == "begin":
            _begin(connection, task, request, view, at_ms)
            return Ledgered(verdict="begin", attempts=tuple(sorted({*view.begun_attempts, request.attempt})))
        if verdict == "not_begun" and view.outcome is None:
            _open(connection, request, at_ms, closed=True)
            task.changed = True
        if verdict == "not_begun" and view.outcome == "open":
            _close(connection, task, request.key, at_ms)
        if verdict == "done" and row is not None:
            return _done(connection, row, view.begun_attempts)
        return Ledgered(verdict=verdict, asked=view.asked, attempts=view.begun_attempts)


def finish_effect(connection: Connection, key: str, attempt: int, entry: Entry, at_ms: int) -> Ledgered:
    """Record the result unless an outcome stands; on a closed key it is kept as late."""
    with task_write(connection, _task_of(connection, key), at_ms) as task:
        row, begun, _ = _standing(connection, key)
        if row.outcome == "done":
            return _done(connection, row, begun)
        body = encode(entry, f"the result of {key}, attempt {attempt}")
        values: dict[str, object] = {"of_key": key}
        if row.outcome == "closed":
            if row.late_digest is not None:
                return Ledgered(verdict="closed", attempts=begun)
            values |= {"late_digest": body.digest, "late_at_ms": at_ms}
        else:
            status = entry.result.status if isinstance(entry, ToolEntry) else None
            values |= {"outcome": "done", "status": status, "result_digest": body.digest, "done_at_ms": at_ms}
        changed(connection, _SETTLE, values)
        insert_missing(connection, entries, [{"task_id": task.task_id, "digest": body.digest, "body": body.text}])
        task.changed = True
        if row.outcome == "closed":
            return Ledgered(verdict="closed", attempts=begun)
        return Ledgered(verdict="done", entry=entry, digest=body.digest, attempts=begun)


def ask_effect(connection: Connection, key: str, attempt: int, asked: str, at_ms: int) -> Ledgered:
    """Record what an attempt asked unless an outcome stands; a key that is closed takes no question any more."""
    with task_write(connection, _task_of(connection, key), at_ms) as task:
        row, begun, _ = _standing(connection, key)
        if row.outcome == "done":
            return _done(connection, row, begun)
        if row.outcome == "closed":
            return Ledgered(verdict="closed", attempts=begun)
        if attempt != begun[-1]:
            raise Fenced(f"P3: attempt {begun[-1]} of {key} began before attempt {attempt} asked")
        changed(connection, _ASKED, {"of_key": key, "of_attempt": attempt, "asked": asked})
        task.changed = True
        return Ledgered(verdict="asked", asked=asked, attempts=begun)


def close_effect(connection: Connection, key: str, at_ms: int) -> Ledgered:
    """Close an open key; a recorded result wins."""
    with task_write(connection, _task_of(connection, key), at_ms) as task:
        row, begun, _ = _standing(connection, key)
        if row.outcome == "done":
            return _done(connection, row, begun)
        if row.outcome == "open":
            _close(connection, task, key, at_ms)
        return Ledgered(verdict="closed", attempts=begun)


def late_results(connection: Connection, task_id: str, keys: tuple[str, ...]) -> tuple[Late, ...]:
    """Return the results that stand under these keys, or came after they were closed."""
    found = connection.execute(_RESULTS, {"of_task": task_id, "among": list(keys)}).all()
    results = [(row.key, entry.result) for row in found for entry in decode([row.body]) if isinstance(entry, ToolEntry)]
    return tuple(
        Late(key=key, status=result.status, text=cut_text(result.text, PROBLEM_BYTES_MAX, " [cut]"))
        for key, result in results
    )


def _begin(connection: Connection, task: OpenTask, request: EffectRequest, view: LedgerView, at_ms: int) -> None:
    if task.terminal_number is not None:
        raise Fenced(f"P5: task {task.task_id} is {task.state}; {request.key} is not begun")
    if view.outcome is None:
        _open(connection, request, at_ms, closed=False)
    if request.attempt not in view.begun_attempts:
        attempt = {"key": request.key, "attempt": request.attempt, "worker": request.worker, "begun_at_ms": at_ms}
        changed(connection, _INSERT_ATTEMPT, attempt)
        task.changed = True


def _open(connection: Connection, request: EffectRequest, at_ms: int, *, closed: bool) -> None:
    changed(
        connection,
        _INSERT_EFFECT,
        {
            "key": request.key,
            "task_id": request.task_id,
            "turn": request.turn,
            "call_index": request.index,
            "tool": request.tool,
            "effect": request.effect,
            "request_digest": request.request_digest,
            "outcome": "closed" if closed else "open",
            "opened_at_ms": at_ms,
            "closed_at_ms": at_ms if closed else None,
        },
    )


def _close(connection: Connection, task: OpenTask, key: str, at_ms: int) -> None:
    changed(connection, _SETTLE, {"of_key": key, "outcome": "closed", "closed_at_ms": at_ms})
    task.changed = True


def _row(connection: Connection, key: str) -> tuple[Any, tuple[int, ...], str | None]:
    """Return what stands under the key, the attempts that were begun, and what the latest of them asked."""
    found = rows(connection, _EFFECT, {"of_key": key})
    begun = tuple(row.attempt for row in found if row.attempt is not None)
    return found[0] if found else None, begun, found[-1].asked if begun else None


def _task_of(connection: Connection, key: str) -> str:
    found = rows(connection, _TASK_OF_KEY, {"of_key": key})
    if not found:
        raise StoreBehind(f"P3: the ledger has no {key}, which was begun before its outcome is written")
    task_id: str = found[0].task_id
    return task_id


def _standing(connection: Connection, key: str) -> tuple[Any, tuple[int, ...], str | None]:
    row, begun, asked = _row(connection, key)
    if row is None:
        raise StoreBehind(f"P3: the ledger lost {key} while it was written to")
    return row, begun, asked


def _view(row: Any, begun: tuple[int, ...], asked: str | None, fence: int) -> LedgerView:
    if row is None:
        return LedgerView(fence=fence)
    return LedgerView(
        request_digest=row.request_digest,
        effect=row.effect,
        outcome=row.outcome,
        result_digest=row.result_digest,
        begun_attempts=begun,
        asked=asked,
        fence=fence,
    )


def _done(connection: Connection, row: Any, begun: tuple[int, ...]) -> Ledgered:
    found = {"of_task": row.task_id, "of_digest": row.result_digest}
    (entry,) = decode([connection.execute(_BODY, found).scalar_one()])
    return Ledgered(verdict="done", entry=entry, digest=row.result_digest, attempts=begun)
