"""The ports: what the core's users need from the outside, as protocols that the adapters implement."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import JsonValue

from perdure.core.access import KeyStore
from perdure.core.agent import EffectClass, ToolSpec
from perdure.core.artifacts import Returned
from perdure.core.content import Entry, Frozen, ModelReply, ResultStatus
from perdure.core.contexts import ContextStore
from perdure.core.deltas import DraftKeeper
from perdure.core.effects import EffectRequest, Late, Verdict
from perdure.core.log import Batch, LogEvent, TaskHeader
from perdure.core.pushes import PushKeeper

# --- the model --------------------------------------------------------------------------------------------------


class ToolSchema(Frozen):
    """A tool as a model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


@dataclass(frozen=True)
class ModelRequest:
    """One model call. `attempt` counts from 1 and is for the model's own telemetry, never for its answer.

    A plain value: it never leaves the process, and validating it would cost a task the square of its length.
    """

    task_id: str
    turn: int
    attempt: int
    instructions: str
    transcript: tuple[Entry, ...]
    tools: tuple[ToolSchema, ...]


class DeltaSink(Protocol):
    """Takes a reply's text while it is made. Deltas are not durable and may be cut off."""

    def __call__(self, text: str) -> None:
        """Take the next piece; must not block."""
        ...


class BlobReader(Protocol):
    """Gives the bytes of a blob."""

    async def __call__(self, digest: str) -> bytes:
        """Return the blob's bytes; raises `StoreUnavailable` or `KeyError`."""
        ...


class ModelPort(Protocol):
    """A model. Raises `ModelError` for what a provider refuses or fails to do; cancellation always propagates."""

    @property
    def name(self) -> str:
        """The name that is recorded with every reply."""
        ...

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        """Answer once, without retries of its own."""
        ...


# --- tools ------------------------------------------------------------------------------------------------------


class Call(Frozen):
    """What a tool may know of the call it serves; declare a parameter of this type to get it.

    `idempotency_key` is the same for every attempt at this call and different for every other call, for ever: hand
    it to whatever the tool changes. `attempt` counts from 1.
    """

    idempotency_key: str
    attempt: int
    task_id: str
    tool: str


class Check(Frozen):
    """What a tool's `check(key)` answers after a call ended without a result (P4).

    `happened`: it did, with `result`. `never`: it did not and never will, the key is closed at the outside.
    `not_yet`: it did not so far, but the request may still arrive. `unknown`: nobody can tell.
    """

    answer: Literal["happened", "never", "not_yet", "unknown"]
    result: JsonValue = None

    @classmethod
    def happened(cls, result: JsonValue) -> "Check":
        """The effect happened; `result` is what the call would have returned."""
        return cls(answer="happened", result=result)

    @classmethod
    def never(cls) -> "Check":
        """The effect did not happen, and a late request under this key will be refused."""
        return cls(answer="never")

    @classmethod
    def not_yet(cls) -> "Check":
        """The effect did not happen so far; a request may still be on its way."""
        return cls(answer="not_yet")

    @classmethod
    def unknown(cls) -> "Check":
        """It cannot be told."""
        return cls(answer="unknown")


class ToolPort(Protocol):
    """A tool that can be run: a Python function, an MCP server's, an HTTP service's; more in `tool_calls.py`."""

    @property
    def spec(self) -> ToolSpec:
        """What the workflow records of it."""
        ...

    @property
    def schema(self) -> ToolSchema:
        """What the model sees of it."""
        ...

    @property
    def settle_s(self) -> float:
        """Seconds to wait before `check`: how long a request may still be on its way."""
        ...

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why these arguments break the schema, in words that help a model to correct them, or None."""
        ...

    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> Returned:
        """Call it once. Raises `ToolError` when it did not happen; anything else leaves the outcome open."""
        ...

    async def check(self, call: Call) -> Check:
        """Ask the tool's own check what became of `call.idempotency_key`; `Check.unknown()` without one."""
        ...


class Execution(Frozen):
    """What one attempt at a tool call came to; the fields of the machine's `ToolFinished`."""

    outcome: Literal["result", "in_doubt", "asks", "closed", "not_begun"]
    digest: str = ""
    status: ResultStatus = "ok"
    reason: str = ""
    question: str = ""
    choices: tuple[str, ...] = ()
    form: dict[str, JsonValue] | None = None
    notes: tuple[str, ...] = ()


# --- the store --------------------------------------------------------------------------------------------------


class RecordedReply(Frozen):
    """The reply that stands for (task, turn): the first that was written (P2)."""

    digest: str
    reply: ModelReply
    attempt: int


class Admission(Frozen):
    """A stored message id: the digest of its content and the number of its admission."""

    digest: str
    number: int


class Ledgered(Frozen):
    """What the ledger answered to a request: the verdict, the result of a `done`, the digest of what was `asked`."""

    verdict: Verdict
    entry: Entry | None = None
    digest: str | None = None
    asked: str | None = None
    attempts: tuple[int, ...] = ()


class TaskRow(Frozen):
    """A task as listed: `revision` orders rows by their latest change, times are for people."""

    header: TaskHeader
    state: str
    reason: str
    last_number: int
    revision: int
    created_at_ms: int
    updated_at_ms: int
    snapshot: dict[str, JsonValue] | None = None
    status_at_ms: int = 0


class TaskQuery(Frozen):
    """Which of the tasks with an agent that a principal sees are listed: those with the newest status first.

    `states` empty: in any. `before` is the (`status_at_ms`, task id) after which a page goes on.
    """

    principal: str
    agent_id: str
    context_id: str | None = None
    states: tuple[str, ...] = ()
    status_since_ms: int | None = None
    before: tuple[int, str] | None = None
    limit: int


class TaskPage(Frozen):
    """A page of tasks, without snapshots, and how many there are on all pages."""

    rows: tuple[TaskRow, ...]
    total: int


class EffectRow(Frozen):
    """A ledger row and its begun attempts, for `show` and for judges."""

    key: str
    task_id: str
    turn: int
    index: int
    tool: str
    effect: EffectClass
    outcome: Literal["open", "done", "closed"]
    status: ResultStatus | None
    begun: tuple["EffectAttemptRow", ...]
    late: bool
    done_at_ms: int | None

    @property
    def open_ended(self) -> tuple["EffectAttemptRow", ...]:
        """The begun attempts that may have had the effect: of a `once` call there is at most one under a key (P3)."""
        return tuple(attempt for attempt in self.begun if not attempt.asked)


class EffectAttemptRow(Frozen):
    """One begun attempt of an effect; `asked` where it ended by asking a person, and has not happened by that."""

    attempt: int
    worker: str
    begun_at_ms: int
    asked: bool = False


class ModelCallRow(Frozen):
    """The start row of one attempt at a turn's model call; `model` is whom it asked, where that is known."""

    turn: int
    attempt: int
    worker: str
    begun_at_ms: int
    model: str = ""


class StoredEvent(Frozen):
    """A log row with the entries that came to stand with it, in order.

    `subject` is the entry that the row is about (its `digest`): an admitted message before it is promoted, a result
    that waits for an earlier sibling's. None where the row is about none, or its body came later.
    """

    event: LogEvent
    entries: tuple[Entry, ...] = ()
    subject: Entry | None = None


class Store(KeyStore, PushKeeper, DraftKeeper, ContextStore, Protocol):
    """What outlives a workflow. Every method is one transaction, and every write may be made twice.

    Raises `StoreUnavailable` where the database does not answer, `StoreAhead` where another row stands under a
    number or key, `StoreBehind` where confirmed rows are missing. A write that returns is synced to disk, but for two
    beginnings: a model call's first attempt and a `read` call's. They survive the death of every worker, and that of
    the database or the machine once their end is recorded; before that nothing depends on them, for the workflow has
    confirmed nothing and writes the same again.
    """

    async def write(self, batch: Batch, at_ms: int) -> None:
        """Write a batch: log rows, entries, messages, fence, snapshot; moves the task's `updated_at` and revision."""
        ...

    async def begin_model(
        self,
        batch: Batch,
        run: int,
        turn: int,
        attempt: int,
        worker: str,
        at_ms: int,
        upto: int = 0,
        chain: str = "",
        model: str = "",
    ) -> RecordedReply | tuple[Entry, ...]:
        """Write the batch and the start row of a call of `model`, and return the transcript: entries 1 to `upto`.

        Where a reply is recorded already it is returned instead (P2). Raises `Fenced` when a stop stands for `run`,
        or a later attempt of the turn began; what `read_transcript` raises, too. Then nothing is written.
        """
        ...

    async def record_reply(self, task_id: str, turn: int, attempt: int, reply: ModelReply, at_ms: int) -> RecordedReply:
        """Record a reply unless one is recorded; return the one that stands (P2)."""
        ...

    async def begin_effect(self, batch: Batch, request: EffectRequest, at_ms: int) -> Ledgered:
        """Write the batch, judge the request (`effects.judge`) and write what it decided, in one transaction."""
        ...

    async def finish_effect(self, key: str, attempt: int, entry: Entry, at_ms: int) -> Ledgered:
        """Record a call's result unless an outcome is recorded; return what stands. On a closed key it is late."""
        ...

    async def ask_effect(self, key: str, attempt: int, asked: str, at_ms: int) -> Ledgered:
        """Record that an attempt ended by asking, as a blob of that digest; return what stands (`asked`, or more)."""
        ...

    async def close_effect(self, key: str, at_ms: int) -> Ledgered:
        """Close a key whose check said that it did not happen and never will; a recorded `done` wins."""
        ...

    async def late_results(self, task_id: str, keys: tuple[str, ...]) -> tuple[Late, ...]:
        """Return what was recorded under those of these keys whose calls were closed without a result."""
        ...

    async def read_transcript(self, task_id: str, upto: int, chain: str) -> tuple[Entry, ...]:
        """Return entries 1 to `upto`; raises `StoreBehind` when fewer stand, `StoreAhead` when the chain differs."""
        ...

    async def read_entry(self, task_id: str, digest: str) -> Entry:
        """Return the entry of that digest, in the transcript or not; raises `StoreBehind` when there is none."""
        ...

    async def admission(self, task_id: str, message_id: str) -> Admission | None:
        """Return how the message of that id was admitted, or None; knows all ids, whatever workflows forget (P1)."""
        ...

    async def events_after(self, task_id: str, number: int, limit: int) -> tuple[StoredEvent, ...]:
        """Return the contiguous events number+1, number+2, …; stops at the first gap (P6)."""
        ...

    def tail(self, task_id: str, after: int) -> AsyncIterator[StoredEvent]:
        """Yield events from `after` + 1 on as they come, until the one with a terminal state has been yielded."""
        ...

    async def task(self, task_id: str) -> TaskRow | None:
        """Return the task, or None."""
        ...

    async def tasks(self, limit: int, before_revision: int | None = None) -> tuple[TaskRow, ...]:
        """Return tasks, the latest changed first, without snapshots."""
        ...

    async def find_tasks(self, query: TaskQuery) -> TaskPage:
        """Return a page of the tasks that a principal sees."""
        ...

    async def effects(self, task_id: str) -> tuple[EffectRow, ...]:
        """Return the task's ledger in the order of turn, index and key."""
        ...

    async def model_calls(self, task_id: str) -> tuple[ModelCallRow, ...]:
        """Return the start rows of the task's model calls, in the order of turn and attempt."""
        ...

    async def put_blob(self, data: bytes, media_type: str) -> str:
        """Store bytes and return their SHA-256 digest."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """Return a blob; raises `KeyError` when there is none."""
        ...

    async def close(self) -> None:
        """Release connections. The store may not be used afterwards."""
        ...
