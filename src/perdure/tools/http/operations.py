"""The operations of a document: what each is called, what a model fills in, and where that goes in a request.

A model sees one object per operation. Parameters of path, query, headers and cookies are its properties, and so are the
fields of a body that is a plain object; any other body is one property, `body`. Two things with one name are told apart
by where they stand. Everything is decided here once; a call only looks it up.

An operation that cannot be offered is given with the reason: a document of hundreds must not fail for one of them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from openapi_pydantic.v3 import v3_0, v3_1
from pydantic import JsonValue

from perdure.core import http_limits
from perdure.core.digests import canonical, cut_text, safe_text
from perdure.core.errors import ConfigurationError
from perdure.tools.http.document import Document
from perdure.tools.http.schemas import Pointers, Schema, SchemaSet

Place = Literal["path", "query", "header", "cookie"]
Method = Literal["get", "head", "put", "delete", "post", "patch", "options", "trace"]

KEY_HEADER: Final = "Idempotency-Key"

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OTHER: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_BY_HARNESS: Final = frozenset(
    ("accept", "content-type", "authorization", "host", "content-length", "transfer-encoding", "connection",
     KEY_HEADER.lower())
)  # fmt: skip
"""Headers that no model fills in: those that OpenAPI says are ignored as parameters, and those that frame a request."""

_WHOLE: Final = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "minProperties", "$ref"))
"""A body with one of these is more than its properties, and is given as one."""

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"


@dataclass(frozen=True)
class Parameter:
    """A parameter outside the body. `as_json` when it has a media type instead of a style."""

    argument: str
    name: str
    place: Place
    style: str
    explode: bool
    allow_reserved: bool = False
    as_json: bool = False


@dataclass(frozen=True)
class Body:
    """A body: as a whole under `argument`, or made of `fields`, from argument to field."""

    media_type: str
    argument: str | None
    fields: Mapping[str, str]


@dataclass(frozen=True)
class Operation:
    """An operation that can be offered. `schema` is what a model fills in; `takes_key` when it declares the header."""

    name: str
    method: Method
    path: str
    server: str
    description: str
    schema: Schema
    parameters: tuple[Parameter, ...]
    body: Body | None
    takes_key: bool


@dataclass(frozen=True)
class Unusable:
    """An operation that cannot be offered, and why."""

    name: str
    reason: str


def operations_of(field: str, document: Document, given_headers: frozenset[str]) -> Iterator[Operation | Unusable]:
    """Yield every operation of a document; parameters that the operator's own headers fill in are not shown."""
    reader = _Reader(field, document, given_headers)
    for path, raw in (document.raw.get("paths") or {}).items():
        item = reader.pointers.followed(raw)
        for method in get_args(Method):
            if isinstance(item.get(method), dict):
                yield reader.read(path, method, item)


class _Reader:
    def __init__(self, field: str, document: Document, given_headers: frozenset[str]) -> None:
        self.pointers = Pointers(field, document.raw)
        self._document = document
        self._hidden = _BY_HARNESS | given_headers
        self._models: Any = v3_0 if document.is_3_0 else v3_1

    def read(self, path: str, method: Method, item: dict[str, Any]) -> Operation | Unusable:
        raw = item[method]
        name = _slug(raw.get("operationId") or f"{method}_{path.strip('/')}")
        try:
            return self._read(name, path, method, item, raw)
        except ConfigurationError as error:
            return Unusable(name, f"{method.upper()} {path} {error.problem}")

    def _read(self, name: str, path: str, method: Method, item: dict[str, Any], raw: dict[str, Any]) -> Operation:
        if not path.startswith("/"):  # It follows the server's address: `@host` or `.host` would lead to another one.
            raise ConfigurationError(name, "has a path that does not begin with /")
        schemas = SchemaSet(self.pointers, is_3_0=self._document.is_3_0)
        properties: dict[str, JsonValue] = {}
        required: list[JsonValue] = []
        parameters: list[Parameter] = []
        given = self._parameters(item, raw)
        takes_key = ("header", KEY_HEADER.lower()) in given
        for (place, _), each in given.items():
            if place == "header" and each["name"].lower() in self._hidden:
                continue
            parameter, schema = self._parameter(each, properties, schemas)
            parameters.append(parameter)
            properties[parameter.argument] = schema
            if each.get("required") or place == "path":
                required.append(parameter.argument)
        missing = set(re.findall(r"\{([^{}]+)\}", path)) - {p.name for p in parameters if p.place == "path"}
        if missing:
            raise ConfigurationError(name, f"does not declare the parameter {sorted(missing)[0]!r} of its path")
        body = self._body(raw.get("requestBody"), properties, required, schemas)
        shown: Schema = {"type": "object", "properties": properties, "required": required}
        shown["additionalProperties"] = False
        if schemas.defs:
            shown["$defs"] = schemas.defs
        if len(canonical(shown)) > http_limits.SCHEMA_BYTES_MAX:
            raise ConfigurationError(
                name, f"has a schema of over {http_limits.SCHEMA_BYTES_MAX} bytes, too much to show"
            )
        return Operation(
            name=name,
            method=method,
            path=path,
            server=self._server(item, raw),
            description=_description(raw, method, path),
            schema=shown,
            parameters=tuple(parameters),
            body=body,
            takes_key=takes_key,
        )

    def _parameters(self, item: dict[str, Any], raw: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the parameters by place and name: the operation's own over those of its path."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for each in (*(item.get("parameters") or ()), *(raw.get("parameters") or ())):
            parameter = self.pointers.followed(each)
            place, name = str(parameter.get("in")), str(parameter.get("name"))
            if place not in get_args(Place):
                raise ConfigurationError(name, f"has a parameter in {place!r}, which is no place")
            found[place, name.lower() if place == "header" else name] = parameter
        return found

    def _parameter(
        self, raw: dict[str, Any], taken: Mapping[str, JsonValue], schemas: SchemaSet
    ) -> tuple[Parameter, Schema]:
        content = raw.get("content")
        model = self._models.Parameter.model_validate({**raw, "schema": {}, "content": None})
        place: Place = raw["in"]
        if content:
            media_type, media = next(iter(content.items()))
            if not _is_json(media_type):
                raise ConfigurationError(
                    model.name, f"has the parameter {model.name!r} in {media_type}, only JSON is sent"
                )
            given = media.get("schema", {})
        else:
            given = raw.get("schema", {})
        style = model.style or ("form" if place in {"query", "cookie"} else "simple")
        schema = schemas.taken(given)
        if model.description:
            schema = {**schema, "description": _cut(model.description)}
        return Parameter(
            argument=_argument(model.name, place, taken),
            name=model.name,
            place=place,
            style=style,
            explode=style == "form" if model.explode is None else model.explode,
            allow_reserved=place == "query" and bool(raw.get("allowReserved", False)),
            as_json=bool(content),
        ), schema

    def _body(
        self, given: Any, properties: dict[str, JsonValue], required: list[JsonValue], schemas: SchemaSet
    ) -> Body | None:
        if given is None:
            return None
        raw = self.pointers.followed(given)
        media_type = _best(raw.get("content") or {})
        must = raw.get("required") is True
        schema_given = raw["content"][media_type].get("schema", {})
        plain = self._plain_object(schema_given) if must else None
        if media_type in {FORM, MULTIPART} and plain is None:
            plain = self._plain_object(schema_given)
            if plain is None:
                raise ConfigurationError("body", f"has a body in {media_type} that is no plain object")
        if media_type == MULTIPART and plain is not None and any(map(self._is_file, plain["properties"].values())):
            raise ConfigurationError("body", "takes a file, which no argument of a model can be")
        fields = {} if plain is None else _fields(plain, properties)
        if plain is None or fields is None:
            argument = _argument("body", "body", properties)
            properties[argument] = schemas.taken(schema_given)
            if must:
                required.append(argument)
            return Body(media_type, argument, {})
        shown: dict[str, Any] = schemas.taken(plain)
        kept = {argument: name for argument, name in fields.items() if name in shown["properties"]}
        for argument, name in kept.items():
            properties[argument] = shown["properties"][name]
            if name in shown.get("required", ()):
                required.append(argument)
        return Body(media_type, None, kept)

    def _plain_object(self, raw: Any) -> dict[str, Any] | None:
        """Return a body's schema where its properties say all of it, else None."""
        schema = self.pointers.followed(raw) if isinstance(raw, dict) else {}
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties or schema.get("type", "object") != "object":
            return None
        if not _WHOLE.isdisjoint(schema) or schema.get("additionalProperties") or schema.get("nullable"):
            return None
        return schema

    def _is_file(self, raw: Any) -> bool:
        schema = self.pointers.followed(raw) if isinstance(raw, dict) else {}
        return schema.get("format") == "binary" or "contentMediaType" in schema

    def _server(self, item: dict[str, Any], raw: dict[str, Any]) -> str:
        """Return the first server that is named, nearest to the operation; `/` where none is, as OpenAPI says."""
        servers = raw.get("servers") or item.get("servers") or self._document.raw.get("servers") or [{"url": "/"}]
        url = str(servers[0].get("url", "/"))
        for name, variable in (servers[0].get("variables") or {}).items():
            url = url.replace("{" + name + "}", str(variable.get("default", "")))
        return url


def _fields(schema: dict[str, Any], taken: Mapping[str, JsonValue]) -> dict[str, str] | None:
    """Return the body's fields from argument to name, None where one of them has a name that is taken."""
    fields: dict[str, str] = {}
    for name in schema["properties"]:
        argument = _slug(name)
        if argument in taken or argument in fields:
            return None
        fields[argument] = name
    return fields


def _argument(name: str, place: str, taken: Mapping[str, JsonValue]) -> str:
    """Return what a model calls a parameter: its name in letters that providers take, told apart by its place."""
    argument, number = _slug(name), 1
    base = argument
    while argument in taken:
        argument = f"{base}_{place}" if number == 1 else f"{base}_{place}_{number}"
        number += 1
    return argument


def _slug(name: str) -> str:
    if _NAME.fullmatch(name):
        return name
    return _OTHER.sub("_", name).strip("_")[:64] or "_"


def _is_json(media_type: str) -> bool:
    plain = media_type.partition(";")[0].strip().lower()
    return plain == "application/json" or plain.endswith("+json")


def _best(content: Mapping[str, Any]) -> str:
    """Return the media type that a body is sent in, of those that are taken."""
    ranks = (_is_json, lambda m: m.startswith(FORM), lambda m: m.startswith(MULTIPART), lambda m: m.startswith("text/"))
    for fits in ranks:
        for media_type in content:
            if fits(media_type):
                return media_type
    raise ConfigurationError("body", f"has a body in {', '.join(content) or 'nothing'}; JSON, forms and texts are sent")


def _description(raw: dict[str, Any], method: str, path: str) -> str:
    texts = [str(raw.get("summary") or "").strip(), str(raw.get("description") or "").strip()]
    told = ". ".join(dict.fromkeys(text.rstrip(".") for text in texts if text))
    return _cut(f"Deprecated. {told}" if raw.get("deprecated") else told) or f"{method.upper()} {path}"


def _cut(text: str) -> str:
    return cut_text(safe_text(" ".join(text.split())), http_limits.DESCRIPTION_BYTES_MAX, " …")
