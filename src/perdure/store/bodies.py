"""How content becomes text in a row and comes back: canonical JSON, named by its digest."""

import hashlib
import json
from typing import Final, NamedTuple

from pydantic import BaseModel, JsonValue, TypeAdapter

from perdure.core.content import Entry
from perdure.core.digests import body_of, canonical, safe_text
from perdure.core.errors import InvalidInput

_ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])


_NO_NAMES: Final = "[]"
"""What nearly every task has; it need not be parsed with each write."""


class Body(NamedTuple):
    """Canonical JSON and its digest."""

    text: str
    digest: str


def encode(value: BaseModel | dict[str, JsonValue], field: str) -> Body:
    """Encode once for both; raises `InvalidInput` naming `field` for what JSON in UTF-8 cannot carry."""
    try:
        data = canonical(body_of(value) if isinstance(value, BaseModel) else value)
    except UnicodeEncodeError as error:
        raise InvalidInput(field, "holds a lone surrogate; clean texts with `safe_text` first") from error
    except ValueError as error:
        raise InvalidInput(field, f"is not JSON ({error}); use null instead of NaN and infinities") from error
    return Body(data.decode(), hashlib.sha256(data).hexdigest())


def decode(texts: list[str]) -> tuple[Entry, ...]:
    """Parse the bodies of entries, all at once."""
    return _ENTRIES.validate_json(f"[{','.join(texts)}]")


def encode_names(names: tuple[str, ...]) -> str:
    """Return names as one text."""
    return canonical(list(names)).decode()


def decode_names(text: str) -> tuple[str, ...]:
    """Return the names in a text."""
    return () if text == _NO_NAMES else tuple(json.loads(text))


def identifier(field: str, value: str) -> None:
    """Refuse what cannot be a key in every database."""
    if safe_text(value) != value:
        raise InvalidInput(field, f"{value!a} holds a NUL or a lone surrogate; leave them out")
