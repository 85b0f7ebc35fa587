"""How content becomes text in a row and comes back: canonical JSON, named by its digest."""

import hashlib
from typing import NamedTuple

from pydantic import BaseModel, JsonValue, TypeAdapter

from perdure.core.content import Entry
from perdure.core.digests import body_of, canonical, safe_text
from perdure.core.errors import InvalidInput

_ENTRIES: TypeAdapter[tuple[Entry, ...]] = TypeAdapter(tuple[Entry, ...])


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


def identifier(field: str, value: str) -> None:
    """Refuse what cannot be a key in every database."""
    if safe_text(value) != value:
        raise InvalidInput(field, f"{value!a} holds a NUL or a lone surrogate; leave them out")
