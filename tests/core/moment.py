"""One step of a task: the witness's account before it, what happened, and what came of it.

What is owed (`owed.py`, `deeds.py`, `ends.py`) is asked of such steps. The account before must be kept, because by then
the witness has moved on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.core import events
from perdure.core.commands import Append, Command
from perdure.core.failure import Failure
from perdure.core.log import LogEvent
from perdure.core.state import TaskState
from tests.core.witness import Place, Witness

AT_ODDS = {"diverged", "fenced"}
"""Failures that say that store and history disagree, or that a stop or a later attempt stands: the run ends."""


@dataclass(frozen=True)
class Before:
    """The account as it stood before an event."""

    waiting: frozenset[str]
    known: bool
    run: int
    winding: bool
    runnable: bool
    terminal: bool
    asks: frozenset[str]
    watched: frozenset[str]
    waits: frozenset[Place]
    fallback: int
    spent: int
    at_the_limit: bool


@dataclass(frozen=True)
class Step:
    """One event, the account `at` after it, and what the machine answered; `end` is the row of the run's end."""

    before: Before
    event: events.Event
    commands: Sequence[Command]
    rows: Sequence[LogEvent]
    state: TaskState
    at: Witness

    @property
    def kinds(self) -> list[str]:
        """The kinds of its rows."""
        return [row.kind for row in self.rows]

    @property
    def end(self) -> LogEvent | None:
        """The row of the end of its run, where the run ended."""
        return next((row for row in self.rows if row.kind == "run.ended"), None)

    @property
    def failure(self) -> Failure | None:
        """Why an attempt failed, where one did."""
        return self.event.failure if isinstance(self.event, events.ModelFailed | events.ToolFailed) else None


def look(at: Witness, event: events.Event) -> Before:
    """Return what the account says before this event."""
    message_id = event.message_id if isinstance(event, events.Admitted) else ""
    failure = event.failure if isinstance(event, events.ModelFailed | events.ToolFailed) else None
    return Before(
        waiting=frozenset(at.pending),
        known=message_id in at.pending or message_id in at.gone,
        run=at.run,
        winding=at.winding,
        runnable=any(m.tail > at.head for m in at.pending.values()),
        terminal=at.terminal,
        asks=frozenset(at.asks),
        watched=frozenset(at.watched),
        waits=frozenset(at.waits),
        fallback=at.asked.fallback,
        spent=at.asked.spent,
        at_the_limit=failure is not None and _is_one_too_many(at, failure),
    )


def step_of(
    before: Before, event: events.Event, commands: Sequence[Command], state: TaskState, account: Witness
) -> Step:
    """Return the step that the witness has just seen."""
    rows = [command.event for command in commands if isinstance(command, Append)]
    return Step(before, event, commands, rows, state, account)


def place_of(event: events.ModelReplied | events.ModelFailed | events.ToolFinished | events.ToolFailed) -> Place:
    """Whose attempt came to something."""
    return event.turn, event.index if isinstance(event, events.ToolFinished | events.ToolFailed) else None


def _is_one_too_many(at: Witness, failure: Failure) -> bool:
    """R12: whether this death, proved and alone, makes a crash loop."""
    again = failure.worker != "" and failure.worker == at.dead
    alone = failure.kind == "worker_died" and failure.alone and not again
    return alone and at.run > 0 and not at.winding and at.crashes + 1 >= at.agent.crashes_max
