"""`perdure init`: a first agent to change."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from perdure.core.errors import InvalidInput

STARTER = "starter_agent.txt"
"""Kept as text beside this module, so that nothing imports it by mistake."""


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where agent.py is written; made if missing.")
    ] = Path(),
) -> None:
    """Write a commented first agent, agent.py, that runs at once; overwrite nothing."""
    path = folder / "agent.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x") as file:
            file.write(resources.files("perdure.cli").joinpath(STARTER).read_text())
    except FileExistsError as error:
        raise InvalidInput("FOLDER", f"{error.filename} exists already and is left as it is; name another") from error
    except OSError as error:
        raise InvalidInput("FOLDER", f"{error.filename} cannot be written: {error.strerror}; name another") from error
    print(f"wrote {path}")
    there = "" if folder == Path() else f"cd {folder} && "
    print(f'run it:  {there}perdure run agent:agent "Where is my order A-1?"')
