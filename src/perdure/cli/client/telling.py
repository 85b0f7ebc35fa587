"""What the client commands print: for people a line per event and the answer, with `--json` an object per event.

As with `perdure run`, standard output carries the task; notes, errors and the way on go to standard error.
"""

import json
from typing import Any, Protocol

from perdure.cli.client.said import DRAFT, Said
from perdure.cli.output import Outcome, note
from perdure.cli.timeline import WHO_CHARS, one_line, printable


class Telling(Protocol):
    """Takes what happens."""

    def task(self, task_id: str) -> None:
        """The server has named the task."""
        ...

    def event(self, said: Said) -> None:
        """Show one event."""
        ...

    def outcome(self, outcome: Outcome) -> None:
        """Show what came of it; the last thing on standard output."""
        ...


class Lines:
    """For people. Without `events` the answer alone."""

    def __init__(self, *, events: bool) -> None:
        self._events = events
        self._state = ""

    def task(self, task_id: str) -> None:
        """Name the task beside the output."""
        note(f"task {task_id}")

    def event(self, said: Said) -> None:
        """Print one line; none for a draft, whose whole comes, and without numbers none for what says nothing new."""
        if said.kind == DRAFT:
            return
        news = said.number is not None or said.text or said.state not in {"", self._state}
        self._state = said.state or self._state
        if self._events and news:
            print(line_of(said), flush=True)

    def outcome(self, outcome: Outcome) -> None:
        """Print the answer, whole; of a message that was given and no more, the task."""
        if outcome.outcome == "accepted":
            print(outcome.task_id, flush=True)
        elif outcome.outcome == "answered":
            print(("\n" if self._events else "") + printable(outcome.answer), flush=True)


class Objects:
    """For programs. Without `events` the outcome alone."""

    def __init__(self, *, events: bool) -> None:
        self._events = events

    def task(self, task_id: str) -> None:
        """Nothing: the outcome names it."""

    def event(self, said: Said) -> None:
        """Print one object."""
        if self._events:
            print(json.dumps(object_of(said)), flush=True)

    def outcome(self, outcome: Outcome) -> None:
        """Print the last object; it alone has a key `outcome`."""
        print(json.dumps(vars(outcome)), flush=True)


def telling_of(*, as_json: bool, events: bool = True) -> Telling:
    """Return how to tell it."""
    return Objects(events=events) if as_json else Lines(events=events)


def object_of(said: Said) -> dict[str, Any]:
    """Return what was said as it is printed with `--json`; `number` is null where the server does not number."""
    return {
        "number": said.number,
        "kind": said.kind,
        "task_id": said.task_id,
        "run": said.run,
        "turn": said.turn,
        "state": said.state,
        "artifact": said.artifact,
        "appends": said.appends,
        "text": said.text,
        "data": said.data,
    }


def line_of(said: Said) -> str:
    """Return what was said as a line: its number, who, what."""
    who, what = _told(said)
    number = "" if said.number is None else str(said.number)
    return f"{number:>5}  {one_line(who, 24):<{WHO_CHARS}} {what}"


def _told(said: Said) -> tuple[str, str]:
    if said.kind.startswith("tool.") and said.artifact:
        return str(said.data.get("tool", "tool")), f"hands over {said.artifact}: {one_line(said.text)}"
    if said.artifact:
        return "answer", one_line(said.text)
    part, _, what = said.kind.partition(".")
    words = what.replace("_", " ")
    match part:
        case "task" if said.kind == "task.status" or said.number is None:
            return "task", _status(said)
        case "status":
            return "task", _status(said)
        case "run":
            ended = f": {said.data.get('end')}" if said.data.get("end") else ""
            return "run", f"{said.run} {words}{ended}{_because(said)}"
        case "message":
            return "message", one_line(said.text) or f"{words} ({said.data.get('message_id')})"
        case "model":
            attempt = f", attempt {said.data['attempt']}" if what != "answered" and "attempt" in said.data else ""
            return "model", one_line(said.text) or f"turn {said.turn}{attempt} {words}"
        case "tool":
            attempt = f"attempt {said.data['attempt']} " if what in {"started", "failed"} else ""
            status = f": {said.data['status']}" if "status" in said.data else ""
            return str(said.data.get("tool", "tool")), f"{attempt}{words}{status}{_because(said)}"
        case _:
            return part, one_line(said.text) or words


def _status(said: Said) -> str:
    spoken = said.text if said.state not in {"completed", "working", "submitted"} or said.number is None else ""
    if said.data.get("reason") == "answered":
        spoken = ""
    inside = ": ".join(filter(None, (_reason(said), one_line(spoken))))
    return f"is {said.state.upper()}" + (f" ({inside})" if inside else "")


def _because(said: Said) -> str:
    reason = _reason(said)
    return f" ({reason})" if reason else ""


def _reason(said: Said) -> str:
    return one_line(str(said.data.get("reason", "")))
