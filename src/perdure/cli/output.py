"""What `run` prints: for people a timeline and the answer, with `--json` one object a line.

Standard output carries the task; notes about the machinery, prompts and errors go to standard error, so that `--json`
stays JSON.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from perdure.app.events import TaskEvent
from perdure.cli.timeline import printable, timeline_line


@dataclass(frozen=True)
class Outcome:
    """How following a task ended.

    `waiting`: for an answer that nobody here can give. `accepted`: the message was taken in, and that was all.
    """

    outcome: Literal["answered", "unanswered", "waiting", "interrupted", "accepted"]
    task_id: str
    state: str = ""
    reason: str = ""
    message: str = ""
    answer: str = ""
    exit_code: int = 0


class Output(Protocol):
    """Takes what happens."""

    def event(self, event: TaskEvent) -> None:
        """Show one event."""
        ...

    def outcome(self, outcome: Outcome) -> None:
        """Show how it ended; the last thing on standard output."""
        ...


class TimelineOutput:
    """For people."""

    def __init__(self) -> None:
        self._began_ms: int | None = None

    def event(self, event: TaskEvent) -> None:
        """Print one line."""
        if self._began_ms is None:
            self._began_ms = event.at_ms
        print(timeline_line(event, self._began_ms), flush=True)

    def outcome(self, outcome: Outcome) -> None:
        """Print the answer, whole."""
        if outcome.answer and outcome.outcome == "answered":
            print(f"\n{printable(outcome.answer)}", flush=True)


class JsonOutput:
    """For programs."""

    def event(self, event: TaskEvent) -> None:
        """Print one object."""
        print(json.dumps(event_object(event)), flush=True)

    def outcome(self, outcome: Outcome) -> None:
        """Print the last object; it alone has a key `outcome`."""
        print(json.dumps(vars(outcome)), flush=True)


def event_object(event: TaskEvent) -> dict[str, Any]:
    """Return an event as it is printed with `--json`."""
    return {
        "number": event.number,
        "kind": event.kind,
        "at_ms": event.at_ms,
        "run": event.run,
        "turn": event.turn,
        "text": event.text,
        "data": event.data,
    }


def note(text: str) -> None:
    """Tell a person something about the machinery, on standard error."""
    print(printable(text), file=sys.stderr, flush=True)
