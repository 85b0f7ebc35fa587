"""`perdure init`: a first agent to change."""

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
) -> None:
    """Write a commented first agent, agent.toml with its tools, that runs at once; overwrite nothing."""
    there = [folder / name for name in STARTERS if (folder / name).exists()]
    if there:
        raise InvalidInput("FOLDER", f"{there[0]} exists already and is left as it is; name another")
    for name, starter in STARTERS.items():
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(resources.files("perdure.cli").joinpath(starter).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidInput(
                "FOLDER", f"{error.filename} cannot be written: {error.strerror}; name another"
            ) from error
        print(f"wrote {path}")
    before = "" if folder == Path() else f"cd {folder} && "
    print(f'run it:    {before}perdure run agent.toml "Where is my order A-1?"')
    print(f"check it:  {before}perdure check agent.toml")
