"""Forms: what a person's answer must be made of, and whether one is.

A form is a JSON schema of an object. Which of JSON Schema's words it may use is bounded here, to those that describe
what a person fills in, and that can be judged without a clock, a network, or a regular expression that might never
end. The workflow judges an answer in the very step that takes it, so that of two doors neither can take what the other
would refuse, and a wrong answer is refused with its place while the question stays open.

The judgement is part of a task's history: words may be added here, and what an old one means never changes.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import JsonValue

from perdure.core import asking_limits, limits
from perdure.core.digests import canonical, cut_text, read_json, safe_json, safe_text
from perdure.core.errors import InvalidInput

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}

_NOTES: Final = frozenset({"title", "description", "default", "examples", "format", "$schema", "enumNames"})
"""Words that describe and do not judge, as JSON Schema has it for `format` too."""

_WORDS: Final[dict[str, tuple[type, ...]]] = {
    "type": (str,),
    "properties": (dict,),
    "required": (list,),
    "additionalProperties": (bool,),
    "items": (dict,),
    "enum": (list,),
    "const": (object,),
    "minimum": (int, float),
    "maximum": (int, float),
    "exclusiveMinimum": (int, float),
    "exclusiveMaximum": (int, float),
    "minLength": (int,),
    "maxLength": (int,),
    "minItems": (int,),
    "maxItems": (int,),
}
"""Words that judge, and what stands after them."""

_REASONS_MAX: Final = 8
_SHOWN_CHARS_MAX: Final = 60


def checked_form(form: Mapping[str, JsonValue], field: str) -> dict[str, JsonValue]:
    """Return a form that can be asked with; raises `InvalidInput` naming the place and the fix."""
    kept = safe_json(dict(form))
    size = len(canonical(kept))
    if size > asking_limits.FORM_BYTES_MAX:
        raise InvalidInput(field, f"has {size} bytes, at most {asking_limits.FORM_BYTES_MAX}; ask for less at once")
    if not isinstance(kept, dict) or kept.get("type") != "object" or not kept.get("properties"):
        raise InvalidInput(field, 'must be {"type": "object", "properties": {…}} with a property for each field')
    _check(kept, field, 1)
    return kept


def _check(schema: object, field: str, depth: int) -> None:
    if not isinstance(schema, dict):
        raise InvalidInput(field, "must be a JSON schema, an object")
    if depth > asking_limits.FORM_DEPTH_MAX:
        raise InvalidInput(field, f"is nested more than {asking_limits.FORM_DEPTH_MAX} deep; make it flatter")
    for word in (word for word in schema if word not in _NOTES):
        _check_word(f"{field}.{word}", word, schema[word])
    if "type" not in schema and "enum" not in schema and "const" not in schema:
        raise InvalidInput(f"{field}.type", f"is missing; give one of {', '.join(_TYPES)}")
    if schema.get("type", "object") not in _TYPES:
        raise InvalidInput(f"{field}.type", f"must be one of {', '.join(_TYPES)}")
    properties = schema.get("properties", {})
    for name in [name for name in schema.get("required", []) if name not in properties]:
        raise InvalidInput(f"{field}.required", f"{name!r} is not among its properties")
    for name, each in properties.items():
        _check(each, f"{field}.properties.{name}", depth + 1)
    if "items" in schema:
        _check(schema["items"], f"{field}.items", depth + 1)


def _check_word(field: str, word: str, value: JsonValue) -> None:
    wanted = _WORDS.get(word)
    if wanted is None:
        raise InvalidInput(field, f"is not taken in a form; use {', '.join(_WORDS)}")
    odd = isinstance(value, bool) and bool not in wanted and object not in wanted
    if odd or not isinstance(value, wanted):
        raise InvalidInput(field, f"cannot be {_short(value)}")


def read_answer(form: Mapping[str, JsonValue], text: str) -> dict[str, JsonValue]:
    """Return the object that an answer is; raises `InvalidInput` with all that is wrong, each with its place."""
    wanted = f"answer with a JSON object of {', '.join(_named(form))}"
    try:
        given = read_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("text", f"is not JSON; {wanted}") from error
    if not isinstance(given, dict):
        raise InvalidInput("text", f"is no JSON object; {wanted}")
    problems = list(dict.fromkeys(_problems(given, form, "")))
    if problems:
        told = "; ".join(problems[:_REASONS_MAX])
        raise InvalidInput("answer", cut_text(safe_text(f"{told}; {wanted}"), limits.PROBLEM_BYTES_MAX, "… [cut]"))
    return given


def _named(form: Mapping[str, JsonValue]) -> Iterator[str]:
    properties, required = form.get("properties"), form.get("required")
    for name in properties if isinstance(properties, dict) else {}:
        yield name if isinstance(required, list) and name in required else f"{name} (optional)"


def _problems(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    """Yield what is wrong with a value, each with its place."""
    shown = place or "answer"
    kind = schema.get("type")
    if kind is not None and not _is(value, kind):
        yield f"{shown}: must be {'an' if kind[0] in 'aeio' else 'a'} {kind}, got {_short(value)}"
        return
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        yield f"{shown}: must be one of {', '.join(_short(each) for each in schema['enum'])}, got {_short(value)}"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{shown}: must be {_short(schema['const'])}, got {_short(value)}"
    yield from _bounds(value, schema, shown)
    if isinstance(value, dict):
        yield from _fields(value, schema, place)
    if isinstance(value, list) and "items" in schema:
        for index, each in enumerate(value):
            yield from _problems(each, schema["items"], f"{place}[{index}]")


def _fields(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    prefix = f"{place}." if place else ""
    for name in schema.get("required", []):
        if name not in value:
            yield f"{prefix}{name}: missing"
    for name, each in value.items():
        if name in properties:
            yield from _problems(each, properties[name], f"{prefix}{name}")
        elif schema.get("additionalProperties") is not True:
            yield f"{prefix}{name}: unknown"


def _bounds(value: Any, schema: Mapping[str, Any], shown: str) -> Iterator[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        bounds: tuple[tuple[str, bool, str], ...] = (
            ("minimum", value < schema.get("minimum", value), "at least"),
            ("maximum", value > schema.get("maximum", value), "at most"),
            ("exclusiveMinimum", "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"], "more than"),
            ("exclusiveMaximum", "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"], "less than"),
        )
    elif isinstance(value, str | list):
        least, most = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        size = len(value)
        bounds = (
            (least, size < schema.get(least, size), "at least"),
            (most, size > schema.get(most, size), "at most"),
        )
    else:
        return
    unit = {"minLength": " characters", "maxLength": " characters", "minItems": " elements", "maxItems": " elements"}
    for word, broken, said in bounds:
        if broken:
            yield (
                f"{shown}: must have {said} {schema[word]}{unit[word]}"
                if word in unit
                else (f"{shown}: must be {said} {schema[word]}, got {_short(value)}")
            )


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)


def _short(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) <= _SHOWN_CHARS_MAX else f"{shown[:_SHOWN_CHARS_MAX]}…"
