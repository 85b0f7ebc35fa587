"""Notes with their moments, one JSON line each: what clients keep for themselves, and what the outside saw.

Moments are of the machine's monotonic clock, which all its processes share. A line is written with one system call, so
that lines of several processes do not mix and a killed process leaves whole ones.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Note = Mapping[str, Any]


class Notes:
    """One file of notes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, **fields: Any) -> None:
        line = json.dumps({**fields, "at": now_s()})
        log = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(log, f"{line}\n".encode())
        finally:
            os.close(log)

    def all(self) -> list[Note]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]


def now_s() -> float:
    return time.monotonic()
