"""Schemas of an OpenAPI document, as JSON schemas that stand by themselves.

What a schema refers to comes with it under `$defs`, once, so that a schema that refers to itself does so there, too.
OpenAPI 3.0 has a dialect of its own (`nullable`, a boolean `exclusiveMinimum`); it is put into JSON schema's words.
What a service only answers (`readOnly`) is not offered to be sent.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable

from perdure.core.errors import ConfigurationError

Schema = dict[str, JsonValue]

_ONE: Final = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
     "unevaluatedProperties")
)  # fmt: skip
_MANY: Final = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_NAMED: Final = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_DROPPED: Final = frozenset(
    ("xml", "externalDocs", "discriminator", "example", "examples", "nullable", "readOnly", "writeOnly", "$schema",
     "$id", "$comment")
)  # fmt: skip
"""What says nothing about what may be sent."""

_REFERENCES_DEEP_MAX: Final = 100


class Pointers:
    """Finds what a document's references name; only within the document itself.

    Raises `ConfigurationError` for others: whoever bundles a document puts what it refers to into it.
    """

    def __init__(self, field: str, raw: Mapping[str, Any]) -> None:
        self._field = field
        self._resolver = Registry[Any]().resolver_with_root(Resource.opaque(raw))

    def found(self, reference: str) -> Any:
        """Return what a reference names."""
        if not reference.startswith("#"):
            raise ConfigurationError(self._field, f"refers to {reference!r}, outside the document; bundle it into one")
        try:
            return self._resolver.lookup(reference).contents
        except Unresolvable as error:
            raise ConfigurationError(self._field, f"refers to {reference!r}, which is not in the document") from error

    def followed(self, raw: Any) -> dict[str, Any]:
        """Return an object, or the one that it refers to in the end."""
        for _ in range(_REFERENCES_DEEP_MAX):
            if not isinstance(raw, dict):
                raise ConfigurationError(self._field, f"has {raw!r:.80} where an object is expected")
            if not isinstance(raw.get("$ref"), str):
                return raw
            raw = self.found(raw["$ref"])
        raise ConfigurationError(self._field, "has a reference that leads back to itself")


class SchemaSet:
    """The schemas of one operation; `defs` is what they refer to, under the names that they use for it."""

    def __init__(self, pointers: Pointers, *, is_3_0: bool) -> None:
        self._pointers = pointers
        self._is_3_0 = is_3_0
        self._names: dict[str, str] = {}
        self.defs: dict[str, JsonValue] = {}

    def taken(self, raw: Any) -> Schema:
        """Return a schema in JSON schema's words."""
        made = self._converted(raw)
        return made if isinstance(made, dict) else ({} if made else {"not": {}})

    def _converted(self, raw: Any) -> JsonValue:
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, dict):
            raise ConfigurationError("schema", f"has {raw!r:.80} where a schema is expected")
        if isinstance(raw.get("$ref"), str):
            beside = {} if self._is_3_0 else {key: value for key, value in raw.items() if key != "$ref"}
            return {"$ref": f"#/$defs/{self._named(raw['$ref'])}", **self._keywords(beside)}
        made = self._keywords(raw)
        if self._is_3_0:
            made = _as_json_schema(raw, made)
        return made

    def _keywords(self, raw: dict[str, Any]) -> Schema:
        made: Schema = {}
        for key, value in raw.items():
            if key in _DROPPED or key.startswith("x-"):
                continue
            if key in _ONE:
                made[key] = self._converted(value)
            elif key in _MANY and isinstance(value, list):
                made[key] = [self._converted(each) for each in value]
            elif key in _NAMED and isinstance(value, dict):
                made[key] = {
                    name: self._converted(each)
                    for name, each in value.items()
                    if key != "properties" or not self._only_answered(each)
                }
            else:
                made[key] = value
        left_out = set(raw.get("properties") or ()) - set(made.get("properties") or ())  # type: ignore[arg-type]
        if left_out and isinstance(made.get("required"), list):
            made["required"] = [name for name in raw["required"] if name not in left_out]
        return made

    def _only_answered(self, raw: Any) -> bool:
        return isinstance(raw, dict) and self._pointers.followed(raw).get("readOnly") is True

    def _named(self, reference: str) -> str:
        """Return the name under `$defs` of what a reference names, and put it there once."""
        known = self._names.get(reference)
        if known is not None:
            return known
        last = "".join(c if c.isalnum() or c in "_-." else "_" for c in reference.rpartition("/")[2]) or "schema"
        name, number = last, 1
        while name in self.defs:
            number += 1
            name = f"{last}_{number}"
        self._names[reference] = name
        self.defs[name] = True  # Its place is taken before it is read: it may refer to itself.
        self.defs[name] = self._converted(self._pointers.found(reference))
        return name


def _as_json_schema(raw: dict[str, Any], made: Schema) -> Schema:
    """Put what OpenAPI 3.0 says in its own way into JSON schema's words."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(raw.get(exclusive), bool):
            del made[exclusive]
            if raw[exclusive] and bound in made:
                made[exclusive] = made.pop(bound)
    if raw.get("nullable") is not True:
        return made
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if isinstance(made.get("enum"), list) and None not in raw["enum"]:
            made["enum"] = [*raw["enum"], None]
        return made
    return {"anyOf": [made, {"type": "null"}]} if made else made
