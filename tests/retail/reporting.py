"""What a run's report says, and where it is kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.kept import keep
from tests.retail.data import Task, conversation
from tests.retail.figures import Figures
from tests.retail.judge import Direct
from tests.retail.verdict import Ended, faults


def judged(ended: Iterable[Ended], expected: Mapping[int, Direct], tasks: Sequence[Task]) -> list[str]:
    """Return everything that is wrong with the conversations, in words."""
    last = {task.id: conversation(task)[1] for task in tasks}
    return [
        fault for each in ended for fault in faults(each, expected[each.conversation_id], last[each.conversation_id])
    ]


def report(
    name: str,
    summary: Figures,
    found: Sequence[str],
    record_property: Callable[[str, object], None],
    **more: object,
) -> None:
    """Print a run's figures, and keep them as `NAME-SEED.json` where the environment names a folder for that."""
    for line in (*summary.lines(), *(f"{key}: {value}" for key, value in more.items())):
        print(line)
        record_property(*line.split(": ", 1))
    keep(f"{name}-{summary.seed}", {**asdict(summary), **more, "faults": found})


def print_logs(folder: Path, pattern: str) -> None:
    """Print the ends of logs, to say what happened where something went wrong."""
    for log in sorted(folder.glob(pattern)):
        print(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")
