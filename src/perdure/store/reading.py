"""Reads: the log's contiguous prefix, tasks, contexts, the ledger. Lists are ordered by revision, never by clock."""

import json
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, RowMapping, bindparam, func, select

from perdure.core.content import Entry
from perdure.core.contexts import ContextRow
from perdure.core.errors import StoreBehind
from perdure.core.log import LogEvent, TaskHeader
from perdure.core.ports import EffectAttemptRow, EffectRow, StoredEvent, TaskRow
from perdure.store.bodies import decode
from perdure.store.schema import (
    contexts,
    effect_attempts,
    effects,
    entries,
    events,
    revisions,
    snapshots,
    tasks,
)

_OF_TASK: BindParameter[str] = bindparam("of_task")
_AMONG: BindParameter[list[str]] = bindparam("among", expanding=True)
_LIMIT: BindParameter[int] = bindparam("limit")

_EVENTS = (
    select(events.c.body)
    .join_from(events, tasks, tasks.c.task_id == events.c.task_id)
    .where(
        events.c.task_id == _OF_TASK,
        events.c.number > bindparam("after"),
        events.c.number <= bindparam("upto"),
        events.c.number <= tasks.c.contiguous,
    )
    .order_by(events.c.number)
)
_BODIES = select(entries.c.digest, entries.c.body).where(entries.c.task_id == _OF_TASK, entries.c.digest.in_(_AMONG))
_TASK = (
    select(tasks, snapshots.c.body.label("snapshot"))
    .join_from(tasks, snapshots, snapshots.c.task_id == tasks.c.task_id, isouter=True)
    .where(tasks.c.task_id == _OF_TASK)
)
_TASKS = select(tasks).order_by(tasks.c.revision.desc()).limit(_LIMIT)
_TASKS_BEFORE = _TASKS.where(tasks.c.revision < bindparam("before"))
_NEWEST = func.max(tasks.c.revision).label("newest")
_CONTEXTS = (
    select(contexts.c.context_id, contexts.c.principal, contexts.c.revision, _NEWEST)
    .join_from(contexts, tasks, tasks.c.context_id == contexts.c.context_id)
    .group_by(contexts.c.context_id, contexts.c.principal, contexts.c.revision)
    .order_by(_NEWEST.desc())
    .limit(_LIMIT)
)
_EFFECTS = (
    select(effects)
    .where(effects.c.task_id == _OF_TASK)
    .order_by(effects.c.turn, effects.c.call_index, func.length(effects.c.key), effects.c.key)  # …/2 before …/10
)
_ATTEMPTS = (
    select(effect_attempts)
    .join_from(effect_attempts, effects, effects.c.key == effect_attempts.c.key)
    .where(effects.c.task_id == _OF_TASK)
    .order_by(effect_attempts.c.key, effect_attempts.c.attempt)
)
_REVISION = select(revisions.c.value).where(revisions.c.id == 1)
_REACHED = select(tasks.c.task_id, tasks.c.contiguous, tasks.c.terminal_number).where(tasks.c.task_id.in_(_AMONG))


def events_after(connection: Connection, task_id: str, number: int, limit: int) -> tuple[StoredEvent, ...]:
    """Return up to `limit` rows past `number`, never across a gap (P6), each with its entries and its subject."""
    page = {"of_task": task_id, "after": number, "upto": number + limit}
    rows = [LogEvent.model_validate_json(text) for text in connection.execute(_EVENTS, page).scalars()]
    named = {ref.digest for row in rows for ref in row.entries} | {_subject(row) for row in rows}
    bodies = _bodies(connection, task_id, sorted(named - {""}))
    return tuple(
        StoredEvent(event=row, entries=_entries(row, bodies), subject=bodies.get(_subject(row))) for row in rows
    )


def _subject(row: LogEvent) -> str:
    digest = row.data.get("message_digest") or row.data.get("digest")
    return digest if isinstance(digest, str) else ""


def _entries(row: LogEvent, bodies: dict[str, Entry]) -> tuple[Entry, ...]:
    try:
        return tuple(bodies[ref.digest] for ref in row.entries)
    except KeyError as missing:
        raise StoreBehind(f"P6: the store lacks the body of an entry that came with row {row.number}") from missing


def _bodies(connection: Connection, task_id: str, digests: list[str]) -> dict[str, Entry]:
    if not digests:
        return {}
    found = connection.execute(_BODIES, {"of_task": task_id, "among": digests}).all()
    return dict(zip((row.digest for row in found), decode([row.body for row in found]), strict=True))


def read_entry(connection: Connection, task_id: str, digest: str) -> Entry:
    """Return the entry of that digest; raises `StoreBehind` when there is none."""
    bodies = _bodies(connection, task_id, [digest])
    if digest not in bodies:
        raise StoreBehind(f"P6: the store lacks entry {digest} of task {task_id}")
    return bodies[digest]


def read_task(connection: Connection, task_id: str) -> TaskRow | None:
    """Return the task with its snapshot, or None."""
    row = connection.execute(_TASK, {"of_task": task_id}).mappings().one_or_none()
    return None if row is None else task_row(row, row["snapshot"])


def read_tasks(connection: Connection, limit: int, before_revision: int | None) -> tuple[TaskRow, ...]:
    """Return tasks, the latest changed first."""
    if before_revision is None:
        found = connection.execute(_TASKS, {"limit": limit})
    else:
        found = connection.execute(_TASKS_BEFORE, {"limit": limit, "before": before_revision})
    return tuple(task_row(row, None) for row in found.mappings())


def task_row(row: RowMapping, snapshot: str | None) -> TaskRow:
    """Return a row of `tasks` as it is told."""
    return TaskRow(
        header=TaskHeader(
            task_id=row["task_id"],
            context_id=row["context_id"],
            agent_id=row["agent_id"],
            principal=row["principal"],
        ),
        state=row["state"],
        reason=row["reason"],
        last_number=row["contiguous"],
        revision=row["revision"],
        created_at_ms=row["created_at_ms"],
        updated_at_ms=row["updated_at_ms"],
        snapshot=None if snapshot is None else json.loads(snapshot),
        status_at_ms=row["status_at_ms"],
    )


def read_contexts(connection: Connection, limit: int) -> tuple[ContextRow, ...]:
    """Return contexts, the one with the latest changed task first."""
    return tuple(
        ContextRow(
            context_id=row.context_id,
            principal=row.principal,
            revision=row.revision,
            newest_task_revision=row.newest,
        )
        for row in connection.execute(_CONTEXTS, {"limit": limit})
    )


def read_effects(connection: Connection, task_id: str) -> tuple[EffectRow, ...]:
    """Return the ledger of a task in the order of turn, index and key."""
    begun: dict[str, list[EffectAttemptRow]] = {}
    for row in connection.execute(_ATTEMPTS, {"of_task": task_id}):
        attempt = EffectAttemptRow(attempt=row.attempt, worker=row.worker, begun_at_ms=row.begun_at_ms)
        begun.setdefault(row.key, []).append(attempt)
    return tuple(
        EffectRow(
            key=row["key"],
            task_id=row["task_id"],
            turn=row["turn"],
            index=row["call_index"],
            tool=row["tool"],
            effect=row["effect"],
            outcome=row["outcome"],
            status=row["status"],
            begun=tuple(begun.get(row["key"], ())),
            late=row["late_digest"] is not None,
            done_at_ms=row["done_at_ms"],
        )
        for row in connection.execute(_EFFECTS, {"of_task": task_id}).mappings()
    )


class Reached(NamedTuple):
    """How far a task's log goes without a gap, and the number that ends it."""

    contiguous: int
    terminal_number: int | None


def read_revision(connection: Connection) -> int:
    """Return the latest revision: it moves with every change of a task or beneath one."""
    value: int = connection.execute(_REVISION).scalar_one()
    return value


def read_reached(connection: Connection, task_ids: list[str]) -> dict[str, Reached]:
    """Return how far the logs of these tasks go; tasks that are not there are left out."""
    found = connection.execute(_REACHED, {"among": task_ids})
    return {row.task_id: Reached(row.contiguous, row.terminal_number) for row in found}
