"""From a function's signature to what a model is shown and what is accepted from it.

The JSON schema is the contract, and arguments are held to it strictly: a text is not a number, even where it could
be read as one. Guessing what a model meant is how a wrong amount gets paid, and a model that is told the reason
corrects itself at its next turn (B13). What JSON itself cannot express is taken in its JSON form (a date as text, a
set as an array), and a whole number may be written `5.0`, as JSON schema says.
"""

import difflib
import inspect
import json
import re
import typing
from collections.abc import Callable
from typing import Any, Final, NotRequired, cast

from pydantic import ConfigDict, JsonValue, PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, ErrorDetails, PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from perdure.core import limits
from perdure.core.digests import cut_text, safe_json
from perdure.core.errors import ConfigurationError
from perdure.tools.call import Call, is_call
from perdure.tools.documentation import parameter_texts
from perdure.tools.meanings import UNTOLD, meaning

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes as the name of a tool or a parameter."""

_EXACT_FLOAT_MAX: Final = 2.0**53
_INPUT_CHARS_MAX: Final = 80


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes from parameter names: tokens that say nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> dict[str, Any]:
        made = super().generate(schema, mode)
        made.pop("title", None)
        return made


class Signature:
    """The parameters of a tool's function: their JSON schema, and how arguments are read into them.

    Raises `ConfigurationError` where a parameter cannot be offered to a model.
    """

    def __init__(self, tool: str, function: Callable[..., object]) -> None:
        self._tool = tool
        parameters = inspect.signature(function).parameters
        hints = _hints(tool, function)
        self._call_parameters = tuple(name for name in parameters if is_call(hints.get(name)))
        fields: dict[str, Any] = {}
        for name, parameter in parameters.items():
            if name in self._call_parameters:
                _refuse_kind(tool, parameter)
                continue
            fields[name] = _field(tool, parameter, hints)
        self._names = tuple(fields)
        self._adapter = _adapter(fields)
        self.schema: dict[str, JsonValue] = self._adapter.json_schema(schema_generator=_Untitled)
        self.schema.pop("description", None)
        self._complete(parameters, parameter_texts(function.__doc__))

    def _complete(self, parameters: typing.Mapping[str, inspect.Parameter], texts: dict[str, str]) -> None:
        properties = cast(dict[str, dict[str, JsonValue]], self.schema.get("properties", {}))
        for name, shown in properties.items():
            if name in texts:
                shown.setdefault("description", texts[name])
            default = parameters[name].default
            if default is not inspect.Parameter.empty:
                try:
                    shown["default"] = to_jsonable_python(default)
                except (PydanticSerializationError, ValueError):
                    continue  # The default holds all the same; it only cannot be shown.

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why the arguments do not fit and what would, or None; at most `PROBLEM_BYTES_MAX` bytes."""
        try:
            self._read(arguments)
        except ValidationError as error:
            return self._explained(error)
        return None

    def read(self, arguments: dict[str, JsonValue], call: Call) -> dict[str, object]:
        """Return the function's keyword arguments; raises pydantic's `ValidationError`."""
        return {**self._read(arguments), **dict.fromkeys(self._call_parameters, call)}

    def as_read(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        """Return the arguments as the function will get them, in values of JSON (`meanings.py`)."""
        try:
            read = self._read(arguments)
        except ValidationError:  # a validator that does not always say the same
            return dict.fromkeys(arguments, UNTOLD)
        return {name: meaning(value) for name, value in read.items()}

    def _read(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        return self._adapter.validate_json(json.dumps(_plain(safe_json(arguments))), strict=True)

    def _explained(self, error: ValidationError) -> str:
        reasons = [self._reason(detail) for detail in error.errors(include_url=False, include_context=False)]
        named = ", ".join(self._names) or "none"
        text = f"Not begun: the arguments of {self._tool} do not fit. {'; '.join(reasons)}. Its parameters: {named}."
        return cut_text(text, limits.PROBLEM_BYTES_MAX, " [cut]")

    def _reason(self, detail: ErrorDetails) -> str:
        where = ".".join(str(step) for step in detail["loc"]) or "arguments"
        if detail["type"] == "missing":
            return f"{where}: missing, it is required"
        if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
            near = difflib.get_close_matches(where, self._names, n=1)
            return f"{where}: unknown" + (f", did you mean {near[0]}?" if near else "")
        given = json.dumps(detail["input"], ensure_ascii=False, default=str)
        if len(given) > _INPUT_CHARS_MAX:
            given = given[:_INPUT_CHARS_MAX] + "…"
        return f"{where}: {detail['msg']}, got {given}"


def _hints(tool: str, function: Callable[..., object]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"tool {tool!r}", f"an annotation cannot be resolved ({error}); import or define its type at module level"
        ) from error


def _refuse_kind(tool: str, parameter: inspect.Parameter) -> None:
    field = f"tool {tool!r}, parameter {parameter.name!r}"
    if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        raise ConfigurationError(field, "a model cannot fill *args or **kwargs; declare each parameter by its name")
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise ConfigurationError(field, "arguments are given by name; remove the '/' from the signature")


def _field(tool: str, parameter: inspect.Parameter, hints: dict[str, Any]) -> Any:
    """Return the parameter's type as a field of the arguments; refuses what has no JSON schema."""
    field = f"tool {tool!r}, parameter {parameter.name!r}"
    _refuse_kind(tool, parameter)
    if NAME.fullmatch(parameter.name) is None:
        raise ConfigurationError(field, "providers refuse this name; use up to 64 of a-z, A-Z, 0-9 and _")
    if parameter.name not in hints:
        raise ConfigurationError(field, "it has no annotation; annotate it, for example `str`, or `Call` for the call")
    annotation = hints[parameter.name]
    if any(is_call(part) for part in typing.get_args(annotation)):
        raise ConfigurationError(field, "annotate it as plain `Call`; it is always given")
    offered = annotation if parameter.default is inspect.Parameter.empty else NotRequired[annotation]
    try:
        shown = _adapter({parameter.name: offered}).json_schema()
    except (PydanticUserError, NameError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(
            field, f"its type has no JSON schema ({reason}); use a JSON type, a dataclass or a pydantic model"
        ) from error
    if parameter.name not in shown["properties"]:
        raise ConfigurationError(field, "models see parameters by their own names; remove the alias")
    return offered


def _adapter(fields: dict[str, Any]) -> TypeAdapter[dict[str, object]]:
    """Return what validates an object of these fields. A typed dict: any name may be a key, defaults stay out."""
    arguments = cast(Any, TypedDict)("Arguments", fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(arguments)


def _plain(value: JsonValue) -> JsonValue:
    """Write whole floats as integers: to JSON schema they are the same, to strict validation they are not."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT_FLOAT_MAX:
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
