"""What a provider can be told to answer: in no vendor's terms, or byte for byte."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Said:
    """A complete answer. `calls` are (id, tool, arguments as the model wrote them)."""

    text: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    thinking: str = ""
    signature: str = ""
    refusal: str = ""
    finish: Literal["stop", "length", "refusal"] = "stop"
    input_tokens: int = 40
    cached_tokens: int = 8
    output_tokens: int = 12


@dataclass(frozen=True)
class Refused:
    """An HTTP error in the vendor's shape."""

    status: int
    message: str = "no"
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    param: str | None = None


@dataclass(frozen=True)
class Replayed:
    """A body as it stands in a file, sent in pieces of so many bytes (0: whole)."""

    body: bytes
    piece_bytes: int = 0


@dataclass(frozen=True)
class Broken:
    """A stream that ends after so many events: by `error`, cut, or closed as if nothing were missing."""

    said: Said
    after_events: int = 4
    abruptly: bool = True
    error: Refused | None = None


@dataclass(frozen=True)
class Silence:
    """No answer until the client leaves."""


Request = Mapping[str, Any]
"""The body of a request: what it asks for decides what is answered."""


@dataclass(frozen=True)
class Format:
    """One wire format: an answer as one document, as server-sent events, an error, and one inside a stream."""

    whole: Callable[[Said, Request], dict[str, Any]]
    events: Callable[[Said, Request], list[str]]
    error: Callable[[Refused], dict[str, Any]]
    error_event: Callable[[Refused], str]


def pieces(text: str) -> list[str]:
    """Cut a text as a model streams it: a few characters at a time."""
    return [text[start : start + 7] for start in range(0, len(text), 7)]
