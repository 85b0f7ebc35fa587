"""What of a call's arguments its tool declares: nothing else may let a call through."""

from typing import Any

import pytest

from perdure.tools.declared import declared

OPTIONS: dict[str, Any] = {"type": "object", "properties": {"to": {"type": "string"}}}
GIVEN: dict[str, Any] = {"options": {"to": "B", "dry_run": True}, "dry_run": True}
KEPT: dict[str, Any] = {"options": {"to": "B"}}


def of(options: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"options": options}, **more}


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (of(OPTIONS), KEPT),
        (of({"$ref": "#/$defs/a~1b"}, **{"$defs": {"a/b": OPTIONS}}), KEPT),
        (of({"anyOf": [OPTIONS, {"type": "null"}]}), KEPT),
        (of({"anyOf": [{"$ref": "#/$defs/O"}, {"type": "null"}]}, **{"$defs": {"O": OPTIONS}}), KEPT),
        (of(OPTIONS | {"additionalProperties": True}), {"options": GIVEN["options"]}),
        (of(OPTIONS | {"additionalProperties": {"type": "boolean"}}), {"options": GIVEN["options"]}),
        (of({"type": "object"}), {"options": GIVEN["options"]}),
        (of({"type": "object", "properties": {}}), {"options": GIVEN["options"]}),
        (of({"anyOf": [OPTIONS, {"type": "object", "properties": {"x": {}}}]}), {"options": GIVEN["options"]}),
        (of({"allOf": [OPTIONS]}), {"options": GIVEN["options"]}),
        (of(OPTIONS | {"patternProperties": {"^d": {}}}), {"options": GIVEN["options"]}),
        (of({"$ref": "#/$defs/gone"}), {"options": GIVEN["options"]}),
        (of({"$ref": "#/$defs/O"}, **{"$defs": {"O": {"$ref": "#/$defs/O"}}}), {"options": GIVEN["options"]}),
        ({"type": "object"}, GIVEN),
        ({}, GIVEN),
    ],
)
def test_what_a_schema_does_not_name_is_left_out(schema: dict[str, Any], kept: Any) -> None:
    assert declared(GIVEN, schema) == kept


def test_lists_and_schemas_within_themselves_are_followed() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"name": {}, "parts": {"type": "array", "items": {"$ref": "#"}}},
    }
    given: Any = {"name": "a", "x": 1, "parts": [{"x": 1, "parts": [{"name": "b", "x": 1}]}, "odd"]}
    assert declared(given, schema) == {"name": "a", "parts": [{"parts": [{"name": "b"}]}, "odd"]}
