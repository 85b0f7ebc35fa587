"""Arguments as they are shown to whoever approves a call: whole where they fit, else with each value cut.

No name is cut, since two of them could look the same, and of every value stays the
beginning: a call is never put to a person with nothing of it to see.
"""

from typing import Final

from pydantic import JsonValue

from perdure.core.digests import canonical, cut_text, safe_json

_STEPS: Final = ((2048, 50), (512, 50), (256, 50), (128, 50), (64, 50), (32, 20), (32, 5))
"""Bytes of a text and members of a list or object, tried in turn until the whole fits."""

_DEPTH_MAX: Final = 6
_REST: Final = "…"


def shortened(arguments: dict[str, JsonValue], bytes_max: int) -> tuple[str, bool]:
    """Return the arguments as JSON of at most `bytes_max` bytes, and whether anything of them was cut.

    Raises `ValueError` for what no JSON in UTF-8 can hold.
    """
    whole = canonical(arguments)
    if len(whole) <= bytes_max:
        return whole.decode(), False
    plain = safe_json(arguments)
    for text_bytes, members in _STEPS:
        fitting = canonical(_cut(plain, text_bytes, members, _DEPTH_MAX))
        if len(fitting) <= bytes_max:
            return fitting.decode(), True
    # Escapes make a text in a text at most six times as long.
    return canonical({_REST: cut_text(whole.decode(), bytes_max // 8, _cut_note(len(whole)))}).decode(), True


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
        some = {name: _cut(item, text_bytes, members, depth - 1) for name, item in list(value.items())[:members]}
        return some | {_left_out(len(value) - members): None} if len(value) > members else some
    return value


def _cut_note(size: int) -> str:
    return f"… [cut, {size} bytes]"


def _left_out(count: int) -> str:
    return f"… [and {count} more]"
