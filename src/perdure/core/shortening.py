"""A call as it is shown to whoever approves it: whole where it fits, else with each value cut.

No name is cut, since two of them could look the same, and of every value stays the beginning: a long one must not push
the others out of sight, nor a call be put to a person with nothing of it to see.
"""

import json
import re
from typing import Final

from pydantic import JsonValue

from perdure.core import limits
from perdure.core.digests import canonical, cut_text, safe_json, safe_text
from perdure.core.visibility import visible

_STEPS: Final = ((2048, 50), (512, 50), (256, 50), (128, 50), (64, 50), (32, 20), (32, 5))
"""Bytes of a text and members of a list or object within, tried in turn until the whole fits."""

_DEPTH_MAX: Final = 6
_REST: Final = "…"

_PLAIN_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
"""Whatever Python runs it, so that a replay shows the same (P11): what else is a letter depends on its version."""


def shown_call(tool: str, arguments_json: str | None, bytes_max: int = limits.SHOWN_CALL_BYTES_MAX) -> str:
    """Return a call as a person reads it: `refund(order_id="A-1", amount=79.0)`.

    The names of arguments are a model's words too, where the tool takes any: one that is no plain name is quoted.
    """
    return cut_text(_shown_call(tool, arguments_json), bytes_max, "… [cut]")


def _shown_call(tool: str, arguments_json: str | None) -> str:
    arguments: JsonValue = json.loads(arguments_json) if arguments_json is not None else None
    inside = "…"
    if isinstance(arguments, dict):
        inside = ", ".join(f"{_shown_name(name)}={_shown(value)}" for name, value in arguments.items())
    return visible(safe_text(f"{tool}({inside})"))


def _shown_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else _shown(name)


def _shown(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def shortened(tool: str, arguments: dict[str, JsonValue], bytes_max: int) -> tuple[str, bool]:
    """Return the arguments as JSON, and whether anything of them was cut for the call to be shown in `bytes_max` bytes.

    Raises `ValueError` for what no JSON in UTF-8 can hold.
    """
    whole = canonical(arguments)
    if _fits(tool, whole, bytes_max):
        return whole.decode(), False
    plain = safe_json(arguments)
    for text_bytes, members in _STEPS:
        fitting = canonical(_cut(plain, text_bytes, members, _DEPTH_MAX))
        if _fits(tool, fitting, bytes_max):
            return fitting.decode(), True
    # Escapes make a text in a text at most six times as long.
    return canonical({_REST: cut_text(whole.decode(), bytes_max // 8, _cut_note(len(whole)))}).decode(), True


def _fits(tool: str, arguments_json: bytes, bytes_max: int) -> bool:
    """Whether both the JSON and the call as it is shown fit: what shows nothing is written longer than it is."""
    return len(arguments_json) <= bytes_max and len(_shown_call(tool, arguments_json.decode()).encode()) <= bytes_max


def _cut(value: JsonValue, text_bytes: int, members: int, depth: int) -> JsonValue:
    if isinstance(value, str):
        size = len(value.encode())
        note = _cut_note(size)
        return value if size <= text_bytes else cut_text(value, text_bytes + len(note.encode()), note)
    if isinstance(value, list | dict) and depth == 0:
        return _cut(canonical(value).decode(), text_bytes, members, depth)
    if isinstance(value, list):
        shown = [_cut(item, text_bytes, members, depth - 1) for item in value[:members]]
        return [*shown, _left_out(len(value) - members)] if len(value) > members else shown
    if isinstance(value, dict):
        most = len(value) if depth == _DEPTH_MAX else members  # of the call's own arguments each name stays
        some = {name: _cut(item, text_bytes, members, depth - 1) for name, item in list(value.items())[:most]}
        return some | {_left_out(len(value) - most): None} if len(value) > most else some
    return value


def _cut_note(size: int) -> str:
    return f"… [cut, {size} bytes]"


def _left_out(count: int) -> str:
    return f"… [and {count} more]"
