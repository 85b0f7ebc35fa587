"""An OpenAPI document, as JSON and checked: from a mapping, a file or a URL.

JSON and YAML are read alike: in YAML only what JSON has too (no dates, and `no` is a text), keys as texts, and aliases
counted as often as they are used. `openapi-pydantic` then says whether it is an OpenAPI document and where it is not.
Its schemas are left out of that: they are JSON schemas and are held to that when a tool is made of them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import yaml
from openapi_pydantic.v3 import v3_0, v3_1
from pydantic import BaseModel, JsonValue, ValidationError

from perdure.core import http_limits
from perdure.core.errors import ConfigurationError

_ERRORS_TOLD_MAX: Final = 3
_MAPS_OF_NAMES: Final = frozenset(
    ("parameters", "headers", "responses", "requestBodies", "schemas", "examples", "links", "callbacks", "pathItems")
)
"""Objects whose keys are names that the document chose: one of them may be `schema`."""


class Document(NamedTuple):
    """A checked document: its JSON, whether its schemas are those of OpenAPI 3.0, and where it was fetched from."""

    raw: dict[str, Any]
    is_3_0: bool
    url: str | None = None


def read_text(field: str, text: str) -> JsonValue:
    """Return the JSON that a text in JSON or YAML stands for; raises `ConfigurationError`."""
    if len(text.encode(errors="replace")) > http_limits.DOCUMENT_BYTES_MAX:
        raise ConfigurationError(field, f"is over {http_limits.DOCUMENT_BYTES_MAX} bytes; give the part that you need")
    try:
        if text.lstrip()[:1] == "{":
            loaded: Any = json.loads(text)
        else:
            loaded = yaml.load(text, Loader=_JsonLoader)  # noqa: S506 - a safe loader with less in it
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        told = " ".join(str(error).split())[:300]
        raise ConfigurationError(field, f"is neither JSON nor YAML: {told}") from error
    return _Plain(field).json(loaded)


def checked(field: str, given: object, url: str | None = None) -> Document:
    """Return the document; raises `ConfigurationError` naming the place in it and the fix."""
    raw = _Plain(field).json(given)
    if not isinstance(raw, dict):
        raise ConfigurationError(field, "is no object; give an OpenAPI document")
    if "swagger" in raw:
        raise ConfigurationError(field, "is Swagger 2.0; convert it to OpenAPI 3, which many tools do")
    version = str(raw.get("openapi", ""))
    kind: type[BaseModel]
    if version.startswith("3.0."):
        kind, known = v3_0.OpenAPI, "3.0.3"
    elif version.startswith("3.1."):
        kind, known = v3_1.OpenAPI, "3.1.0"
    else:
        raise ConfigurationError(field, f"openapi is {version or 'missing'}; OpenAPI 3.0 and 3.1 are read")
    try:
        kind.model_validate({**_without_schemas(raw, ""), "openapi": known})
    except ValidationError as error:
        raise ConfigurationError(field, f"is no OpenAPI {version}: {_told(error)}") from error
    return Document(raw, version.startswith("3.0."), url)


class _JsonLoader(yaml.SafeLoader):
    """Reads of YAML what JSON has too."""


_BOOL: Final = "tag:yaml.org,2002:bool"
_NOT_JSON: Final = frozenset(("tag:yaml.org,2002:timestamp", _BOOL))
_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_JSON]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_JsonLoader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


class _Plain:
    """Copies values as JSON, within the bounds of a document."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._left = http_limits.DOCUMENT_VALUES_MAX

    def json(self, value: object, depth: int = 0) -> JsonValue:
        self._left -= 1
        if self._left < 0 or depth > http_limits.DOCUMENT_DEPTH_MAX:
            raise ConfigurationError(self._field, "has too many values or too many levels; give the part that you need")
        if isinstance(value, Mapping):
            return {_key(key): self.json(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(each, depth + 1) for each in value]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        raise ConfigurationError(self._field, f"holds {value!r:.80}, which JSON does not have; give texts and numbers")


def _key(key: object) -> str:
    """Return a key as JSON has it: YAML reads the status 200 as a number."""
    return key if isinstance(key, str) else json.dumps(key, default=str)


def _without_schemas(value: Any, parent: str) -> Any:
    if isinstance(value, list):
        return [_without_schemas(each, parent) for each in value]
    if not isinstance(value, dict):
        return value
    named = parent in _MAPS_OF_NAMES
    return {
        key: {} if (key == "schema" and not named) or parent == "schemas" else _without_schemas(each, key)
        for key, each in value.items()
    }


def _told(error: ValidationError) -> str:
    told = []
    for detail in error.errors(include_url=False, include_context=False):
        place = ".".join(str(step) for step in detail["loc"])
        told.append(f"{place}: {detail['msg']}")
    more = f"; and {len(told) - _ERRORS_TOLD_MAX} more" if len(told) > _ERRORS_TOLD_MAX else ""
    return "; ".join(told[:_ERRORS_TOLD_MAX]) + more
