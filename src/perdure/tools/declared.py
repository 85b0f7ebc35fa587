"""What of a call's arguments its tool declares.

A model may add what a schema does not forbid, at the top and within: `options={"to": "B", "dry_run": true}`. A service
may well ignore that, so nothing may be allowed for it. Where a schema says nothing of what an object holds, or says it
in a way that is not followed here (several shapes, patterns), everything in it counts as declared.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

_FOLLOWED_MAX: Final = 16
"""References from one to the next; a longer chain is a circle."""

_SHAPES: Final = ("anyOf", "oneOf")
_NOT_FOLLOWED: Final = frozenset(
    {"allOf", "if", "patternProperties", "dependentSchemas", "$dynamicRef", "$recursiveRef"}
)


def declared(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the arguments without what the schema does not name."""
    found = _declared(dict(arguments), dict(schema), schema)
    return found if isinstance(found, dict) else dict(arguments)


def _declared(value: JsonValue, schema: JsonValue, root: Mapping[str, JsonValue]) -> JsonValue:
    if not isinstance(value, dict | list):
        return value
    shape = _shape(schema, root)
    if isinstance(value, list):
        items = shape.get("items")
        if not isinstance(items, Mapping):
            return value
        return [_declared(each, items, root) for each in value]
    properties = shape.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return value
    further = shape.get("additionalProperties")
    kept = {name: each for name, each in value.items() if name in properties or isinstance(further, Mapping) or further}
    return {name: _declared(each, properties.get(name, further), root) for name, each in kept.items()}


def _shape(schema: JsonValue, root: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the schema that says what an object or a list holds; an empty one where none does alone."""
    for _ in range(_FOLLOWED_MAX):
        if not isinstance(schema, Mapping) or not _NOT_FOLLOWED.isdisjoint(schema):
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            schema = _at(reference, root)
            continue
        several = [each for name in _SHAPES for each in _listed(schema.get(name))]
        if not several:
            return schema
        holding = [each for each in several if not _is_plain(each)]
        if "properties" in schema or len(holding) != 1:
            return {}
        schema = holding[0]
    return {}


def _is_plain(schema: JsonValue) -> bool:
    """Whether this describes neither an object nor a list."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return isinstance(kind, str) and kind not in {"object", "array"}


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _at(reference: str, root: Mapping[str, JsonValue]) -> JsonValue:
    """Return what a reference within the schema names; None where it names nothing that is found by its path."""
    if not reference.startswith("#/"):
        return dict(root) if reference == "#" else None
    found: JsonValue = dict(root)
    for step in reference.removeprefix("#/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
