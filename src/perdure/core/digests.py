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
