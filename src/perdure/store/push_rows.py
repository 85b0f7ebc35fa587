"""Push notifications in the database: configurations beneath their tasks, cursors, and the lease of who delivers.

Creating and deleting a configuration changes its task, and goes the way of every such write (`task_rows.task_write`).
Cursors and leases do not: nobody who reads a task sees them, and a task must not move to the front of a list because a
receiver took a notification. Their writes need not outlast a power cut either: what is lost of them is delivered again.

Every write of a deliverer is one statement that says what must still hold: the configuration as it was read (its sealed
content is another one each time that it is saved, so that one that was deleted and made anew is not the same), and the
lease.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    RowMapping,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    select,
)
from sqlalchemy import update as update_of

from perdure.core import push_limits
from perdure.core.errors import InvalidInput
from perdure.core.log import TaskHeader
from perdure.core.pushes import DuePushes, Lease, Pulse, PushConfig
from perdure.store.backend import Backend, T
from perdure.store.bodies import identifier
from perdure.store.inserting import insert_missing
from perdure.store.reading import read_revision
from perdure.store.schema import push_configs, push_leases, tasks
from perdure.store.task_rows import task_write

_FIELDS = ("key_id", "sealed", "state", "cursor", "attempts", "next_at_ms")


class Writing(Protocol):
    """Runs a writing transaction and tells those who wait for changes."""

    def __call__(self, work: Callable[[Connection], T], *, synced: bool = True) -> Awaitable[T]:
        """Run it."""
        ...


class PushRows:
    """Implements `perdure.core.pushes.PushStore`; belongs to a store."""

    def __init__(self, backend: Backend, write: Writing) -> None:
        self._backend = backend
        self._write = write

    # --- configurations -----------------------------------------------------------------------------------------

    async def save(self, config: PushConfig, header: TaskHeader, after: int | None, at_ms: int) -> PushConfig:
        """Keep a configuration, beneath its task, and return it as it stands. See the port."""
        for field in ("task_id", "config_id"):
            identifier(field, getattr(config, field))
        return await self._write(lambda connection: _save(connection, config, header, after, at_ms))

    async def find(self, task_id: str, config_id: str) -> PushConfig | None:
        """Return the configuration, or None."""
        identifier("task_id", task_id)
        identifier("config_id", config_id)
        return await self._backend.read(lambda connection: _find(connection, task_id, config_id))

    async def of_task(self, task_id: str) -> tuple[PushConfig, ...]:
        """Return a task's configurations in the order of their ids."""
        identifier("task_id", task_id)
        wanted = select(push_configs).where(push_configs.c.task_id == task_id)
        found = await self._backend.read(lambda connection: _configs(connection.execute(wanted)))
        return tuple(sorted(found, key=lambda config: config.config_id))  # databases differ in how they order texts

    async def delete(self, task_id: str, config_id: str, at_ms: int) -> None:
        """Delete a configuration; one that is not there is no error."""
        if await self.find(task_id, config_id) is None:
            return

        def work(connection: Connection) -> None:
            with task_write(connection, task_id, at_ms) as task:
                found = connection.execute(delete(push_configs).where(_is(task_id, config_id)))
                task.changed = found.rowcount > 0

        await self._write(work)

    # --- delivering ---------------------------------------------------------------------------------------------

    async def pulse(self, key_id: str) -> Pulse:
        """Return what a deliverer looks at between its rounds."""

        def work(connection: Connection) -> Pulse:
            active = connection.execute(select(exists().where(_active(key_id)))).scalar_one()
            return Pulse(active=bool(active), revision=read_revision(connection), lease=_lease(connection, key_id))

        return await self._backend.read(work)

    async def due(self, key_id: str, now_ms: int, limit: int) -> DuePushes:
        """Return what is to be delivered now, and when the next retry is due.

        At most `limit` of those that have not failed, and as many that have: neither is hidden behind the other. Nor is
        one principal behind another: the longest waiting of each come first, then the next of each. Of those that have
        not failed, the time only says who waits longest; it may be another host's.
        """
        failed, is_time = push_configs.c.attempts > 0, push_configs.c.next_at_ms <= now_ms
        later = select(func.min(push_configs.c.next_at_ms)).where(_active(key_id), failed, ~is_time)

        def work(connection: Connection) -> DuePushes:
            fresh = connection.execute(_in_turn(_active(key_id), push_configs.c.attempts == 0).limit(limit))
            failing = connection.execute(_in_turn(_active(key_id), failed, is_time).limit(limit))
            found = sorted((*fresh.mappings(), *failing.mappings()), key=lambda row: (row["place"], row["next_at_ms"]))
            return DuePushes(
                configs=tuple(map(_config, found)),
                wake_at_ms=connection.execute(later).scalar_one_or_none(),
                principals={row["task_id"]: row["principal"] for row in found},
            )

        return await self._backend.read(work)

    async def standing(self, config: PushConfig, holder: str) -> bool:
        """Whether the configuration stands as it was read, and `holder` still delivers."""
        wanted = select(exists().where(_unchanged(config), _held(config.key_id, holder)))
        return bool(await self._backend.read(lambda connection: connection.execute(wanted).scalar_one()))

    async def settle(self, was: PushConfig, now: PushConfig, holder: str) -> bool:
        """Write down what a delivery came to; False, and nothing is, where `standing` would say no."""
        values = {name: getattr(now, name) for name in ("state", "cursor", "attempts", "next_at_ms")}
        settled = update_of(push_configs).where(_unchanged(was), _held(was.key_id, holder)).values(values)
        return await self._backend.write(lambda connection: connection.execute(settled).rowcount == 1, synced=False)

    async def beat(self, key_id: str, holder: str, seen: Lease) -> Lease:
        """Take the lease, or count one's own beat up, if it is as it was `seen`; return it as it stands."""
        as_seen = and_(
            push_leases.c.key_id == key_id, push_leases.c.holder == seen.holder, push_leases.c.beat == seen.beat
        )

        def work(connection: Connection) -> Lease:
            insert_missing(connection, push_leases, [{"key_id": key_id, "holder": "", "beat": 0}])
            connection.execute(update_of(push_leases).where(as_seen).values(holder=holder, beat=seen.beat + 1))
            return _lease(connection, key_id)

        return await self._backend.write(work, synced=False)

    async def release(self, key_id: str, holder: str) -> None:
        """Give the lease up, so that another need not wait for it."""
        given_up = update_of(push_leases).where(push_leases.c.key_id == key_id, push_leases.c.holder == holder)
        await self._backend.write(lambda connection: connection.execute(given_up.values(holder="")), synced=False)


def _in_turn(*wanted: ColumnElement[bool]) -> Select[Any]:
    """Return the configurations with something to deliver, in turn over the principals whose tasks they are."""
    place = func.row_number().over(
        partition_by=tasks.c.principal, order_by=(push_configs.c.next_at_ms, tasks.c.task_id, push_configs.c.config_id)
    )
    waiting = (
        select(push_configs, tasks.c.principal, place.label("place"))
        .join(tasks, tasks.c.task_id == push_configs.c.task_id)
        .where(*wanted, push_configs.c.cursor < tasks.c.contiguous)
        .subquery()
    )
    return select(waiting).order_by(waiting.c.place, waiting.c.next_at_ms)


def _save(connection: Connection, config: PushConfig, header: TaskHeader, after: int | None, at_ms: int) -> PushConfig:
    with task_write(connection, config.task_id, at_ms, header) as task:
        standing = _find(connection, config.task_id, config.config_id)
        cursor = task.contiguous if after is None else after
        if standing is not None:
            cursor = standing.cursor
        ended = task.terminal_number is not None and cursor >= task.terminal_number
        config = config.model_copy(update={"cursor": cursor, "state": "done" if ended else "active"})
        values = {name: getattr(config, name) for name in _FIELDS}
        if standing is None:
            _refuse_too_many(connection, config.task_id)
            key = {"task_id": config.task_id, "config_id": config.config_id}
            connection.execute(insert(push_configs).values({**key, **values}))
        else:
            connection.execute(update_of(push_configs).where(_is(config.task_id, config.config_id)).values(values))
        task.changed = True
    return config


def _refuse_too_many(connection: Connection, task_id: str) -> None:
    counted = select(func.count()).select_from(push_configs).where(push_configs.c.task_id == task_id)
    if connection.execute(counted).scalar_one() >= push_limits.CONFIGS_PER_TASK_MAX:
        raise InvalidInput(
            "id", f"would be one more than the {push_limits.CONFIGS_PER_TASK_MAX} that a task can have; delete one"
        )


def _find(connection: Connection, task_id: str, config_id: str) -> PushConfig | None:
    row = connection.execute(select(push_configs).where(_is(task_id, config_id))).mappings().one_or_none()
    return None if row is None else _config(row)


def _configs(found: "CursorResult[tuple[object, ...]]") -> tuple[PushConfig, ...]:
    return tuple(_config(row) for row in found.mappings())


def _config(row: RowMapping) -> PushConfig:
    return PushConfig(task_id=row["task_id"], config_id=row["config_id"], **{name: row[name] for name in _FIELDS})


def _lease(connection: Connection, key_id: str) -> Lease:
    wanted = select(push_leases.c.holder, push_leases.c.beat).where(push_leases.c.key_id == key_id)
    row = connection.execute(wanted).one_or_none()
    return Lease() if row is None else Lease(holder=row.holder, beat=row.beat)


def _is(task_id: str, config_id: str) -> ColumnElement[bool]:
    return and_(push_configs.c.task_id == task_id, push_configs.c.config_id == config_id)


def _active(key_id: str) -> ColumnElement[bool]:
    return and_(push_configs.c.key_id == key_id, push_configs.c.state == "active")


def _unchanged(config: PushConfig) -> ColumnElement[bool]:
    return and_(
        _is(config.task_id, config.config_id),
        push_configs.c.state == "active",
        push_configs.c.sealed == config.sealed,
        push_configs.c.cursor == config.cursor,
    )


def _held(key_id: str, holder: str) -> ColumnElement[bool]:
    return exists().where(push_leases.c.key_id == key_id, push_leases.c.holder == holder)
