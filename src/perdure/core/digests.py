"""Canonical JSON and its digests: how two parties agree that they mean the same content.

A digest names content in events, ledger rows and idempotency checks. The encoding is fixed for ever, because
digests outlive the process that made them: keys sorted, no white space, UTF-8, no NaN.
"""

import hashlib
import json
import re
from typing import Final

from pydantic import BaseModel, JsonValue

_WHOLE_MAX: Final = 2**53
"""Beyond this a float does not stand for one whole number."""

_DEPTH_MAX: Final = 32
"""How deep JSON may be nested that a person writes: each level is walked by recursion, wherever it goes."""

_UNSAFE: Final = re.compile("[\x00\ud800-\udfff]")


def canonical(value: JsonValue) -> bytes:
    """Encode `value` in the one form that is digested; raises `ValueError` for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(value: JsonValue) -> str:
    """Return the SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def body_of(model: BaseModel) -> dict[str, JsonValue]:
    """Return the JSON form of a model, the only form that is stored and digested."""
    body: dict[str, JsonValue] = model.model_dump(mode="json")
    return body


def chained(previous: str, content: str) -> str:
    """Return the digest of a transcript's prefix: naming the last link names every entry before it."""
    return hashlib.sha256(f"{previous}/{content}".encode()).hexdigest()


def safe_text(text: str) -> str:
    """Replace what databases and providers cannot carry (NUL, lone surrogates) by U+FFFD."""
    return _UNSAFE.sub("\ufffd", text)


def safe_json(value: JsonValue) -> JsonValue:
    """Apply `safe_text` to every string and key within `value`."""
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, list):
        return [safe_json(item) for item in value]
    if isinstance(value, dict):
        return {safe_text(key): safe_json(item) for key, item in value.items()}
    return value


def read_json(text: str) -> JsonValue:
    """Return the JSON that somebody wrote, safe to store, with whole numbers as such.

    Raises `ValueError` for what is none, for numbers that are not finite, and for what is nested too deep to be kept.
    """
    given: JsonValue = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    _refuse_depth(given, _DEPTH_MAX)
    return whole_numbers(safe_json(given))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise ValueError(f"{cut_text(digits, 40, '…')} is no number that can be kept")
    return number


def _refuse_depth(value: JsonValue, left: int) -> None:
    if not isinstance(value, list | dict):
        return
    if left == 0:
        raise ValueError(f"it is nested more than {_DEPTH_MAX} deep")
    for item in value.values() if isinstance(value, dict) else value:
        _refuse_depth(item, left - 1)


def whole_numbers(value: JsonValue) -> JsonValue:
    """Write whole numbers as such: what came through protobuf knows only 2.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _WHOLE_MAX:
        return int(value)
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    return value


def cut_text(text: str, bytes_max: int, notice: str) -> str:
    """Cut `text` so that it and `notice` fit in `bytes_max` bytes of UTF-8, never inside a character.

    Raises `ValueError` for text with lone surrogates (`safe_text` replaces them), or without room for the notice.
    """
    encoded = text.encode()
    if len(encoded) <= bytes_max:
        return text
    room = bytes_max - len(notice.encode())
    if room < 0:
        raise ValueError(f"bytes_max: {bytes_max} bytes have no room for the notice {notice!r}; give more")
    return encoded[:room].decode(errors="ignore") + notice
