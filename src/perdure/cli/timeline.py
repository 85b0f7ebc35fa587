"""A task's events as lines for people: when (from the task's first event), who, what.

What models, tools and persons wrote is shown on one line, cut, and without control characters: an event must not be
able to move the cursor of whoever reads it.
"""

import json
import unicodedata
from collections.abc import Mapping

from pydantic import JsonValue

from perdure.app.events import TaskEvent

LINE_CHARS_MAX = 160
WHO_CHARS = 12


def timeline_line(event: TaskEvent, began_ms: int, worker: str = "") -> str:
    """Return one event as a line; `began_ms` is the time of the task's first event, `worker` who made an attempt."""
    who, what = _told(event)
    by = f"  · {worker}" if worker else ""
    return f"{elapsed(event.at_ms - began_ms):>9}  {one_line(who, 24):<{WHO_CHARS}} {what}{by}"


def elapsed(span_ms: int) -> str:
    """Return a span of time in words that get coarser as it gets longer."""
    seconds = span_ms / 1000
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return f"+{seconds:.2f}s"
    if seconds < 3600:  # noqa: PLR2004 - seconds of an hour
        return f"+{int(seconds // 60)}m{int(seconds % 60):02}s"
    return f"+{int(seconds // 3600)}h{int(seconds % 3600 // 60):02}m"


def printable(text: str) -> str:
    """Return the text without control characters other than new lines and tabs."""
    return "".join(char if char in "\n\t" or unicodedata.category(char) != "Cc" else "\ufffd" for char in text)


def one_line(text: str, chars_max: int = LINE_CHARS_MAX) -> str:
    """Return the text on one line, cut to `chars_max` characters."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"


def _told(event: TaskEvent) -> tuple[str, str]:
    data = event.data
    match event.kind:
        case "task.created":
            return "task", f"created for agent {data.get('agent')}"
        case "task.status":
            return "task", f"is {str(data.get('state')).upper()}{_because(data)}"
        case "message.admitted":
            return "message", one_line(event.text) or "(its text is not stored yet)"
        case "message.promoted" | "message.moved" | "message.withdrawn":
            return "message", f"{event.kind.removeprefix('message.')} ({data.get('message_id')})"
        case "run.started":
            return "run", f"{event.run} started"
        case "run.ended":
            return "run", f"{event.run} ended: {data.get('end')}{_because(data)}"
        case "run.stop_requested" | "run.stopped_before_start":
            return "run", event.kind.removeprefix("run.").replace("_", " ")
        case _:
            return _told_of_others(event)


def _told_of_others(event: TaskEvent) -> tuple[str, str]:
    data = event.data
    match event.kind:
        case "help.requested":
            return "question", one_line(str(data.get("text")))
        case "help.answered":
            return "answer", f"{_verdict(data)}{one_line(str(data.get('text')))}"
        case "help.closed":
            return "question", f"closed without an answer{_because(data)}"
        case "child.done":
            return "child", f"{data.get('child_id')} is {data.get('status')}"
        case _:
            return _told_of_attempt(event)


def _verdict(data: Mapping[str, JsonValue]) -> str:
    """Say who approved or declined a call, and what they changed it to."""
    if "verdict" not in data:
        return ""
    by = f" by {data['by']}" if data.get("by") else ""
    changed = f", changed to {json.dumps(data['arguments'])}" if "arguments" in data else ""
    return one_line(f"{data['verdict']}{by}{changed}") + ": "


def _told_of_attempt(event: TaskEvent) -> tuple[str, str]:
    data = event.data
    who = "model" if event.kind.startswith("model.") else str(data.get("tool"))
    attempt = f"attempt {data.get('attempt')}"
    match event.kind:
        case "model.started":
            return who, f"turn {event.turn}, {attempt} begins{_by(data)}"
        case "model.answered":
            said = [one_line(event.text)] if event.text else []
            what = "; ".join([*said, *_asked(data.get("calls"))]) or f"an empty reply ({data.get('finish')})"
            return who, f"{what}{_by(data)}"
        case "tool.started":
            return who, f"{attempt} begins, key {data.get('key')}"
        case "tool.finished":
            return who, f"{data.get('status')}: {one_line(event.text)}" if event.text else str(data.get("status"))
        case "tool.told":
            notes = data.get("notes")
            return who, f"says: {one_line('; '.join(map(str, notes)) if isinstance(notes, list) else '')}"
        case "tool.asked":
            return who, f"{attempt} asks a person, and waits"
        case "tool.in_doubt":
            return who, f"outcome unknown, key {data.get('key')}: {one_line(str(data.get('reason')))}"
        case "tool.late":
            return "late", f"{data.get('status')}, key {data.get('key')}: {one_line(str(data.get('text')))}"
        case "tool.key_closed":
            return who, f"did not happen; key {data.get('key')} is closed"
        case _:
            return who, f"{attempt} failed ({data.get('failure')}): {one_line(str(data.get('message')))}"


def _by(data: Mapping[str, JsonValue]) -> str:
    """Name the model where there are several: the first by its name, another as what it is."""
    if "fallback" not in data:
        return ""
    place = data["fallback"]
    return " " + one_line(f"· {data.get('model')}{f', fallback {place}' if place else ''}")


def _asked(calls: JsonValue) -> list[str]:
    if not isinstance(calls, list):
        return []
    return [f"calls {_call(call)}" for call in calls if isinstance(call, dict)]


def _call(call: Mapping[str, JsonValue]) -> str:
    arguments = call.get("arguments")
    try:
        named = json.loads(arguments) if isinstance(arguments, str) else None
    except ValueError:
        named = None
    inside = "…" if named is None else ", ".join(f"{name}={json.dumps(value)}" for name, value in named.items())
    return one_line(f"{call.get('tool')}({inside})")


def _because(data: Mapping[str, JsonValue]) -> str:
    reason, message = str(data.get("reason") or ""), one_line(str(data.get("message") or ""))
    if reason == "help":
        return " (a question to a person)"
    inside = ": ".join(part for part in (reason, message) if part)
    return f" ({inside})" if inside else ""
