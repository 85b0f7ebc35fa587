"""The outside world of these tests: a text file that tools append to, and that no code of the harness writes.

One line per call that reached it, written with one system call, so that lines of several processes do not mix and a
killed process leaves whole ones.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Noted:
    """What reached the outside: a name, the key it came with, and the process that it came from."""

    what: str
    key: str
    pid: int


class Outside:
    """One world's log."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, what: str, key: str = "") -> None:
        line = json.dumps({"what": what, "key": key, "pid": os.getpid()})
        log = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(log, f"{line}\n".encode())
        finally:
            os.close(log)

    def all(self) -> list[Noted]:
        if not self.path.exists():
            return []
        return [Noted(**json.loads(line)) for line in self.path.read_text().splitlines()]

    def of(self, what: str) -> list[Noted]:
        return [noted for noted in self.all() if noted.what == what]

    def count(self, what: str) -> int:
        return len(self.of(what))

    def keys(self) -> Counter[str]:
        return Counter(noted.key for noted in self.all())
