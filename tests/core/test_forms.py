"""Forms: which schemas can be asked with, which answers satisfy one; held against the schema library's judgement."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from perdure.core import asking_limits, forms
from perdure.core.errors import InvalidInput
from perdure.core.forms import checked_form, read_answer


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def deep(depth: int) -> dict[str, Any]:
    return {"type": "string"} if depth == 0 else form(inner=deep(depth - 1))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({}, 'form: must be {"type": "object"'),
        ({"type": "string"}, 'form: must be {"type": "object"'),
        ({"type": "object", "properties": {}}, 'form: must be {"type": "object"'),
        (form(a={}), "form.properties.a.type: is missing"),
        (form(a={"type": "date"}), "form.properties.a.type: must be one of"),
        (form(a={"type": ["string", "null"]}), "form.properties.a.type: cannot be"),
        (form(a={"type": "string", "pattern": "(a+)+$"}), "form.properties.a.pattern: is not taken in a form"),
        (form(a={"type": "string", "minLength": "3"}), "form.properties.a.minLength: cannot be"),
        (form(a={"type": "string", "maxLength": True}), "form.properties.a.maxLength: cannot be"),
        (form(a={"$ref": "#/$defs/x"}), "form.properties.a.$ref: is not taken in a form"),
        (form(a={"type": "array", "items": {"type": "x"}}), "form.properties.a.items.type: must be one of"),
        ({**form(a={"type": "string"}), "required": ["b"]}, "form.required: 'b' is not among its properties"),
        (form(a=3), "form.properties.a: must be a JSON schema"),
        (deep(asking_limits.FORM_DEPTH_MAX), "is nested more than"),
        (form(a={"type": "string", "title": "x" * 5_000}), "form: has"),
    ],
)
def test_a_schema_that_cannot_be_asked_with_is_refused_with_its_place(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_form(schema, "form")
    assert problem in str(refused.value)


FORM: dict[str, Any] = checked_form(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 4},
            "count": {"type": "integer", "minimum": 1, "maximum": 3},
            "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "colour": {"enum": ["red", "blue", None, 1]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            "to": {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip"]},
            "sure": {"const": True},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    "form",
)
TO: Any = FORM["properties"]
EXACT = {**FORM, "properties": {**TO, "to": {**TO["to"], "additionalProperties": False}}}
"""The same for the library: to a form, what it does not name is unknown."""

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 5),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    st.sampled_from(["", "re", "red", "blue", "abcde"]),
    st.lists(st.sampled_from(["a", 1]), max_size=3),
    st.dictionaries(st.sampled_from(["zip", "x"]), st.sampled_from(["1", 1]), max_size=2),
)


@given(st.dictionaries(st.sampled_from([*FORM["properties"], "other"]), VALUES, max_size=4))
def test_it_judges_as_the_schema_library_does(answer: dict[str, Any]) -> None:
    try:
        read_answer(FORM, json.dumps(answer))
        taken = True
    except InvalidInput:
        taken = False
    assert taken == Draft202012Validator(EXACT).is_valid(answer)


def test_every_word_that_it_takes_has_been_judged_here() -> None:
    used: set[str] = set()

    def walk(schema: Any) -> None:
        used.update(schema)
        for each in schema.get("properties", {}).values():
            walk(each)
        if "items" in schema:
            walk(schema["items"])

    walk(FORM)
    assert set(forms._WORDS) <= used


def test_nothing_but_json_is_read() -> None:
    for said in ('{"name": NaN}', "{'name': 1}", "[" * 100_000, ""):
        with pytest.raises(InvalidInput):
            read_answer(FORM, said)
