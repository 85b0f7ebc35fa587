"""`tool(ask=…)`: the short form of an approval rule, held to the tool that it stands on."""

from collections.abc import Mapping

from pydantic import JsonValue

from perdure.core.conditions import Condition
from perdure.core.errors import ConfigurationError

ALWAYS = "True"


def asked(tool: str, ask: str | bool) -> str:
    """Return the condition under which calls of a tool ask: empty for none, `ALWAYS` for each.

    Raises `ConfigurationError` for what is no condition.
    """
    if isinstance(ask, bool):
        return ALWAYS if ask else ""
    if not ask.strip():
        raise ConfigurationError(f"tool {tool!r}, ask", f'{ask!r} is no condition; write "amount > 100", or True')
    return Condition(ask, f"tool {tool!r}, ask").text


def refuse_unknown_arguments(tool: str, condition: str, parameters: Mapping[str, JsonValue]) -> None:
    """Raise `ConfigurationError` for a condition that names what is no parameter of its tool."""
    properties = parameters.get("properties")
    if condition:
        known = properties if isinstance(properties, dict) else {}
        Condition(condition, f"tool {tool!r}, ask").refuse_unknown(list(known))
