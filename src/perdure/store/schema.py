"""The tables. Every row has a natural key, so that a repeated write meets the row that it made before.

Bodies are canonical JSON in TEXT, never a JSON type of the database: what was digested must come back byte for byte,
and JSONB would drop key order, number forms and NUL escapes. All integers are BIGINT; times are milliseconds.

The `tasks` row is also the lock of everything beneath the task: a write locks it first. It carries what a write must
know without counting rows: `contiguous` (rows 1 to that number are all there), `last_number` (the greatest that is
there), `terminal_number`, and `fence` (calls of runs up to that number are refused). `ended_revision` is the revision
of the write with which its log was whole up to its end: the order in which tasks ended, whatever is written later.

A change here needs a new file in `migrations/versions` and its name in `REVISIONS`; a test compares both.
"""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, Table, Text

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")
"""Every revision of the schema, the oldest first; the last one is what this code works on."""

VERSION_TABLE = "perdure_schema"
"""Where Alembic notes the revision; a name of our own, since a PostgreSQL database may be shared."""

metadata = MetaData()


def _text(name: str, *, key: bool = False, optional: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=optional)


def _int(name: str, *, key: bool = False, optional: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=optional, autoincrement=False)


tasks = Table(
    "tasks",
    metadata,
    _text("task_id", key=True),
    _text("context_id"),
    _text("agent_id"),
    _text("principal"),
    _text("state"),
    _text("reason"),
    _int("status_number"),
    _int("contiguous"),
    _int("last_number"),
    _int("terminal_number", optional=True),
    _int("ended_revision", optional=True),
    _int("fence"),
    _int("revision"),
    _int("created_at_ms"),
    _int("updated_at_ms"),
    _int("status_at_ms"),
    _text("shared_with"),
    Index("tasks_by_revision", "revision"),
    Index("tasks_by_status", "principal", "status_at_ms", "task_id"),
    Index("tasks_by_context", "context_id", "revision"),
)

task_shares = Table(
    "task_shares",
    metadata,
    _text("principal", key=True),
    _text("task_id", key=True),
)
"""The tasks that a principal may see beside its own: what stands in their `shared_with`, the other way round."""

snapshots = Table(
    "snapshots",
    metadata,
    _text("task_id", key=True),
    _int("last_number"),
    _text("body"),
)

contexts = Table(
    "contexts",
    metadata,
    _text("context_id", key=True),
    _text("principal"),
    _int("revision"),
    _int("created_at_ms"),
    _int("updated_at_ms"),
)

events = Table(
    "events",
    metadata,
    _text("task_id", key=True),
    _int("number", key=True),
    _text("digest"),
    _text("body"),
)

transcript = Table(
    "transcript",
    metadata,
    _text("task_id", key=True),
    _int("entry", key=True),
    _text("digest"),
    _text("chain"),
    _int("number"),
)

entries = Table(
    "entries",
    metadata,
    _text("task_id", key=True),
    _text("digest", key=True),
    _text("body"),
)

messages = Table(
    "messages",
    metadata,
    _text("task_id", key=True),
    _text("message_id", key=True),
    _text("digest"),
    _int("number", optional=True),
    _int("stored_at_ms", optional=True),
)
"""A message's admission (`number`, from its row of the log) and its body (`stored_at_ms`) may come in either order."""

model_calls = Table(
    "model_calls",
    metadata,
    _text("task_id", key=True),
    _int("turn", key=True),
    _int("attempt", key=True),
    _int("run"),
    _text("worker"),
    _int("begun_at_ms"),
    _text("model"),
)

replies = Table(
    "replies",
    metadata,
    _text("task_id", key=True),
    _int("turn", key=True),
    _int("attempt"),
    _text("digest"),
    _int("recorded_at_ms"),
)

effects = Table(
    "effects",
    metadata,
    _text("key", key=True),
    _text("task_id"),
    _int("turn"),
    _int("call_index"),
    _text("tool"),
    _text("effect"),
    _text("request_digest"),
    _text("outcome"),
    _text("result_digest", optional=True),
    _text("status", optional=True),
    _text("late_digest", optional=True),
    _int("opened_at_ms"),
    _int("done_at_ms", optional=True),
    _int("closed_at_ms", optional=True),
    _int("late_at_ms", optional=True),
    Index("effects_by_task", "task_id"),
)

effect_attempts = Table(
    "effect_attempts",
    metadata,
    _text("key", key=True),
    _int("attempt", key=True),
    _text("worker"),
    _int("begun_at_ms"),
    _text("asked", optional=True),
)
"""`asked` is the digest of what an attempt asked a person, where that is how it ended."""

blobs = Table(
    "blobs",
    metadata,
    _text("digest", key=True),
    _text("media_type"),
    _int("size_bytes"),
    Column("data", LargeBinary, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    _text("key_id", key=True),
    _text("principal"),
    _text("secret_digest"),
    _int("created_at_ms"),
    _int("revoked_at_ms", optional=True),
)
"""A revoked key stays, so that its id is never given out again and a list says when it ended."""

push_configs = Table(
    "push_configs",
    metadata,
    _text("task_id", key=True),
    _text("config_id", key=True),
    _text("key_id"),
    Column("sealed", LargeBinary, nullable=False),
    _text("state"),
    _int("cursor"),
    _int("attempts"),
    _int("next_at_ms"),
    Index("push_configs_by_turn", "key_id", "state", "next_at_ms"),
)
"""A configuration is beneath its task; how far its delivery has come is its deliverer's own note, and moves nothing."""

push_leases = Table(
    "push_leases",
    metadata,
    _text("key_id", key=True),
    _text("holder"),
    _int("beat"),
)

revisions = Table(
    "revisions",
    metadata,
    _int("id", key=True),
    _int("value"),
)
"""One row, id 1: the latest revision that was given out. Its lock orders writers, so that a revision once seen never
gets a smaller neighbour later."""
