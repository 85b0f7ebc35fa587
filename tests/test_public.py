"""The public surface: an export is a decision, so its names are pinned; importing does nothing."""

import subprocess
import sys
from pathlib import Path

import perdure

NAMES = [
    "Agent",
    "App",
    "ApprovalRule",
    "Artifact",
    "Budget",
    "Call",
    "Check",
    "ClientCredentials",
    "File",
    "McpServer",
    "ONCE_TABLE",
    "OpenApiTools",
    "OutcomeUnknown",
    "PerdureError",
    "RetryPolicy",
    "RunFailed",
    "Settings",
    "Task",
    "TaskEvent",
    "ToolError",
    "ToolRules",
    "load_agent",
    "once_check",
    "open_app",
    "tool",
]

QUIET = """
import os, sys
before = set(os.listdir(os.environ["HOME"]))
import perdure
assert set(os.listdir(os.environ["HOME"])) == before, "importing made files"
heavy = {"temporalio", "sqlalchemy", "pydantic_ai", "alembic"} & set(sys.modules)
assert not heavy, f"importing loaded {sorted(heavy)}"
"""


def test_the_names_are_these() -> None:
    assert sorted(perdure.__all__) == NAMES
    for name in NAMES:
        assert getattr(perdure, name) is not None


def test_importing_loads_nothing_and_touches_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUIET], env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
