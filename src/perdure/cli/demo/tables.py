"""The two tables at the demo's end: what Temporal scheduled, and what the ledger holds."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from perdure.cli.demo.evidence import Evidence
from perdure.core.attempts import AttemptRow


class Workers:
    """Names workers by the order of their start: a reader sees which life did what."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._numbers = {str(pid): str(number) for number, pid in enumerate(pids, 1)}

    def names(self, identities: Iterable[str]) -> str:
        """Return the numbers of these workers, each once; an identity that was not started here as it is."""
        known = (self._numbers.get(identity.partition("@")[0], identity) for identity in identities if identity)
        return ", ".join(dict.fromkeys(known))


def attempts_table(evidence: Evidence) -> Table:
    """Return the attempts per activity, from Temporal's history: model and tool calls by turn, writes together."""
    workers = Workers(evidence.notes.workers)
    groups: dict[tuple[int, str], list[AttemptRow]] = {}
    for row in evidence.history:
        tool = row.tool.rpartition(".")[2]  # without its server's name, so that the table fits
        groups.setdefault((row.turn, f"{row.activity} {tool}".rstrip()), []).append(row)
    table = _table("Attempts per activity, from Temporal's history (workers in their order)")
    table.add_column("turn", justify="right")
    table.add_column("activity", no_wrap=True)
    for name in ("scheduled", "completed", "timed out", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("worker", no_wrap=True)
    for (turn, activity), rows in sorted(groups.items(), key=lambda group: group[0][0] or sys.maxsize):
        counts = Counter(row.outcome for row in rows)
        numbers = (len(rows), counts["completed"], counts["timed_out"], counts["failed"] + counts["cancelled"])
        shown = (str(number) if number else "" for number in numbers)
        table.add_row(str(turn or ""), activity, *shown, workers.names(row.worker for row in rows))
    return table


def effects_table(evidence: Evidence) -> Table:
    """Return the ledger: each tool call with its key, who began it, and what became of it."""
    workers, task = Workers(evidence.notes.workers), evidence.notes.task_id
    received = Counter(call.key for call in evidence.calls)
    table = _table(f"Effects, from the ledger (keys begin with {task})")
    for name in ("key", "tool", "class", "begun by worker", "outcome"):
        table.add_column(name, no_wrap=True)
    table.add_column("world's calls", justify="right", no_wrap=True)
    for row in evidence.effects:
        begun = workers.names(attempt.worker for attempt in row.begun)
        outcome = row.outcome if row.status in {None, "ok"} else f"{row.outcome}: {row.status}"
        key = row.key.removeprefix(task)
        table.add_row(key, row.tool, row.effect, begun, outcome, str(received[row.key]))
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0)  # fits 80 columns
