"""Attempts as rows: every try at an activity, and what became of it.

The same rows are derived twice: here from the event log with the ledger, which is all that a reader without Temporal
has, and in `temporal/history.py` from Temporal's own history. Whoever doubts the one can hold it against the other.

The log tells of model and tool calls alone: a store write cannot be a row of the log that it writes. Temporal's history
has every activity, for as long as it is kept. `joined` makes one list of the two.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from perdure.core.content import Frozen
from perdure.core.failure import DIED_WITH_SUPERVISOR
from perdure.core.log import LogEvent
from perdure.core.ports import EffectRow, ModelCallRow

AttemptOutcome = Literal["completed", "timed_out", "failed", "cancelled", "open"]


class AttemptRow(Frozen):
    """One attempt of one activity. Times in milliseconds since the epoch.

    `turn` and `index` are 0 and None for an activity that belongs to no turn (a store write), whose attempts are not
    numbered: each has `attempt` 1. `worker` is empty where
    it is not known: nobody took the attempt, or it found its answer recorded and left no row of its own. `until_ms`
    is when an open one times out at the latest. `key` is a tool call's idempotency key, `model` whom a model call asked
    where its agent has several.
    """

    activity: str
    turn: int = 0
    index: int | None = None
    tool: str = ""
    key: str = ""
    attempt: int = 1
    scheduled_at_ms: int
    ended_at_ms: int | None = None
    outcome: AttemptOutcome = "open"
    worker: str = ""
    problem: str = ""
    model: str = ""
    until_ms: int | None = None

    @property
    def call(self) -> tuple[int, int | None]:
        """The operation that this is an attempt at: a turn's model call (index None), or one of its tool calls."""
        return self.turn, self.index


_OUTCOMES: dict[str, AttemptOutcome] = {"timeout": "timed_out", "worker_lost": "timed_out", "cancelled": "cancelled"}
"""What a recorded failure kind looks like in Temporal's history; every other is a failure there too.

So is a loss that somebody told Temporal of, because the worker's supervisor had died with it.
"""

_Key = tuple[int, int | None, int]


def attempts_from_log(
    rows: Iterable[LogEvent], model_calls: Iterable[ModelCallRow] = (), effects: Iterable[EffectRow] = ()
) -> tuple[AttemptRow, ...]:
    """Return the attempts that a task's log tells of, in the order in which they were scheduled.

    Their workers are read from the start rows of model calls and from the ledger's begun attempts.
    """
    models = {(call.turn, call.attempt): call.worker for call in model_calls}
    tools = {(effect.key, begun.attempt): begun.worker for effect in effects for begun in effect.begun}
    found: dict[_Key, AttemptRow] = {}
    for row in rows:
        number = row.data.get("attempt")
        if not isinstance(number, int):
            continue
        index = row.data.get("index")
        key: _Key = (row.turn, index if isinstance(index, int) else None, number)
        if row.kind == "model.started":
            worker = models.get((row.turn, number), "")
            found[key] = _begun(row, "invoke_llm", key, worker)
        elif row.kind == "tool.started":
            worker = tools.get((str(row.data.get("key")), number), "")
            found[key] = _begun(row, "invoke_tool", key, worker)
        elif key in found and found[key].outcome == "open":
            found[key] = _ended(found[key], row)
    return tuple(found.values())


def joined(log: Sequence[AttemptRow], history: Sequence[AttemptRow]) -> tuple[AttemptRow, ...]:
    """Return the attempts of both witnesses, each once, in the order in which they were scheduled.

    What became of an attempt is what Temporal's history says. The log adds what history lacks: the worker of an attempt
    that is open, the kind of a failure, and the attempts of a history that Temporal has forgotten.
    """
    logged = {_name(row): row for row in log}
    known = {_name(row) for row in history if row.turn}
    forgotten = [row for row in log if _name(row) not in known]
    told = [_told(row, logged.get(_name(row)) if row.turn else None) for row in history]
    return tuple(sorted([*forgotten, *told], key=lambda row: row.scheduled_at_ms))


def _name(row: AttemptRow) -> tuple[str, int, int | None, int]:
    return row.activity, row.turn, row.index, row.attempt


def _told(row: AttemptRow, logged: AttemptRow | None) -> AttemptRow:
    if logged is None:
        return row
    problem = logged.problem if row.outcome == logged.outcome else ""
    return row.model_copy(update={"worker": row.worker or logged.worker, "problem": problem or row.problem})


def _begun(row: LogEvent, activity: str, key: _Key, worker: str) -> AttemptRow:
    turn, index, attempt = key
    return AttemptRow(
        activity=activity,
        turn=turn,
        index=index,
        tool=str(row.data.get("tool", "")),
        key=str(row.data.get("key", "")),
        attempt=attempt,
        scheduled_at_ms=row.at_ms,
        worker=worker,
        model=str(row.data.get("model", "")),
    )


def _ended(attempt: AttemptRow, row: LogEvent) -> AttemptRow:
    outcome: AttemptOutcome
    problem = ""
    match row.kind:
        case "model.answered" | "tool.finished" | "tool.asked" | "tool.in_doubt" | "tool.key_closed":
            outcome = "completed"
        case "model.failed" | "tool.failed":
            kind = str(row.data.get("failure", ""))
            message = str(row.data.get("message", ""))
            outcome = "failed" if message == DIED_WITH_SUPERVISOR else _OUTCOMES.get(kind, "failed")
            problem = f"{kind}: {message}"
        case _:
            return attempt
    return attempt.model_copy(update={"outcome": outcome, "ended_at_ms": row.at_ms, "problem": problem})
