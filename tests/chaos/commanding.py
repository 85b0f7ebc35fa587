"""`perdure chaos` as a command over real processes, and what it told."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WITHIN_S = 180.0
"""A bound for what takes a quarter of a minute on a quiet machine."""


@dataclass(frozen=True)
class Finished:
    """Its exit code, the lines of `--json`, and what it said to people."""

    code: int
    objects: list[dict[str, Any]]
    err: str

    @property
    def sum(self) -> dict[str, Any]:
        return self.objects[-1]

    @property
    def trials(self) -> list[dict[str, Any]]:
        return self.objects[:-1]

    @property
    def verdict(self) -> dict[str, str]:
        verdict: dict[str, str] = self.objects[0]["verdict"]
        return verdict


def chaos(folder: Path, *arguments: str, within_s: float = WITHIN_S) -> Finished:
    """Run it in a folder; its evidence is in the folder's `kept` afterwards."""
    done = subprocess.run(
        [sys.executable, "-m", "perdure.cli.main", "chaos", *arguments, "--json", "--keep", "kept"],
        cwd=folder,
        env={**os.environ, "PERDURE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=within_s,
    )
    assert done.returncode in {0, 1}, f"{done.stdout}\n{done.stderr}"
    return Finished(done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr)
