"""The tables of `show` and `tasks`, and what stands in them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perdure.cli.timeline import printable
from perdure.core.attempts import AttemptOutcome, AttemptRow
from perdure.core.log import LogEvent
from perdure.core.ports import EffectRow

PIPED_WIDTH_CHARS = 240
"""Wide enough for a key and two worker names; a program that reads columns takes `--json` instead."""

OUTCOMES: tuple[AttemptOutcome, ...] = ("completed", "timed_out", "failed", "cancelled", "open")

FROM_HISTORY = "from Temporal's history"
FROM_LOG = "from the event log alone: model and tool calls, without Temporal's history"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], nothing: str) -> None:
    """Print a table, or that there is nothing to print."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    if title:
        print(f"\n{title}")
    if not table.row_count:
        print(f"  {nothing}")
        return
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, emoji=False, width=PIPED_WIDTH_CHARS)
    console.print(table)


def print_attempts(attempts: Sequence[AttemptRow], origin: str) -> None:
    """Print the attempts one by one, and their counts per activity; `origin` says which witness told of them."""
    print_table(
        f"attempts, {origin}",
        ("activity", "call", "attempt", "outcome", "took", "worker", "why"),
        ((row.activity, *_try(row), row.outcome, took(row), row.worker or "-", row.problem) for row in attempts),
        "none yet",
    )
    print_table(
        f"per activity, {origin}",
        ("activity", "scheduled", *(outcome.replace("_", " ") for outcome in OUTCOMES), "workers"),
        (
            (each["activity"], each["scheduled"], *(each[outcome] for outcome in OUTCOMES), _shares(each["workers"]))
            for each in counts(attempts)
        ),
        "none yet",
    )


def print_effects(effects: Sequence[EffectRow], doubts: "Doubts") -> None:
    """Print the ledger: what was begun outside under which key, by whom, and what became of it."""
    print_table(
        "effects",
        ("key", "tool", "class", "begun", "outcome"),
        ((row.key, row.tool, row.effect, begun(row), effect_outcome(row, doubts)) for row in effects),
        "none: no tool was called",
    )


def counts(attempts: Sequence[AttemptRow]) -> list[dict[str, Any]]:
    """Return per activity how many attempts were scheduled, how many came to what, and how many each worker took."""
    by_activity: dict[str, list[AttemptRow]] = {}
    for row in attempts:
        by_activity.setdefault(row.activity, []).append(row)
    return [
        {
            "activity": name,
            "scheduled": len(rows),
            **{outcome: sum(row.outcome == outcome for row in rows) for outcome in OUTCOMES},
            "workers": dict(Counter(row.worker for row in rows if row.worker)),
        }
        for name, rows in by_activity.items()
    ]


def _shares(workers: Mapping[str, int]) -> str:
    return ", ".join(f"{count} by {worker}" for worker, count in workers.items()) or "-"


def _try(row: AttemptRow) -> tuple[str, str]:
    """Return the call, and which attempt at it; what belongs to no call has no numbered attempts."""
    return call_name(row), str(row.attempt) if row.turn else "-"


def call_name(row: AttemptRow) -> str:
    """Return which call of which turn an attempt belongs to."""
    if not row.turn:
        return "-"
    if row.index is None:
        return f"turn {row.turn} {row.model}".rstrip()
    return f"turn {row.turn}/{row.index} {row.tool}"


def took(row: AttemptRow) -> str:
    """Return how long an attempt took."""
    return "-" if row.ended_at_ms is None else f"{(row.ended_at_ms - row.scheduled_at_ms) / 1000:.2f}s"


def begun(row: EffectRow) -> str:
    """Return the begun attempts of an effect with their workers."""
    return ", ".join(f"{each.attempt} by {each.worker}{', asked' * each.asked}" for each in row.begun) or "never"


@dataclass(frozen=True)
class Doubts:
    """What a log says of outcomes that nobody could tell: the keys found in doubt, and those given up as unknown."""

    found: frozenset[str]
    given_up: frozenset[str]

    @classmethod
    def of(cls, rows: Iterable[LogEvent]) -> "Doubts":
        """Read them from a task's log."""
        found, given_up = set(), set()
        for row in rows:
            if row.kind == "tool.in_doubt":
                found.add(str(row.data["key"]))
            elif row.kind == "tool.finished" and row.data.get("status") == "unknown":
                given_up.add(str(row.data.get("key")))
        return cls(frozenset(found), frozenset(given_up))

    def hold(self, row: EffectRow) -> bool:
        """Whether it is unknown even now what became of an effect."""
        return row.outcome == "open" and row.key in self.found

    def late(self, row: EffectRow) -> bool:
        """Whether its result came after its call was closed without it."""
        return row.late or (row.outcome == "done" and row.key in self.given_up)


def effect_outcome(row: EffectRow, doubts: Doubts) -> str:
    """Return what became of an effect: its status, open, in doubt, or closed without having happened."""
    outcome = f"done: {row.status}" if row.outcome == "done" else row.outcome
    if doubts.hold(row):
        outcome = "in doubt"
    return f"{outcome} (its result came late)" if doubts.late(row) else outcome
