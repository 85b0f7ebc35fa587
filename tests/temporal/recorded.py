"""Recorded histories: what a task that began under earlier code has in Temporal when today's replays it.

One folder of `histories/` per recording, one file per workflow run, as Temporal's own JSON, compressed;
`test_recorded.py` says how they are made. What says where it was made is taken out of it; nothing else is changed.

Those of a release are kept for ever. No release was made yet, and nobody has a task of what went before: until then
a recording may be made anew with the decision that it records, and the change log says that it was.
"""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

FOLDER = Path(__file__).with_name("histories")
_OF_THE_PLACE = {"identity", "stackTrace"}
"""What says where it was recorded: names of processes, and traces with their paths. No decision depends on them."""


def recordings() -> list[str]:
    """Return the names of all recordings."""
    return sorted(path.name for path in FOLDER.iterdir())


def read(name: str) -> list[WorkflowHistory]:
    """Return the histories of one recorded task, its first workflow run's first."""
    paths = sorted((FOLDER / name).glob("*.json.gz"))
    return [WorkflowHistory.from_json(name, gzip.decompress(path.read_bytes()).decode()) for path in paths]


def keep(name: str, histories: Sequence[WorkflowHistory]) -> None:
    """Keep a recording; raises `FileExistsError` where there is one of that name."""
    folder = FOLDER / name
    folder.mkdir()
    for place, history in enumerate(histories, 1):
        text = json.dumps(_anywhere(json.loads(history.to_json())), separators=(",", ":"))
        (folder / f"{place}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _anywhere(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _anywhere(value) for name, value in found.items() if name not in _OF_THE_PLACE}
    return [_anywhere(value) for value in found] if isinstance(found, list) else found
