"""The list of tasks that a client sees: by the time of their latest status, which A2A asks for (3.1.4).

The order is by that time and then by id, and a page goes on after the pair that ended the one before. So no page shows
a task twice, unless its status moved meanwhile: then it is at the front again. Other lists are by revision. That of a
context's ended tasks is by the one with which each ended: it is a conversation, whose order no late write may change.
"""

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from perdure.core.ports import TaskPage, TaskQuery
from perdure.store.bodies import identifier
from perdure.store.reading import task_row
from perdure.store.schema import task_shares, tasks


def find_tasks(connection: Connection, query: TaskQuery) -> TaskPage:
    """Return a page of the tasks that a principal sees, and how many there are."""
    for field in ("principal", "agent_id", "context_id"):
        identifier(field, getattr(query, field) or "")
    wanted = [_seen_by(connection, query.principal), *_wanted(query)]
    total = connection.execute(select(func.count()).select_from(tasks).where(*wanted)).scalar_one()
    page = select(tasks).where(*wanted, *_past(query.before))
    page = page.order_by(tasks.c.status_at_ms.desc(), tasks.c.task_id.desc()).limit(query.limit)
    return TaskPage(rows=tuple(task_row(row, None) for row in connection.execute(page).mappings()), total=total)


def ended_tasks(connection: Connection, context_id: str, principal: str, agent_id: str, limit: int) -> tuple[str, ...]:
    """Return the ids of the latest tasks of a context that have ended, in the order in which they did."""
    for field, value in (("context_id", context_id), ("principal", principal), ("agent_id", agent_id)):
        identifier(field, value)
    wanted = (
        tasks.c.context_id == context_id,
        tasks.c.principal == principal,
        tasks.c.agent_id == agent_id,
        tasks.c.terminal_number <= tasks.c.contiguous,
    )
    # A process of earlier code, which may still be at work beside this one, ends a task without saying when.
    ended = func.coalesce(tasks.c.ended_revision, tasks.c.revision)
    latest = select(tasks.c.task_id).where(*wanted).order_by(ended.desc()).limit(limit)
    return tuple(reversed(connection.execute(latest).scalars().all()))


def _seen_by(connection: Connection, principal: str) -> ColumnElement[bool]:
    """Return what a principal sees: its own tasks, and those that are shared with it.

    Asked in two steps: whoever has no share, which is nearly everybody, is served from the index of its own.
    """
    own = tasks.c.principal == principal
    shares = select(task_shares.c.task_id).where(task_shares.c.principal == principal)
    if connection.execute(shares.limit(1)).first() is None:
        return own
    return or_(own, tasks.c.task_id.in_(shares))


def _wanted(query: TaskQuery) -> list[ColumnElement[bool]]:
    wanted = [tasks.c.agent_id == query.agent_id]
    if query.context_id is not None:
        wanted.append(tasks.c.context_id == query.context_id)
    if query.states:
        wanted.append(tasks.c.state.in_(query.states))
    if query.status_since_ms is not None:
        wanted.append(tasks.c.status_at_ms >= query.status_since_ms)
    return wanted


def _past(before: tuple[int, str] | None) -> list[ColumnElement[bool]]:
    if before is None:
        return []
    at_ms, task_id = before
    same = and_(tasks.c.status_at_ms == at_ms, tasks.c.task_id < task_id)
    return [or_(tasks.c.status_at_ms < at_ms, same)]
