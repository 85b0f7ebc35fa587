"""What a server says of a tool, as far as calls are held to it."""

from typing import cast

from mcp_types import Tool
from pydantic import JsonValue

from perdure.core.agent import EffectClass
from perdure.core.digests import safe_json
from perdure.core.tool_rules import schema_digest


def parameters_of(tool: Tool) -> dict[str, JsonValue]:
    """Return a tool's input schema as it is shown, held to and digested."""
    return cast(dict[str, JsonValue], safe_json(tool.input_schema))


def claimed(tool: Tool) -> EffectClass:
    """Return the class that a server claims for a tool; what it does not claim, it does not promise."""
    hints = tool.annotations
    if hints is not None and hints.read_only_hint:
        return "read"
    if hints is not None and hints.idempotent_hint:
        return "idempotent"
    return "once"


def digest_of(tool: Tool) -> str:
    """Return the digest under which a tool is registered."""
    return schema_digest(parameters_of(tool), claimed(tool))
