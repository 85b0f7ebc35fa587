"""The shop's data and its customers' requests, read at run time from the folder that PERDURE_TEST_RETAIL names."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FOLDER_VARIABLE = "PERDURE_TEST_RETAIL"
KINDS = ("users", "orders", "products")
NO_DATA = f"{FOLDER_VARIABLE} does not name a folder with users.json, orders.json, products.json and tasks.json"


@dataclass(frozen=True)
class Data:
    """All people, orders and products by kind and id. Never changed: each shop works on its own copy."""

    documents: dict[str, dict[str, Json]]


@dataclass(frozen=True)
class Task:
    """A customer's request and the calls that solve it, in order."""

    id: int
    user_id: str
    request: str
    actions: tuple[tuple[str, Json], ...]


def retail_folder() -> Path | None:
    """Return the folder of the data, or None when the environment names none that holds it."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return None
    folder = Path(named)
    whole = all((folder / f"{name}.json").is_file() for name in (*KINDS, "tasks"))
    return folder if whole else None


def load_data(folder: Path) -> Data:
    """Read everything a shop starts with; about 30 ms."""
    return Data({kind: json.loads((folder / f"{kind}.json").read_text(encoding="utf-8")) for kind in KINDS})


def load_tasks(folder: Path) -> tuple[Task, ...]:
    """Read the requests."""
    raw = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
    return tuple(
        Task(
            id=task["id"],
            user_id=task["user_id"],
            request=task["request"],
            actions=tuple((action["tool"], action["arguments"]) for action in task["actions"]),
        )
        for task in raw
    )


def conversation(task: Task) -> tuple[list[tuple[str, Json]], str]:
    """Return what the scripted model does for a request: its calls, one after another, and its final sentence."""
    calls = [(tool, json.loads(json.dumps(arguments))) for tool, arguments in task.actions]
    return calls, f"Request {task.id} is taken care of: {len(calls)} calls were made."
