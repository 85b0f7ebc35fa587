"""What a server lists, as tools that an agent offers: chosen by pattern, classed by hint and rule, held to a schema."""

import logging
from collections.abc import Mapping

from mcp_types import Tool

from perdure.core.digests import canonical, cut_text, safe_text
from perdure.core.errors import ConfigurationError
from perdure.core.mcp_limits import MCP_DESCRIPTION_BYTES_MAX, MCP_SCHEMA_BYTES_MAX, MCP_TOOLS_OFFERED_MAX
from perdure.core.ports import ToolPort, ToolSchema
from perdure.core.tool_rules import ToolRules, is_offered, ruled_spec, rules_for, settling_s
from perdure.tools.check_answers import key_argument
from perdure.tools.environment import Environment
from perdure.tools.json_arguments import JsonArguments
from perdure.tools.mcp.claims import claimed, digest_of, parameters_of
from perdure.tools.mcp.connection import Connection
from perdure.tools.mcp.mcp_tool import Checking, McpTool
from perdure.tools.mcp.reading import reading_tools
from perdure.tools.mcp.server import McpServer

NAME_CHARS_MAX = 128

_log = logging.getLogger(__name__)


async def offered(server: McpServer, connection: Connection, environment: Environment) -> tuple[ToolPort, ...]:
    """Return the tools of a server that its agent offers.

    Raises `ConfigurationError` where a name in the configuration fits none, or too many are offered.
    """
    live = await connection.live()
    listed = await live.listed()
    reading = await reading_tools(connection, environment, dict(server.rules), live)
    readers = {tool.method: tool for tool in reading if tool.method not in listed}
    server.refuse_unknown((*listed, *readers))
    chosen = [tool for name, tool in listed.items() if is_offered(name, server.tools)]
    found = [made for tool in chosen if (made := _tool(server, connection, environment, tool, listed)) is not None]
    found_readers = [reader for name, reader in readers.items() if is_offered(name, server.tools)]
    if len(found) > MCP_TOOLS_OFFERED_MAX:
        raise ConfigurationError(
            f"{server.place}, tools",
            f"{len(found)} of its {len(listed)} tools would be offered, at most {MCP_TOOLS_OFFERED_MAX} may be; name "
            'those that the agent needs, as in ["get_*", "refund"]',
        )
    return (*found, *found_readers)


def _tool(
    server: McpServer, connection: Connection, environment: Environment, tool: Tool, listed: Mapping[str, Tool]
) -> McpTool | None:
    """Return one tool; None for one that cannot be offered and that nobody asked for by its name."""
    name = f"{server.name}.{tool.name}"
    rules = rules_for(tool.name, server.rules)
    try:
        _refuse_odd(name, tool)
        parameters = parameters_of(tool)
        arguments = JsonArguments(name, parameters)
    except ConfigurationError as error:
        if tool.name in server.tools or tool.name in server.rules:
            raise
        _log.warning("%s is not offered: %s", name, error)
        return None
    spec = ruled_spec(name, claimed(tool), rules, digest_of(tool))
    description = cut_text(safe_text(tool.description or tool.title or ""), MCP_DESCRIPTION_BYTES_MAX, " [cut]")
    return McpTool(
        connection,
        environment,
        tool.name,
        spec=spec,
        schema=ToolSchema(name=name, description=description, parameters=parameters),
        arguments=arguments,
        failed=rules.failed,
        checking=None if rules.check is None else _checking(server, rules, listed),
        settle_s=settling_s(name, rules.settle_s, spec.timeout_s),
    )


def _refuse_odd(name: str, tool: Tool) -> None:
    if (
        not tool.name
        or len(tool.name) > NAME_CHARS_MAX
        or any(not sign.isprintable() or sign == " " for sign in tool.name)
    ):
        raise ConfigurationError(f"tool {name!r}, name", f"must have 1 to {NAME_CHARS_MAX} characters, without spaces")
    size = len(canonical(parameters_of(tool)))
    if size > MCP_SCHEMA_BYTES_MAX:
        raise ConfigurationError(
            f"tool {name!r}, schema", f"has {size} bytes, at most {MCP_SCHEMA_BYTES_MAX} are taken"
        )


def _checking(server: McpServer, rules: ToolRules, listed: Mapping[str, Tool]) -> Checking:
    """Return how a tool's check is asked."""
    name = str(rules.check)
    schema = parameters_of(listed[name])
    found = key_argument(schema)
    required = schema.get("required")
    others = [each for each in required if each != found] if isinstance(required, list) else []
    if found is None or others:
        raise ConfigurationError(
            f"{server.place}, rules, check",
            f"{name!r} cannot be asked with a key alone; it needs one parameter for it, called 'key'",
        )
    return Checking(name, found)
