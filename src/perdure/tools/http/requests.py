"""From an operation and its arguments to a request: address, headers, body. Pure.

Parameters are written in the styles of OpenAPI (which are RFC 6570's). What could lead a request elsewhere than its
operation says is refused before anything begins: a path segment that is empty or goes up, a line break in a header.
"""

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote, urlencode

from pydantic import JsonValue

from perdure.core import http_limits
from perdure.tools.http.operations import FORM, MULTIPART, Body, Operation, Parameter

_RESERVED: Final = ":/?@!$'()*,;"
"""What `allowReserved` leaves as it is in a query; `#`, `&`, `=` and `+` would change what the rest of it means."""

_SEPARATORS: Final = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_VISIBLE: Final = frozenset((0x09, *range(0x20, 0x7F)))


OWN_HEADERS: Final = {
    "Accept": "application/json, */*;q=0.5",
    "Accept-Encoding": "identity",
    "User-Agent": "perdure",
}
"""What every request says; `identity`, so that what is read is bounded as it is sent."""


@dataclass(frozen=True)
class Request:
    """A request, ready to be sent."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def with_headers(self, *given: Mapping[str, str]) -> "Request":
        """Return it with these headers; later ones take the place of earlier ones, whatever their capitals."""
        merged = {name.lower(): (name, value) for each in (self.headers, *given) for name, value in each.items()}
        return replace(self, headers=dict(merged.values()))


class Unwritable(ValueError):
    """Arguments that cannot be put into a request; the text says which, and what would do."""


def written(operation: Operation, base: str, arguments: Mapping[str, JsonValue]) -> Request:
    """Return the request of a call. `base` is the server's address, without a slash at its end.

    Raises `Unwritable`.
    """
    address, _, own_query = base.partition("?")
    path, query, headers, cookies = operation.path, [own_query] if own_query else [], {}, []
    for parameter in operation.parameters:
        if parameter.argument not in arguments:
            continue
        value = arguments[parameter.argument]
        match parameter.place:
            case "path":
                path = path.replace("{" + parameter.name + "}", _segment(parameter, value))
            case "query":
                query += _pairs(parameter, value)
            case "header":
                headers[parameter.name] = _header(parameter, value)
            case "cookie":
                cookies += _pairs(parameter, value)
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    url = address.rstrip("/") + path + (f"?{'&'.join(query)}" if query else "")
    if len(url) > http_limits.ADDRESS_CHARS_MAX:
        raise Unwritable(f"they make an address of {len(url)} characters, at most {http_limits.ADDRESS_CHARS_MAX} go")
    body, media_type = _body(operation.body, arguments)
    if media_type:
        headers["Content-Type"] = media_type
    return Request(operation.method.upper(), url, headers, body)


# --- parameters -------------------------------------------------------------------------------------------------


def _segment(parameter: Parameter, value: JsonValue) -> str:
    joined = _joined(parameter, value, {"label": ".", "matrix": ";"}.get(parameter.style, ","))
    if not joined or joined in {".", ".."}:
        raise Unwritable(f"{parameter.argument}: {value!r} cannot stand in a path; give a value that is not empty")
    if parameter.style == "label":
        return f".{joined}"
    if parameter.style == "matrix":
        exploded_object = parameter.explode and isinstance(value, dict)
        return f";{joined}" if exploded_object else f";{quote(parameter.name, safe='')}={joined}"
    return joined


def _joined(parameter: Parameter, value: JsonValue, exploded: str) -> str:
    """Return a value in one piece: lists and objects by commas, or by `exploded` where the parameter says so."""
    if parameter.as_json:
        return quote(json.dumps(value, ensure_ascii=False), safe="")
    safe = _RESERVED if parameter.allow_reserved else ""
    between = exploded if parameter.explode else ","
    if isinstance(value, dict):
        mark = "=" if parameter.explode else ","
        return between.join(f"{quote(k, safe=safe)}{mark}{quote(_text(v), safe=safe)}" for k, v in value.items())
    if isinstance(value, list):
        return between.join(quote(_text(each), safe=safe) for each in value)
    return quote(_text(value), safe=safe)


def _pairs(parameter: Parameter, value: JsonValue) -> list[str]:
    """Return a parameter of the query, or a cookie."""
    name = quote(parameter.name, safe="[]")
    safe = _RESERVED if parameter.allow_reserved else ""
    if not parameter.as_json:
        if parameter.style == "deepObject" and isinstance(value, dict):
            return [
                f"{quote(key, safe='[]')}={quote(_text(each), safe=safe)}" for key, each in _deep(parameter.name, value)
            ]
        if parameter.explode and isinstance(value, list):
            return [f"{name}={quote(_text(each), safe=safe)}" for each in value]
        if parameter.explode and isinstance(value, dict):
            return [f"{quote(key, safe='')}={quote(_text(each), safe=safe)}" for key, each in value.items()]
        separator = _SEPARATORS.get(parameter.style)
        if separator and isinstance(value, list):
            return [f"{name}={separator.join(quote(_text(each), safe=safe) for each in value)}"]
    return [f"{name}={_joined(parameter, value, ',')}"]


def _deep(name: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _deep(f"{name}[{key}]", each)
    elif isinstance(value, list):
        for each in value:
            yield name, each
    else:
        yield name, value


def _header(parameter: Parameter, value: JsonValue) -> str:
    if parameter.as_json:
        text = json.dumps(value)
    elif isinstance(value, dict):
        mark = "=" if parameter.explode else ","
        text = ",".join(f"{key}{mark}{_text(each)}" for key, each in value.items())
    elif isinstance(value, list):
        text = ",".join(map(_text, value))
    else:
        text = _text(value)
    if not _VISIBLE.issuperset(map(ord, text)) or text != text.strip():
        raise Unwritable(f"{parameter.argument}: {text!r} cannot stand in a header; give visible ASCII characters")
    return text


def _text(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


# --- bodies -----------------------------------------------------------------------------------------------------


def _body(body: Body | None, arguments: Mapping[str, JsonValue]) -> tuple[bytes, str]:
    """Return a body and its media type; both empty where there is none."""
    if body is None:
        return b"", ""
    if body.argument is not None:
        if body.argument not in arguments:
            return b"", ""
        value = arguments[body.argument]
    else:
        value = {name: arguments[argument] for argument, name in body.fields.items() if argument in arguments}
    plain = body.media_type.partition(";")[0].strip().lower()
    if plain == FORM:
        return urlencode(list(_form(value))).encode(), FORM
    if plain == MULTIPART:
        return _multipart(value)
    if plain.startswith("text/"):
        return _text(value).encode(), f"{plain}; charset=utf-8"
    return json.dumps(value, ensure_ascii=False).encode(), body.media_type


def _form(value: JsonValue) -> Iterator[tuple[str, str]]:
    for name, each in value.items() if isinstance(value, dict) else ():
        for part in each if isinstance(each, list) else [each]:
            yield name, _text(part)


def _multipart(value: JsonValue) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)  # Random, so that no field can hold it.
    parts = []
    for name, text in _form(value):
        escaped = name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{escaped}"\r\n\r\n{text}\r\n')
    parts.append(f"--{boundary}--\r\n")
    return "".join(parts).encode(), f"{MULTIPART}; boundary={boundary}"
