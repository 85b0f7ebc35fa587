"""What a function gets, as JSON: what a rule over its arguments is about.

A type may make something else of an argument than was written: a UUID in small letters, a text without its spaces, what
a validator or a default within a model puts in its place. The way back is not what pydantic would write (a `Decimal` as
a text, a secret as stars, without what is excluded), but what is there: so that a condition on a number sees a number.
"""

import dataclasses
from collections import deque
from collections.abc import Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel, RootModel, SecretBytes, SecretStr
from pydantic_core import PydanticSerializationError, to_jsonable_python

UNTOLD: Final = object()
"""Stands for a value that has no form in JSON: a condition over it cannot be told."""

_EXACT_DIGITS_MAX: Final = 40
"""Of a whole `Decimal`, to be kept exactly; 1E+999999 would fill the memory."""


def meaning(value: object) -> object:
    """Return a value as JSON has it, or `UNTOLD`.

    Its properties and serializers are the author's code, which may raise anything: the call is a good one all the same,
    and its rule then asks.
    """
    try:
        return _json(value)
    except Exception:  # noqa: BLE001 - another's code, as a tool is
        return UNTOLD


def _json(value: Any) -> object:
    match value:
        case Enum():
            return _json(value.value)
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return _number(value)
        case BaseModel():
            return _of_model(value)
        case Mapping():
            return {_key(key): _json(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset() | deque():
            return [_json(each) for each in value]
        case _:
            return _of_object(value)


def _of_object(value: Any) -> object:
    if isinstance(value, SecretStr | SecretBytes):
        return _json(value.get_secret_value())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        set_now = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return {name: _json(getattr(value, name)) for name in set_now}
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError):
        return UNTOLD


def _number(value: Decimal) -> int | float:
    exact = value.is_finite() and value.adjusted() < _EXACT_DIGITS_MAX and value == value.to_integral_value()
    if value.is_nan():
        return float("nan")
    return int(value) if exact else float(value)


def _of_model(model: BaseModel) -> object:
    """Return a model's fields under their own names, and under those by which they are written in JSON."""
    if isinstance(model, RootModel):
        return _json(model.root)
    fields = type(model).model_fields
    values = {name: _json(getattr(model, name)) for name in fields}
    seen = {
        alias: values[name]
        for name, field in fields.items()
        for alias in (field.validation_alias, field.alias)
        if isinstance(alias, str)
    }
    further = {name: _json(each) for name, each in (model.model_extra or {}).items()}
    return further | values | seen


def _key(key: object) -> str:
    plain = _json(key)
    return plain if isinstance(plain, str) else str(plain)
