"""From the file to its form: TOML, then the form; every problem of the first that has any is told."""

import re
import tomllib
from pathlib import Path as FilePath
from typing import Final

from pydantic import ValidationError

from perdure.app.agent_file.form import AgentForm
from perdure.app.agent_file.lines import lines_of
from perdure.app.agent_file.problems import AgentFileError, Places, Problem
from perdure.app.agent_file.wording import as_in, tell, unfit_numbers
from perdure.core.errors import ConfigurationError

_AT: Final = re.compile(r" \(at (line (?P<line>\d+), column \d+|end of document)\)$")

_HINTS: Final = {
    "Invalid value": 'a value is text in quotes, a number, true or false, a list or a table, as in: id = "shop"',
    "Expected '=' after a key": 'a key, an equals sign and a value, as in: id = "shop"',
    "Cannot overwrite a value": "this key stands there twice; keep one",
    "Cannot declare": "this table stands there twice; put its keys together",
    "Unclosed array": 'a list ends with ], as in: tools = ["shop_tools:refund"]',
    "Expected newline or end of document after a statement": "one key and its value on a line; text stands in quotes",
    "Expected ']' at the end of a table declaration": "a table's name stands in brackets, as in: [budget]",
}
"""What the parser says, by how it begins, and what helps."""


def read_form(file: FilePath) -> tuple[AgentForm, Places]:
    """Return what an agent file says, and its places for whoever finds more to tell.

    Raises `AgentFileError`, and `ConfigurationError` for a file that cannot be read.
    """
    text = _text_of(file)
    try:
        given = tomllib.loads(text)
        places = Places(str(file), lines_of(text))
    except tomllib.TOMLDecodeError as error:
        raise AgentFileError([_syntax(str(file), text, str(error))]) from error
    except RecursionError as error:
        raise AgentFileError([Problem(str(file), 1, "", "its lists or tables are nested too deeply")]) from error
    for path in unfit_numbers(given):
        places.refuse(path, f"inf and nan are no numbers to work with; give one{as_in(path)}")
    try:
        form = AgentForm.model_validate(given, strict=True)
    except ValidationError as error:
        tell(error, places)
        raise AgentFileError(places.found) from error
    places.raise_found()
    return form, places


def _text_of(file: FilePath) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(file), f"is not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except OSError as error:
        raise ConfigurationError(
            "AGENT", f"{file} cannot be read: {error.strerror}; name a TOML file, or module:agent"
        ) from error


def _syntax(file: str, text: str, said: str) -> Problem:
    at = _AT.search(said)
    line = int(at["line"]) if at is not None and at["line"] else text.rstrip().count("\n") + 1
    what = said if at is None else said[: at.start()]
    hint = next((hint for begins, hint in _HINTS.items() if what.startswith(begins)), "")
    return Problem(file, line, "", f"this is not TOML ({what}){f'; {hint}' if hint else ''}")
