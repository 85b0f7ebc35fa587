"""A task's own row: the lock of everything beneath it, and the one rule of revisions.

`task_write` is the only way to write to a task or beneath it. It locks the row, lets the caller write, and then, if
anything changed, moves `updated_at` and stamps the next revision on the task; on its context only when the task is
new. A repeated write changes nothing and so moves nothing. The counter is taken last, because its lock orders all
writers of the store until they commit. A task keeps the revision with which it ended, beside the one that moves on.

Locks are always taken in one order: a new context, the task, the counter. No two writers can wait for each other.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select, update

from perdure.core.errors import InvalidInput, StoreAhead, StoreBehind
from perdure.core.log import TaskHeader
from perdure.store.bodies import decode_names, encode_names, identifier
from perdure.store.inserting import insert_missing
from perdure.store.schema import contexts, revisions, task_shares, tasks
from perdure.store.statements import changed, rows

_LOCK = select(tasks).where(tasks.c.task_id == bindparam("of_task")).with_for_update()
_UPDATE = update(tasks).where(tasks.c.task_id == bindparam("of_task"))
_PRINCIPAL = select(contexts.c.principal).where(contexts.c.context_id == bindparam("of_context"))
_MOVE_CONTEXT = update(contexts).where(contexts.c.context_id == bindparam("of_context"))
_NEXT = update(revisions).where(revisions.c.id == 1).values(value=revisions.c.value + 1).returning(revisions.c.value)


@dataclass
class OpenTask:
    """The locked row while it is written to. Set `changed` with every change, here or beneath."""

    header: TaskHeader
    state: str = "submitted"
    reason: str = ""
    status_number: int = 0
    contiguous: int = 0
    last_number: int = 0
    terminal_number: int | None = None
    ended_revision: int | None = None
    fence: int = 0
    status_at_ms: int = 0
    updated_at_ms: int = 0
    new: bool = False
    changed: bool = False

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.header.task_id

    @property
    def ended(self) -> bool:
        """Whether its log is whole up to its terminal row."""
        return self.terminal_number is not None and self.terminal_number <= self.contiguous


@contextmanager
def task_write(
    connection: Connection, task_id: str, at_ms: int, header: TaskHeader | None = None
) -> Iterator[OpenTask]:
    """Lock the task, created from `header` if there is none, and stamp it when the block changed something.

    Raises `StoreBehind` for a task that is not there and has no header, `StoreAhead` for one with another header.
    """
    task = _lock(connection, task_id)
    if task is None:
        if header is None:
            raise StoreBehind(f"the store has no task {task_id}, and the write brings no header to create it")
        task = _create(connection, header, at_ms)
    elif header is not None and header != task.header:
        raise StoreAhead(f"task {task_id} stands in the store with another context, agent or principal, or sharing")
    yield task
    if task.changed:
        _stamp(connection, task, at_ms)


def _lock(connection: Connection, task_id: str) -> OpenTask | None:
    found = rows(connection, _LOCK, {"of_task": task_id})
    if not found:
        return None
    (row,) = found
    return OpenTask(
        header=TaskHeader(
            task_id=task_id,
            context_id=row.context_id,
            agent_id=row.agent_id,
            principal=row.principal,
            shared_with=decode_names(row.shared_with),
        ),
        **{name: getattr(row, name) for name in _CARRIED},
        updated_at_ms=row.updated_at_ms,
    )


_CARRIED = (
    "state",
    "reason",
    "status_number",
    "contiguous",
    "last_number",
    "terminal_number",
    "ended_revision",
    "fence",
    "status_at_ms",
)


def _create(connection: Connection, header: TaskHeader, at_ms: int) -> OpenTask:
    for field in ("task_id", "context_id", "agent_id", "principal"):
        identifier(f"header.{field}", getattr(header, field))
    for name in header.shared_with:
        identifier("header.shared_with", name)
    claim_context(connection, header.context_id, header.principal, at_ms)
    task = OpenTask(header=header, new=True, changed=True, updated_at_ms=at_ms, status_at_ms=at_ms)
    row = {
        **header.model_dump(exclude={"shared_with"}),
        "shared_with": encode_names(header.shared_with),
        **{name: getattr(task, name) for name in _CARRIED},
        "revision": 0,
        "created_at_ms": at_ms,
        "updated_at_ms": at_ms,
    }
    if insert_missing(connection, tasks, [row]) == 0:  # another process was first and has committed
        found = _lock(connection, header.task_id)
        if found is None or found.header != header:
            raise StoreAhead(
                f"task {header.task_id} was created meanwhile with another context, agent, principal or sharing"
            )
        return found
    insert_missing(
        connection, task_shares, [{"principal": name, "task_id": header.task_id} for name in header.shared_with]
    )
    return task


def claim_context(connection: Connection, context_id: str, principal: str, at_ms: int) -> None:
    """Keep the context for its first principal; raises `InvalidInput` for every other one."""
    context = {
        "context_id": context_id,
        "principal": principal,
        "revision": 0,
        "created_at_ms": at_ms,
        "updated_at_ms": at_ms,
    }
    insert_missing(connection, contexts, [context])
    if connection.execute(_PRINCIPAL, {"of_context": context_id}).scalar_one() != principal:
        raise InvalidInput("context_id", f"{context_id!r} belongs to another principal; use a new context")


def _stamp(connection: Connection, task: OpenTask, at_ms: int) -> None:
    ((revision,),) = rows(connection, _NEXT, {})
    moved_at_ms = max(at_ms, task.updated_at_ms)  # clocks of hosts differ; a time never goes back
    if task.ended_revision is None and task.ended:
        task.ended_revision = revision
    changed(
        connection,
        _UPDATE,
        {
            "of_task": task.task_id,
            **{name: getattr(task, name) for name in _CARRIED},
            "revision": revision,
            "updated_at_ms": moved_at_ms,
        },
    )
    if task.new:
        connection.execute(
            _MOVE_CONTEXT,
            {"of_context": task.header.context_id, "revision": revision, "updated_at_ms": moved_at_ms},
        )


def sync_point(connection: Connection) -> None:
    """Write something, so that this transaction's commit syncs all before it; a revision given to nobody is skipped."""
    connection.execute(_NEXT)
