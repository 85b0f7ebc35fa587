"""`perdure backup`: store and embedded Temporal together, while everything runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from perdure.app.backup import take_backup
from perdure.app.settings import Settings


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder; nothing is overwritten.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")] = False,
) -> None:
    """Copy store and embedded Temporal into DIR, as of one moment, while everything runs.

    DIR becomes a data folder: to go on from it, end everything that runs on
    the old one, and name a copy of DIR with --home or PERDURE_HOME. What has
    happened since the backup was taken happens again then: it is for a lost
    data folder, not for a second try.
    """
    taken = take_backup(Settings.from_environment(), folder)
    if as_json:
        said = {"folder": str(taken.folder), "tasks": taken.tasks, "open_tasks": taken.open_tasks}
        print(json.dumps({**said, "bytes": taken.bytes_by_file, "held_ms": taken.held_ms}))
        return
    sizes = ", ".join(f"{name} {size / 1024 / 1024:.1f} MiB" for name, size in taken.bytes_by_file.items())
    print(f"{taken.folder}: {sizes}; {taken.tasks} tasks, {taken.open_tasks} of them open")
    print(f"writes waited for {taken.held_ms} ms meanwhile")
