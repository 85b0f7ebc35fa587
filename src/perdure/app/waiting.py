"""What an open task waits for, read from its log; Temporal, where it can be asked, adds until when."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from perdure.core.attempts import AttemptRow
from perdure.core.content import Frozen
from perdure.core.log import LogEvent
from perdure.core.state import TERMINAL


class Waiting(Frozen):
    """One thing that a task waits for. Times in milliseconds since the epoch; `until_ms` None: no end is known.

    `person`: an answer to a question. `attempt`: a model or tool call under way. `backoff`: the next attempt.
    `message`: a run ended, and the next message goes on. `worker`: there is work, and nobody has taken it yet.
    """

    kind: Literal["person", "attempt", "backoff", "message", "worker"]
    text: str
    since_ms: int
    until_ms: int | None = None
    help_id: str = ""
    worker: str = ""


@dataclass
class _Log:
    """The last word of the log on each matter."""

    state: str = ""
    reason: str = ""
    changed_ms: int = 0
    run_open: bool = False
    questions: dict[str, tuple[str, int, int | None]] = field(default_factory=dict)
    closed: set[tuple[int, int | None]] = field(default_factory=set)
    last: LogEvent | None = None

    def take(self, row: LogEvent) -> None:
        index = row.data.get("index")
        self.last = row
        match row.kind:
            case "task.status":
                self.state, self.reason = str(row.data["state"]), str(row.data.get("reason", ""))
                self.changed_ms = row.at_ms
            case "run.started" | "run.ended":
                self.run_open = row.kind == "run.started"
            case "help.requested":
                expires = row.data.get("expires_at_ms")
                until_ms = expires if isinstance(expires, int) else None
                self.questions[str(row.data["help_id"])] = (str(row.data["text"]), row.at_ms, until_ms)
            case "help.answered" | "help.closed":
                self.questions.pop(str(row.data["help_id"]), None)
            case "tool.finished" if isinstance(index, int):
                self.closed.add((row.turn, index))
            case "model.answered":
                self.closed.add((row.turn, None))


def waits_of(
    rows: Sequence[LogEvent], attempts: Sequence[AttemptRow], timers: Sequence[tuple[int, int]] = ()
) -> tuple[Waiting, ...]:
    """Return what the task of this log waits for; nothing for a terminal one.

    `attempts` are those of the log, or of Temporal's history, which also knows until when; `timers` are Temporal's
    open ones, as (set, fires).
    """
    log = _Log()
    for row in rows:
        log.take(row)
    if log.last is None or log.state in TERMINAL:
        return ()
    found = [
        Waiting(kind="person", text=text, since_ms=since_ms, until_ms=until_ms, help_id=help_id)
        for help_id, (text, since_ms, until_ms) in log.questions.items()
    ]
    latest: dict[tuple[int, int | None], AttemptRow] = {}
    for attempt in attempts:
        if attempt.turn > 0:
            latest[attempt.call] = attempt
    for call, attempt in latest.items():
        if attempt.outcome == "open":
            found.append(_under_way(attempt))
        elif log.run_open and call not in log.closed and attempt.outcome != "completed":
            found.append(_backoff(attempt, timers))
    if found:
        return tuple(found)
    if log.state == "input_required" and not log.run_open:
        why = log.reason or "answered"
        return (Waiting(kind="message", text=f"the next message ({why})", since_ms=log.changed_ms),)
    return (Waiting(kind="worker", text="a worker that takes it up", since_ms=log.last.at_ms),)


def name_of(attempt: AttemptRow) -> str:
    """Return what an attempt tries, in words."""
    if attempt.activity == "invoke_tool":
        return f"{attempt.tool} (turn {attempt.turn}, call {attempt.index})"
    return f"the model (turn {attempt.turn})" if attempt.turn else attempt.activity


def _under_way(attempt: AttemptRow) -> Waiting:
    return Waiting(
        kind="attempt",
        text=f"{name_of(attempt)}: attempt {attempt.attempt} is under way",
        since_ms=attempt.scheduled_at_ms,
        until_ms=attempt.until_ms,
        worker=attempt.worker,
    )


def _backoff(attempt: AttemptRow, timers: Sequence[tuple[int, int]]) -> Waiting:
    # The timer of a backoff is set in the workflow task that took the failure in, thus right after it.
    since_ms = attempt.ended_at_ms or attempt.scheduled_at_ms
    after = sorted(fires for was_set, fires in timers if was_set >= since_ms)
    return Waiting(
        kind="backoff",
        text=f"{name_of(attempt)}: attempt {attempt.attempt + 1} follows, {attempt.attempt} failed ({attempt.problem})",
        since_ms=since_ms,
        until_ms=after[0] if after else None,
    )
