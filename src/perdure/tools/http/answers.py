"""What a service's answer is for the model: JSON as it is, texts as texts, anything else as a file.

All of this runs after the effect, and by the same rule as `tools/results.py`: nothing here turns a call that ended into
one that failed. An answer that was cut says so.
"""

import http
import json
import re
from collections.abc import Callable
from typing import Final

from pydantic import JsonValue

from perdure.core import http_limits, limits
from perdure.core.artifacts import File, WithFiles
from perdure.core.digests import cut_text, safe_text
from perdure.tools.http.client import Answer

_TEXTS: Final = re.compile(r"text/|application/([\w.+-]+\+)?(xml|yaml|javascript|x-www-form-urlencoded|x-ndjson)\b")
_CHARSET: Final = re.compile(r"charset=\"?([\w.:-]+)", re.IGNORECASE)
_HEAD: Final = ("content-type", "content-length", "last-modified", "etag", "location")


def value_of(answer: Answer, method: str, name: str) -> JsonValue | WithFiles:
    """Return what a call returns. `name` is what a file is called."""
    if method == "HEAD":
        return {"status": answer.status, **{key: answer.headers[key] for key in _HEAD if key in answer.headers}}
    if not answer.body:
        if not answer.whole:
            return f"The service answered {told_status(answer.status)}; the rest of its answer was lost."
        location = answer.headers.get("location")
        return {"status": answer.status, "location": location} if location else None
    media_type = _media_type(answer)
    if _is_json(media_type):
        parsed = _parsed(answer)
        return _text(answer) if parsed is None else parsed[0]
    if _TEXTS.match(media_type):
        return _text(answer)
    if not answer.whole:
        return f"The service answered with {media_type}, and it was cut at {len(answer.body)} bytes. It was not kept."
    return WithFiles("", (File(media_type=media_type, name=name, data=answer.body),))


def told(answer: Answer, masked: Callable[[str], str]) -> str:
    """Return what a model or a log is told of an answer that is no result, masked before it is cut."""
    text = f"the service answered {told_status(answer.status)}"
    if answer.headers.get("location"):
        text += f", moved to {answer.headers['location']}"
    if answer.body.strip() and (_is_json(_media_type(answer)) or _media_type(answer).startswith("text/plain")):
        text += f": {' '.join(answer.body.decode(errors='replace').split())}"
    return cut_text(safe_text(masked(text)), limits.PROBLEM_BYTES_MAX, " [cut]")


def told_status(status: int) -> str:
    """Return a status with its name."""
    try:
        return f"{status} {http.HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def json_of(answer: Answer) -> JsonValue:
    """Return an answer's JSON, None where it has none."""
    parsed = _parsed(answer) if _is_json(_media_type(answer)) else None
    return None if parsed is None else parsed[0]


def _media_type(answer: Answer) -> str:
    return answer.headers.get("content-type", "application/octet-stream").partition(";")[0].strip().lower()


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or media_type.endswith("+json")


def _parsed(answer: Answer) -> tuple[JsonValue] | None:
    if not answer.whole:
        return None
    try:
        return (json.loads(answer.body, parse_constant=_refuse),)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _text(answer: Answer) -> str:
    charset = _CHARSET.search(answer.headers.get("content-type", ""))
    try:
        text = answer.body.decode(charset[1] if charset else "utf-8", errors="replace")
    except (LookupError, ValueError):  # some of Python's codecs take no `errors`, and one raises always
        text = answer.body.decode(errors="replace")
    if answer.whole:
        return text
    over = len(answer.body) >= http_limits.ANSWER_BYTES_MAX
    why = f"it is over {http_limits.ANSWER_BYTES_MAX} bytes" if over else "the connection was lost"
    return f"{text}\n[Cut: only the first {len(answer.body)} bytes of the answer came, {why}.]"
