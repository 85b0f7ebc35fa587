"""How the demo is told while it happens: a timeline for people, or JSON lines for programs."""

import json
import sys
from collections.abc import Sequence
from typing import Final, Protocol

from rich.console import Console
from rich.text import Text

from perdure.app.events import TaskEvent
from perdure.cli.demo.evidence import Evidence
from perdure.cli.demo.stage import Stage
from perdure.cli.demo.tables import attempts_table, effects_table
from perdure.cli.demo.verdict import Judgement

TEXT_CHARS_MAX: Final = 160
"""A line of the timeline says what happened; the whole text stands in the log."""

_GOOD, _BAD, _DIM, _PERSON, _MODEL = "bold green", "bold red", "dim", "cyan", "magenta"


class Teller(Protocol):
    """Takes what happens, as it happens."""

    def note(self, text: str) -> None:
        """Say something about the demo itself."""
        ...

    def worker(self, what: str, pid: int, at_s: float, text: str) -> None:
        """Tell a worker's `started`, `killed` or `kill_me`, `at_s` seconds after the demo's start."""
        ...

    def event(self, event: TaskEvent, at_s: float) -> None:
        """Tell one event of the task."""
        ...

    def verdict(self, stage: Stage, evidence: Evidence, judgements: Sequence[Judgement]) -> None:
        """Show the tables, where the data are, and as the last lines what held."""
        ...


class JsonTeller:
    """JSON lines on standard output; the last one is the verdict."""

    def note(self, text: str) -> None:
        """Print a note."""
        _print({"event": "note", "text": text})

    def worker(self, what: str, pid: int, at_s: float, text: str) -> None:
        """Print a worker's line."""
        _print({"event": f"worker.{what}", "pid": pid, "at_s": round(at_s, 3), "text": text})

    def event(self, event: TaskEvent, at_s: float) -> None:
        """Print an event of the task under its own kind."""
        _print(
            {
                "event": event.kind,
                "number": event.number,
                "at_s": round(at_s, 3),
                "turn": event.turn,
                "data": event.data,
                "text": event.text,
            }
        )

    def verdict(self, stage: Stage, evidence: Evidence, judgements: Sequence[Judgement]) -> None:
        """Print the verdict with the rows of both tables."""
        _print(
            {
                "event": "verdict",
                "held": all(judgement.held for judgement in judgements),
                "scripted": evidence.notes.scripted,
                "kill": evidence.notes.kill,
                "task_id": evidence.notes.task_id,
                "folder": str(stage.folder),
                "world": str(stage.world),
                "attempts": [row.model_dump(mode="json") for row in evidence.history],
                "effects": [row.model_dump(mode="json") for row in evidence.effects],
                "judgements": [vars(judgement) for judgement in judgements],
            }
        )


class TimelineTeller:
    """A timeline on the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def note(self, text: str) -> None:
        """Print a note."""
        self._line(Text(text))

    def worker(self, what: str, pid: int, at_s: float, text: str) -> None:
        """Print a worker's line; a kill stands out."""
        mark = {"started": "▶", "killed": "✖"}.get(what, "‼")
        style = "bold blue" if what == "started" else _BAD
        self._line(Text.assemble((_time(at_s), _DIM), "       ", (f"{mark} {text}", style)))

    def event(self, event: TaskEvent, at_s: float) -> None:
        """Print one event in words."""
        style, words = _told(event)
        short = words if len(words) <= TEXT_CHARS_MAX else words[: TEXT_CHARS_MAX - 1] + "…"
        self._line(Text.assemble((_time(at_s), _DIM), (f"  #{event.number:<3} ", _DIM), (short, style)))

    def verdict(self, stage: Stage, evidence: Evidence, judgements: Sequence[Judgement]) -> None:
        """Print the tables, where the data are, and the verdict."""
        self._line(Text())
        for table in (attempts_table(evidence), effects_table(evidence)):
            self._console.print(table)
        task_id = evidence.notes.task_id
        self._line(Text(f"\nLook at it again:  PERDURE_HOME={stage.folder} perdure show {task_id}"))
        self._line(Text(f"Judge it again:    perdure demo --judge {stage.folder}"))
        self._line(Text(f"The world's log:   table calls of {stage.world}\n"))
        self._line(
            Text("Judged from the outside world's own log and Temporal's history (P7, P9 and P11 are not shown here)")
        )
        for judgement in judgements:
            held = ("held  ", _GOOD) if judgement.held else ("BROKEN", _BAD)
            found = "" if judgement.held else f" — found: {judgement.found}"
            self._line(Text.assemble((f"{judgement.promise:<6}", "bold"), held, f"  {judgement.claim}{found}"))
        broken = sum(not judgement.held for judgement in judgements)
        if broken:
            self._line(Text(f"{broken} of {len(judgements)} did not hold.", style=_BAD))
        else:
            self._line(Text(f"All {len(judgements)} held.", style=_GOOD))

    def _line(self, text: Text) -> None:
        # Unwrapped: whoever reads the last lines with a program finds each claim on one line.
        self._console.print(text, soft_wrap=True)


def _time(at_s: float) -> str:
    return f"{at_s:6.1f} s"


def _told(event: TaskEvent) -> tuple[str, str]:
    """Return the style and the words for an event."""
    data, text = event.data, " ".join(event.text.split())
    tool, attempt = data.get("tool"), data.get("attempt")
    again = f" (attempt {attempt})" if isinstance(attempt, int) and attempt > 1 else ""
    match event.kind:
        case "task.status":
            state = str(data["state"]).upper()
            waits = state == "INPUT_REQUIRED"
            # Over A2A a question's words come with the status.
            asked = f": {data['text']}" if waits and data.get("text") else ""
            return "bold yellow" if waits else "bold", f"── {state}{asked}"
        case "message.admitted" | "help.answered":
            return _PERSON, f"customer: {text}"
        case "help.requested":
            return _MODEL, f"agent asks: {text}" if text else "agent asks"
        case "model.started":
            return _DIM, f"turn {event.turn}: the model is called{again}"
        case "model.answered":
            return _MODEL, f"agent: {text}" if text else f"agent calls {_calls(event) or 'its tools'}"
        case "tool.started":
            return "", f"{tool} begins{again}"
        case "tool.finished":
            return "", f"{tool} returns {text}".rstrip()
        case "model.failed" | "tool.failed":
            return _BAD, f"{tool or 'the model call'}: attempt {attempt} is lost: {text}"
        case "run.ended":
            return _DIM, f"run {event.run} ends: {data.get('end')} {data.get('reason') or ''}".rstrip()
        case _:
            return _DIM, event.kind.replace(".", " ")


def _calls(event: TaskEvent) -> str:
    calls = event.data.get("calls")
    given = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return ", ".join(f"{call.get('tool')} {call.get('arguments') or ''}".rstrip() for call in given)


def _print(line: dict[str, object]) -> None:
    print(json.dumps(line, ensure_ascii=False), file=sys.stdout, flush=True)
