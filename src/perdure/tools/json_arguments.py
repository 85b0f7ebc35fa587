"""Arguments held to a JSON schema that somebody else wrote: an MCP server's, or one made from an OpenAPI document.

The schema is the contract, and what breaks it is refused before anything begins, in words that help a model to correct
itself (B13). Nothing outside is asked meanwhile: a schema that refers to what is not in it is refused when its tool is
made. What may take long to judge is left to the service, for this runs where heartbeats do: patterns (which are of
another language's regular expressions, too), what is `unevaluated`, and the rest after too many references.
"""

import difflib
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from perdure.core import limits
from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import ConfigurationError
from perdure.tools.declared import declared

_SHOWN_CHARS_MAX: Final = 80
_REASONS_MAX: Final = 8
"""Further reasons help nobody to correct the first ones."""
_REFERENCES_FOLLOWED_MAX: Final = 3_000
"""In one look at arguments, under half a second: references that each name two others soon make millions."""

_Rule = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]
_LEFT: Final = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_NO_DIALECT: Final = cast(Any, None)
_followed: ContextVar[Iterator[int]] = ContextVar("followed")


class JsonArguments:
    """What the arguments of one tool are held to.

    Raises `ConfigurationError` where the schema is none, or refers to something outside itself.
    """

    def __init__(self, tool: str, schema: Mapping[str, JsonValue]) -> None:
        self._tool = tool
        field = f"tool {tool!r}, schema"
        kind: type[Any] = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema, format_checker=FormatChecker(formats=()))  # a pattern may be one of ECMA's
        except SchemaError as error:
            raise ConfigurationError(field, f"is no JSON schema: {_short(error.message)}; correct it") from error
        dialect = specification_with(kind.META_SCHEMA.get("$schema", ""), default=DRAFT202012)
        resolver = Registry().resolver_with_root(dialect.create_resource(dict(schema)))
        for reference in _references(schema):
            try:
                resolver.lookup(reference)
            except Unresolvable as error:
                raise ConfigurationError(
                    field, f"refers to {_short(reference)}, which is not in it; put it under $defs"
                ) from error
        # Its own registry: the library's default one would fetch what a reference names.
        self._validator = _bounded(cast(Any, kind))(_of_one_dialect(schema), registry=Registry())
        self._schema = schema
        properties = schema.get("properties")
        self._names = tuple(properties) if isinstance(properties, dict) else ()

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why the arguments do not fit and what would, or None; at most `PROBLEM_BYTES_MAX` bytes."""
        bound = _followed.set(iter(range(_REFERENCES_FOLLOWED_MAX)))
        try:
            errors = sorted(self._validator.iter_errors(arguments), key=_place)
        except (_TooMany, Unresolvable):  # a reference may depend on the way to it
            return None
        except RecursionError:
            return f"Not begun: the arguments of {self._tool} are nested too deeply."
        finally:
            _followed.reset(bound)
        if not errors:
            return None
        reasons = list(dict.fromkeys(reason for error in errors for reason in self._reasons(error)))
        named = ", ".join(self._names) or "none"
        told = "; ".join(reasons[:_REASONS_MAX])
        text = f"Not begun: the arguments of {self._tool} do not fit. {told}. Its parameters: {named}."
        return cut_text(safe_text(text), limits.PROBLEM_BYTES_MAX, " [cut]")

    def declared(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        """Return the arguments without what the schema does not name, at the top and within."""
        return dict(declared(arguments, self._schema))

    def _reasons(self, error: ValidationError) -> Iterator[str]:
        where = ".".join(str(step) for step in error.absolute_path)
        prefix = f"{where}." if where else ""
        instance, value = cast(Any, error.instance), cast(Any, error.validator_value)
        if error.validator == "required" and isinstance(instance, dict):
            yield from (f"{prefix}{name}: missing, it is required" for name in value if name not in instance)
        elif error.validator == "additionalProperties" and isinstance(instance, dict):
            known = cast(Any, error.schema).get("properties", {})
            for name in instance:
                if name not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    yield f"{prefix}{name}: unknown" + (f", did you mean {near[0]}?" if near else "")
        elif error.validator == "type":
            kinds = value if isinstance(value, str) else " or ".join(value)
            yield f"{where or 'arguments'}: must be {kinds}, got {_shown(instance)}"
        elif error.validator in {"enum", "const"}:
            allowed = value if error.validator == "enum" else [value]
            among = ", ".join(_shown(each) for each in allowed)
            yield f"{where or 'arguments'}: must be one of {among}, got {_shown(instance)}"
        else:
            yield f"{where or 'arguments'}: {_short(error.message)}"


class _TooMany(Exception):
    """More references were followed than `_REFERENCES_FOLLOWED_MAX`."""


@functools.cache
def _bounded(kind: Any) -> Any:
    """Return a dialect's validator that leaves to the service what would take long."""
    rules: dict[str, _Rule] = {name: _left for name in _LEFT if name in kind.VALIDATORS}
    rules |= {name: _counted(kind.VALIDATORS[name]) for name in _REFERENCES if name in kind.VALIDATORS}
    rules["additionalProperties"] = _without_patterns(kind.VALIDATORS["additionalProperties"])
    return cast(Any, extend)(kind, rules)


def _left(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    del validator, value, instance, schema


def _counted(rule: _Rule) -> _Rule:
    def follow(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        if next(_followed.get(), None) is None:
            raise _TooMany
        return rule(validator, value, instance, schema)

    return follow


def _without_patterns(rule: _Rule) -> _Rule:
    """Return the rule where no pattern says which properties are additional."""

    def judge(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        return None if "patternProperties" in schema else rule(validator, value, instance, schema)

    return judge


def _of_one_dialect(schema: Any) -> Any:
    """Return a copy in which no part names a dialect, which would be judged by that dialect's own validator."""
    if isinstance(schema, Mapping):
        return {
            key: _of_one_dialect(value)
            for key, value in schema.items()
            if key != "$schema" or not isinstance(value, str) or not validator_for({key: value}, default=_NO_DIALECT)
        }
    return [_of_one_dialect(each) for each in schema] if isinstance(schema, list) else schema


def _place(error: ValidationError) -> tuple[str, ...]:
    return tuple(str(step) for step in error.absolute_path)


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _shown(value: object) -> str:
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"
