"""Create the first tables. Frozen: later changes are later files, so that every old store can be brought forward."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _text(name: str, *, optional: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=optional)


def _int(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=optional, autoincrement=False)


def _create(name: str, *columns: sa.Column[str] | sa.Column[int] | sa.Column[bytes], key: tuple[str, ...]) -> None:
    op.create_table(name, *columns, sa.PrimaryKeyConstraint(*key))


def upgrade() -> None:
    """Create every table of revision 0001."""
    _tasks()
    _transcript()
    _ledger()


def _tasks() -> None:
    _create(
        "tasks",
        *(_text(name) for name in ("task_id", "context_id", "agent_id", "principal", "state", "reason")),
        *(_int(name) for name in ("status_number", "contiguous", "last_number")),
        _int("terminal_number", optional=True),
        *(_int(name) for name in ("fence", "revision", "created_at_ms", "updated_at_ms")),
        key=("task_id",),
    )
    op.create_index("tasks_by_revision", "tasks", ["revision"])
    op.create_index("tasks_by_context", "tasks", ["context_id", "revision"])
    _create("snapshots", _text("task_id"), _int("last_number"), _text("body"), key=("task_id",))
    _create(
        "contexts",
        _text("context_id"),
        _text("principal"),
        *(_int(name) for name in ("revision", "created_at_ms", "updated_at_ms")),
        key=("context_id",),
    )
    _create("revisions", _int("id"), _int("value"), key=("id",))
    op.execute("INSERT INTO revisions (id, value) VALUES (1, 0)")


def _transcript() -> None:
    _create("events", _text("task_id"), _int("number"), _text("digest"), _text("body"), key=("task_id", "number"))
    _create(
        "transcript",
        *(_text("task_id"), _int("entry"), _text("digest"), _text("chain"), _int("number")),
        key=("task_id", "entry"),
    )
    _create("entries", _text("task_id"), _text("digest"), _text("body"), key=("task_id", "digest"))
    _create(
        "messages",
        *(_text("task_id"), _text("message_id"), _text("digest")),
        *(_int(name, optional=True) for name in ("number", "stored_at_ms")),
        key=("task_id", "message_id"),
    )
    _create(
        "blobs",
        *(_text("digest"), _text("media_type"), _int("size_bytes")),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        key=("digest",),
    )


def _ledger() -> None:
    _create(
        "model_calls",
        *(_text("task_id"), _int("turn"), _int("attempt"), _int("run"), _text("worker"), _int("begun_at_ms")),
        key=("task_id", "turn", "attempt"),
    )
    _create(
        "replies",
        *(_text("task_id"), _int("turn"), _int("attempt"), _text("digest"), _int("recorded_at_ms")),
        key=("task_id", "turn"),
    )
    _create(
        "effects",
        *(_text("key"), _text("task_id"), _int("turn"), _int("call_index")),
        *(_text(name) for name in ("tool", "effect", "request_digest", "outcome")),
        *(_text(name, optional=True) for name in ("result_digest", "status", "late_digest")),
        _int("opened_at_ms"),
        *(_int(name, optional=True) for name in ("done_at_ms", "closed_at_ms", "late_at_ms")),
        key=("key",),
    )
    op.create_index("effects_by_task", "effects", ["task_id"])
    _create(
        "effect_attempts",
        *(_text("key"), _int("attempt"), _text("worker"), _int("begun_at_ms")),
        key=("key", "attempt"),
    )
