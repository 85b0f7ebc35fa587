"""How a value that does not fit the form is told: what it is, what is wanted, the nearest right one, an example."""

import difflib
import json
import types
import typing
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from perdure.app.agent_file.form import AgentForm, HttpForm, McpForm, OauthForm, example_of
from perdure.app.agent_file.lines import Path
from perdure.app.agent_file.problems import Places
from perdure.core.agent import Budget, RetryPolicy
from perdure.core.tool_rules import ToolRules

_SHOWN_CHARS_MAX: Final = 60

_TABLES: Final[dict[str, type[BaseModel]]] = {
    "the top of the file": AgentForm,
    "[budget]": Budget,
    "[model_retry]": RetryPolicy,
    "[mcp.NAME]": McpForm,
    "[http.NAME]": HttpForm,
    "[mcp.NAME.oauth]": OauthForm,
    '[mcp.NAME.rules."TOOL"]': ToolRules,
}
"""Where a key may belong that stands in another table; the first one that has it is named."""

_WANTED: Final[dict[object, str]] = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}

_SECRET: Final = frozenset({"env", "headers", "oauth"})
"""Tables whose values are never shown: whoever wrote a secret there must not find it in a log as well."""


def tell(error: ValidationError, places: Places) -> None:
    """Note what is wrong with the values of a file, each at its place."""
    for detail in error.errors(include_url=False):
        path: Path = detail["loc"]
        places.refuse(path, _text(path, detail))


def nearest(given: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for the nearest of what is known, or nothing where none is near."""
    found = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def as_in(path: Path) -> str:
    """Return the example of a key, as the end of what is told."""
    example = example_of(path)
    return f" (as in: {example})" if example else ""


def _text(path: Path, detail: ErrorDetails) -> str:
    kind, value = detail["type"], detail["input"]
    limits = detail.get("ctx", {})
    match kind:
        case "missing":
            return f"is missing; write it{as_in(path)}"
        case "extra_forbidden":
            return _unknown(path)
        case "literal_error":
            choices = typing.get_args(_annotation(path))
            right = (difflib.get_close_matches(str(value), choices, n=1) or choices)[0]
            listed = ", ".join(map(json.dumps, choices))
            near = nearest(str(value), choices)
            return f"{_shown(path, value)} is not one of {listed}{near} (as in: {path[-1]} = {json.dumps(right)})"
        case "greater_than" | "greater_than_equal":
            least = limits["gt"] if kind == "greater_than" else limits["ge"]
            bound = f"greater than {least:g}" if kind == "greater_than" else f"of at least {least:g}"
            return f"{_shown(path, value)} is too small; give a number {bound}{as_in(path)}"
        case _:
            wanted = _wanted(_annotation(path)) if kind.endswith(("_type", "_from_float")) else ""
            if not wanted:
                return f"{_shown(path, value)} does not fit ({detail['msg']}){as_in(path)}"
            return f"{_shown(path, value)} is {_kind(value)}; give {wanted}{as_in(path)}"


def _unknown(path: Path) -> str:
    """Say of an unknown key what was meant: one that is near, or one of another table."""
    *above, key = path
    table = _annotation(tuple(above))
    known = list(table.model_fields) if isinstance(table, type) and issubclass(table, BaseModel) else []
    name = str(key)
    found = difflib.get_close_matches(name, known, n=1)
    if found:
        return f"there is no such key; did you mean {found[0]!r}?{as_in((*above, found[0]))}"
    for where, other in _TABLES.items():
        if name in other.model_fields and other is not table:
            before = "; keys of the top stand before the first [table]" if other is AgentForm else ""
            return f"there is no such key here, it belongs to {where}{before}"
    return f"there is no such key; there are {', '.join(known)}"


def _annotation(path: Path) -> Any:
    """Return the type that the form wants at a place, without None."""
    found: Any = AgentForm
    for key in path:
        if isinstance(found, type) and issubclass(found, BaseModel):
            field = found.model_fields.get(str(key))
            found = None if field is None else field.annotation
        else:
            inside = typing.get_args(found)
            found = inside[-1] if inside else None
        found = _given(found)
    return found


def _given(annotation: Any) -> Any:
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        (only,) = (each for each in typing.get_args(annotation) if each is not type(None))
        return only
    return annotation


def _wanted(annotation: Any) -> str:
    if annotation in _WANTED:
        return _WANTED[annotation]
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return " or ".join(json.dumps(choice) for choice in typing.get_args(annotation))
    if origin is list:
        return "a list of texts"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "a table"
    return ""


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a table"
        case datetime() | date() | time():
            return "a date or time"
        case _:
            return f"a {type(value).__name__}"


def _shown(path: Path, value: object) -> str:
    if not _SECRET.isdisjoint(path):
        return "what stands there"
    if isinstance(value, dict):
        return "what stands there"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def unfit_numbers(value: object, path: Path = ()) -> Iterable[Path]:
    """Yield the places of numbers that are none: inf and nan, which TOML has and nothing here can keep."""
    if isinstance(value, float) and value - value != 0:
        yield path
    elif isinstance(value, dict):
        for key, inside in value.items():
            yield from unfit_numbers(inside, (*path, key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for place, inside in enumerate(value):
            yield from unfit_numbers(inside, (*path, place))
