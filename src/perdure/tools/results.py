"""What a tool returned, as JSON and as the text that a model is shown.

All of this runs after the effect. Nothing here may therefore turn a call that ended into one that failed: a value
that cannot be shown is replaced by a text that says so, and the call stays done (P3).
"""

import json
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from perdure.core import limits
from perdure.core.digests import cut_text, safe_text


class Shown(NamedTuple):
    """A result's text, at most `TOOL_TEXT_BYTES_MAX` bytes of UTF-8; `whole` is what is to be kept where it was cut."""

    text: str
    whole: bytes | None = None
    media_type: str = "text/plain"


def as_json(value: object) -> JsonValue:
    """Return `value` as JSON; pydantic models, dataclasses, dates and the like by pydantic's rules.

    What has no JSON form becomes a text that says so; nothing is raised.
    """
    try:
        made: JsonValue = to_jsonable_python(value)
    except Exception as error:  # noqa: BLE001 - a value's own serialisers may raise anything, and the effect stands
        return unshowable(value, error)
    return made


def unshowable(value: object, error: Exception) -> str:
    """Return what a model is told in place of a value that has no JSON form."""
    text = (
        f"The call was made and ended normally, but its result cannot be shown: a {type(value).__qualname__} "
        f"has no JSON form ({type(error).__name__}: {error})."
    )
    return cut_text(safe_text(text), limits.PROBLEM_BYTES_MAX, " [cut]")


def shown(value: JsonValue) -> Shown:
    """Return the text that stands for `value`: a text as it is, anything else as JSON; cut where it is too long."""
    if value is None:
        return Shown("Done. The tool returned nothing.")
    if value == "":
        return Shown("Done. The tool returned an empty text.")
    media_type = "text/plain"
    if isinstance(value, str):
        text = value
    else:
        media_type = "application/json"
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (ValueError, TypeError, RecursionError) as error:
            return Shown(unshowable(value, error))
    text = safe_text(text)
    whole = text.encode()
    if len(whole) <= limits.TOOL_TEXT_BYTES_MAX:
        return Shown(text)
    if len(whole) > limits.BLOB_BYTES_MAX:
        notice = (
            f"\n[Cut: the result has {len(whole)} bytes and only its beginning is shown. "
            f"The whole was not kept, it is over {limits.BLOB_BYTES_MAX} bytes.]"
        )
        return Shown(cut_text(text, limits.TOOL_TEXT_BYTES_MAX, notice))
    notice = f"\n[Cut: the result has {len(whole)} bytes and only its beginning is shown. The whole is kept.]"
    return Shown(cut_text(text, limits.TOOL_TEXT_BYTES_MAX, notice), whole, media_type)


def problem_text(error: BaseException) -> str:
    """Return an error's text as it may be stored and shown, at most `PROBLEM_BYTES_MAX` bytes."""
    return cut_text(safe_text(str(error)), limits.PROBLEM_BYTES_MAX, " [cut]")
