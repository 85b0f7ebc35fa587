"""The event log: what clients read, numbered 1, 2, 3… by the workflow alone (P6).

A `LogEvent` also carries the transcript entries that come to stand with it, by digest. The transcript is thus a
projection of the log, and there is one sequence of numbers to keep gapless instead of two.
"""

from typing import Literal

from pydantic import Field, JsonValue

from perdure.core.content import EntryKind, Frozen, Message
from perdure.core.digests import body_of, digest

LOG_SCHEMA = 1

LogKind = Literal[
    "task.created",
    "task.status",  # state, reason; terminal ones list the unprocessed messages (P1)
    "message.admitted",
    "message.moved",
    "message.withdrawn",
    "message.promoted",
    "run.started",
    "run.stop_requested",
    "run.ended",  # end: answered, failed, stopped; reason
    "run.stopped_before_start",
    "model.started",  # one per attempt
    "model.answered",
    "model.failed",
    "tool.started",  # one per attempt
    "tool.finished",
    "tool.told",  # what the tool said of its work in an attempt, the latest of it
    "tool.asked",  # the attempt ended by asking a person; help.requested has the question
    "tool.failed",
    "tool.in_doubt",
    "tool.key_closed",
    "tool.late",  # a result came after its call was closed without it
    "help.requested",
    "help.answered",
    "help.closed",
    "child.done",
]


class EntryRef(Frozen):
    """One transcript entry by name. `chain` digests the transcript up to and including it.

    `inline` is the entry's body where the workflow itself made it (an error result, a person's answer); all other
    bodies were written by the activity that produced them.
    """

    entry: int = Field(ge=1)
    kind: EntryKind
    digest: str
    chain: str
    inline: dict[str, JsonValue] | None = None


class LogEvent(Frozen):
    """One row of a task's log. `at_ms` is the workflow's clock in milliseconds since the epoch."""

    number: int = Field(ge=1)
    kind: LogKind
    at_ms: int
    run: int = 0
    turn: int = 0
    data: dict[str, JsonValue] = Field(default_factory=dict)
    entries: tuple[EntryRef, ...] = ()

    def digest(self) -> str:
        """Return the digest under which a second write of this number must agree."""
        return digest(body_of(self))


class TaskHeader(Frozen):
    """What the store knows of a task from its first row on."""

    task_id: str
    context_id: str
    agent_id: str
    principal: str


class Batch(Frozen):
    """What one activity writes in one transaction; every part has a natural key, so a second write changes nothing.

    `confirmed` is the greatest number up to which the store has confirmed every row (a store that has less is
    behind). `fence` refuses every call of runs up to that number from now on (P9). `snapshot` is the JSON of the
    task's state, kept for readers after Temporal has forgotten the workflow.
    """

    task_id: str
    header: TaskHeader | None = None
    rows: tuple[LogEvent, ...] = ()
    messages: tuple[Message, ...] = ()
    confirmed: int = 0
    fence: int | None = None
    snapshot: dict[str, JsonValue] | None = None
