"""What the agent of `bench.front` does, and where it notes when an event could first be read; both servers use it.

A task is TURNS turns of a model call, which takes PAUSE_S, and a tool call, which takes none; then an answer.
"""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

PLACE = Path(os.environ.get("PERDURE_BENCH_PLACE", "/nonexistent"))
TURNS = int(os.environ.get("PERDURE_BENCH_TURNS", "1"))
PAUSE_S = float(os.environ.get("PERDURE_BENCH_PAUSE_S", "0"))
ANSWER_ONLY = "answer"
"""A message that asks for no turn but the answer."""


def note(task_id: str, numbers: Sequence[int], at_ns: int | None = None) -> None:
    """Note that these events of a task can be read from now on. The clock is the same in all processes."""
    line = json.dumps({"task": task_id, "numbers": numbers, "at_ns": at_ns or time.monotonic_ns()})
    log = os.open(PLACE / f"readable-{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(log, f"{line}\n".encode())
    os.close(log)


def readable(place: Path) -> dict[tuple[str, int], int]:
    """Return when each event could first be read; one behind a gap could not be read before the gap was filled."""
    noted: dict[str, dict[int, int]] = {}
    for path in place.glob("readable-*.log"):
        for line in path.read_text().splitlines():
            found = json.loads(line)
            times = noted.setdefault(found["task"], {})
            for number in found["numbers"]:
                times[number] = min(found["at_ns"], times.get(number, found["at_ns"]))
    first: dict[tuple[str, int], int] = {}
    for task_id, times in noted.items():
        latest = 0
        for number in sorted(times):
            latest = max(latest, times[number])
            first[task_id, number] = latest
    return first
