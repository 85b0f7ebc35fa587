"""Arguments held to a JSON schema: refused in words that help, without asking anybody outside."""

import time
from typing import Any

import pytest

from perdure.core import limits
from perdure.core.errors import ConfigurationError
from perdure.tools.json_arguments import JsonArguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^A-[0-9]+$"},
        "amount": {"type": "number", "exclusiveMinimum": 0},
        "reason": {"enum": ["damage", "late"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
    },
    "required": ["order_id"],
    "additionalProperties": False,
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {"count": {"type": "integer"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
            "required": ["count"],
        }
    },
}
ARGUMENTS = JsonArguments("shop.refund", SCHEMA)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "order_id: missing, it is required"),
        ({"order_id": "A-1", "amonut": 1}, "amonut: unknown, did you mean amount?"),
        ({"order_id": "A-1", "amount": "5"}, 'amount: must be number, got "5"'),
        ({"order_id": "A-1", "amount": True}, "amount: must be number, got true"),
        ({"order_id": "A-1", "reason": "lost"}, 'reason: must be one of "damage", "late", got "lost"'),
        ({"order_id": "A-1", "lines": [{"count": 1, "parts": [{}]}]}, "lines.0.parts.0.count: missing"),
        ({"order_id": "A-1", "lines": [{"count": 1.5}]}, "lines.0.count: must be integer, got 1.5"),
    ],
)
def test_b13_what_does_not_fit_is_told_with_its_place(arguments: dict[str, Any], told: str) -> None:
    problem = ARGUMENTS.problem(arguments)
    assert problem is not None
    assert told in problem
    assert problem.startswith("Not begun: the arguments of shop.refund do not fit. ")
    assert problem.endswith("Its parameters: order_id, amount, reason, lines.")


def test_what_fits_has_no_problem() -> None:
    assert ARGUMENTS.problem({"order_id": "A-1", "amount": 5, "lines": [{"count": 2.0, "parts": []}]}) is None


def test_a_problem_is_bounded_and_can_be_stored() -> None:
    problem = ARGUMENTS.problem({f"x{i}\ud800{'y' * 500}": i for i in range(500)})
    assert problem is not None
    assert len(problem.encode()) <= limits.PROBLEM_BYTES_MAX


def test_what_is_nested_without_end_is_refused() -> None:
    deep: Any = {"count": 1}
    for _ in range(2_000):
        deep = {"count": 1, "parts": [deep]}
    problem = ARGUMENTS.problem({"order_id": "A-1", "lines": [deep]})
    assert problem is not None
    assert "nested too deeply" in problem


def test_a_pattern_of_another_language_is_left_to_the_service() -> None:
    foreign = JsonArguments("t", {"type": "object", "properties": {"a": {"type": "string", "pattern": r"\p{L}+"}}})
    assert foreign.problem({"a": "x"}) is None


DIALECT = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"$schema": DIALECT, "pattern": "^(a+)+$"},
        {"allOf": [{"$ref": "#/$defs/A"}]},
        {"type": "object", "patternProperties": {"^(a+)+$": False}, "additionalProperties": False},
        {"type": "object", "patternProperties": {"^(a+)+$": False}, "unevaluatedProperties": False},
        {"type": "object", "propertyNames": {"pattern": "^(a+)+$"}},
    ],
)
def test_patterns_are_left_to_the_service(schema: dict[str, Any]) -> None:
    """One can take Python years, and nothing else goes on in a worker meanwhile."""
    given: Any = {
        "type": "object",
        "properties": {"x": schema},
        "$defs": {"A": {"$schema": DIALECT, "pattern": "^(a+)+$"}},
    }
    slow = "a" * 22 + "!"
    began_s = time.perf_counter()
    assert JsonArguments("t", given).problem({"x": {slow: 1} if "type" in schema else slow}) is None
    assert time.perf_counter() - began_s < 0.1


def test_references_that_multiply_are_followed_for_a_while() -> None:
    twice: Any = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(16)}
    properties: Any = {"a": {"type": "integer"}, "x": {"$ref": "#/$defs/d0"}}
    many = JsonArguments("t", {"type": "object", "properties": properties, "$defs": twice | {"d16": {"type": "null"}}})
    began_s = time.perf_counter()
    assert many.problem({"x": "no"}) is None
    assert time.perf_counter() - began_s < 2
    assert "a: must be integer" in str(many.problem({"a": "no"}))


@pytest.mark.parametrize(
    "schema",
    [{"$dynamicRef": "#nowhere"}, {"$id": "http://x/y", "$ref": "#/$defs/A"}, {"$ref": "#/$defs/A", "$id": "u"}],
)
def test_a_reference_that_leads_nowhere_on_its_way_is_left_to_the_service(schema: dict[str, Any]) -> None:
    given: Any = {"type": "object", "properties": {"a": schema}, "$defs": {"A": {"type": "null"}}}
    assert JsonArguments("t", given).problem({"a": 1}) is None


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/x.json", "other.json#/a", "#/$defs/None"])
def test_a_reference_outside_is_refused_and_nobody_asked(reference: str) -> None:
    with pytest.raises(ConfigurationError, match=r"tool 't', schema: refers to .*; put it under \$defs"):
        JsonArguments("t", {"type": "object", "properties": {"a": {"$ref": reference}}})


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="tool 't', schema: is no JSON schema"):
        JsonArguments("t", {"type": "objekt"})
