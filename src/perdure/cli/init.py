"""`perdure init`: a first agent to change."""

import json
import shlex
from importlib import resources
from pathlib import Path
from typing import Annotated, Final

import typer

from perdure.core.errors import InvalidInput

STARTERS: Final = {"agent.toml": "starter_agent.txt", "agent_tools.py": "starter_tools.txt"}
"""Kept as texts beside this module, so that nothing imports or loads them by mistake."""


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the two files are written; made if missing.")
    ] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")] = False,
) -> None:
    """Write a commented first agent, agent.toml with its tools, that runs at once; overwrite nothing."""
    there = [folder / name for name in STARTERS if (folder / name).exists()]
    if there:
        raise InvalidInput("FOLDER", f"{there[0]} exists already and is left as it is; name another")
    wrote = [_write(folder, name, starter) for name, starter in STARTERS.items()]
    before = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    run = f'{before}perdure run agent.toml "Where is my order A-1?"'
    check = f"{before}perdure check agent.toml"
    if as_json:
        print(json.dumps({"wrote": [str(path) for path in wrote], "run": run, "check": check}))
        return
    for path in wrote:
        print(f"wrote {path}")
    print(f"run it:    {run}")
    print(f"check it:  {check}")


def _write(folder: Path, name: str, starter: str) -> Path:
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(resources.files("perdure.cli").joinpath(starter).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("FOLDER", f"{error.filename} cannot be written: {error.strerror}; name another") from error
    return path
