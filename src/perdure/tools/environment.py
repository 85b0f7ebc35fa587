"""Values from the environment: `${NAME}` in what an operator wrote, filled in when a source of tools opens.

A file that says what an agent is may be read by anybody; what opens doors stays in the environment. It is read when a
source opens and not before, so that an agent can be imported, shown and checked without its secrets.

What was filled in must not come out again: a service may repeat it in an error, and an error goes into the log and to
the model. So whoever fills in also masks, by the values themselves. A value of fewer than `MASKED_CHARS_MIN` characters
is no secret that this could hide without spoiling ordinary words.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from perdure.core.errors import ConfigurationError

MASKED_CHARS_MIN: Final = 6

_REFERENCE: Final = re.compile(r"\$\$(?=\{)|\$\{(?P<name>[^}]*)(?P<end>\}?)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Environment:
    """Fills in references, and remembers what it filled in, to mask it.

    Args:
        variables: The environment; default: that of this process, as it is when something is filled in.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = os.environ if variables is None else variables
        self._filled: dict[str, str] = {}

    def filled(self, place: str, text: str, *, secret: bool = True) -> str:
        """Return `text` with each `${NAME}` replaced by that variable's value; `$${` stands for `${`.

        Raises `ConfigurationError`, naming `place` and the variable, where there is none or the reference is malformed.
        An empty value counts as none. What is no `secret` is not masked later.
        """

        def value(found: re.Match[str]) -> str:
            name = found["name"]
            if name is None:
                return "$"
            if not found["end"] or _NAME.fullmatch(name) is None:
                raise ConfigurationError(
                    place, f"{found[0]!r} names no environment variable; write ${{NAME}}, or $${{ for a plain ${{"
                )
            given = self._variables.get(name, "")
            if not given:
                raise ConfigurationError(place, f"the environment variable {name} is not set; set it, or name another")
            if secret and len(given) >= MASKED_CHARS_MIN:
                self._filled |= dict.fromkeys(_written(given), name)
            return given

        return _REFERENCE.sub(value, text)

    def masked(self, text: str) -> str:
        """Return `text` with every value that was filled in as a secret replaced by its name."""
        for value in sorted(self._filled, key=len, reverse=True):  # the longest first: one may hold another
            text = text.replace(value, f"${{{self._filled[value]}}}")
        return text

    def masked_json(self, value: JsonValue) -> JsonValue:
        """Return `value` with `masked` applied to every text and key in it, however deep that is."""
        if not self._filled:
            return value
        made = self._copied(value)
        left = [made]
        while left:
            each = left.pop()
            if isinstance(each, list):
                each[:] = map(self._copied, each)
                left += each
            elif isinstance(each, dict):
                for key, inner in each.items():
                    each[key] = self._copied(inner)
                left += each.values()
        return made

    def _copied(self, value: JsonValue) -> JsonValue:
        """Return a text masked, and a copy of a container with what is in it as it was."""
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, list):
            return list(value)
        if isinstance(value, dict):
            return {self.masked(key): each for key, each in value.items()}
        return value


def _written(value: str) -> set[str]:
    """Return a value as others may write it: in an address, and in JSON's ways, some of which escape a slash."""
    as_json = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return as_json | {each.replace("/", "\\/") for each in as_json} | {quote(value, safe="")}


def filled(place: str, text: str, variables: Mapping[str, str] | None = None) -> str:
    """Return `text` with each `${NAME}` replaced by that variable's value; see `Environment.filled`."""
    return Environment(variables).filled(place, text)
