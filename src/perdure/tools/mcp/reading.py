"""A server's resources and prompts as two tools that read: `read_resource` and `get_prompt`.

They are offered where the server has any and the agent's patterns allow them, and give way to tools of the server's own
with these names. Their descriptions name some of what there is; what is in a resource or a prompt is data.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, cast

from mcp_types import (
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from pydantic import BaseModel, JsonValue, TypeAdapter

from perdure.core.agent import ToolSpec
from perdure.core.artifacts import WithFiles
from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import BegunError, ToolError
from perdure.core.mcp_limits import MCP_DESCRIPTION_BYTES_MAX, MCP_FILES_MAX, MCP_LISTED_MAX
from perdure.core.ports import Call, Check, ToolSchema
from perdure.core.tool_rules import ToolRules, ruled_spec, rules_for
from perdure.tools.environment import Environment
from perdure.tools.json_arguments import JsonArguments
from perdure.tools.mcp import contents
from perdure.tools.mcp.connection import FAILURES, Connection, Live
from perdure.tools.mcp.exchange import NotSent, exchanged


class Reading(ABC):
    """A tool that reads what a server holds."""

    method: ClassVar[str]
    settle_s = 0.0

    def __init__(
        self, connection: Connection, environment: Environment, rules: ToolRules, description: str, parameters: Any
    ) -> None:
        name = f"{connection.name}.{self.method}"
        self._connection = connection
        self._environment = environment
        self._spec = ruled_spec(name, "read", rules)
        text = cut_text(safe_text(description), MCP_DESCRIPTION_BYTES_MAX, " [cut]")
        self._schema = ToolSchema(name=name, description=text, parameters=parameters)
        self._arguments = JsonArguments(name, parameters)

    @property
    def spec(self) -> ToolSpec:
        """What the workflow records of the tool."""
        return self._spec

    @property
    def schema(self) -> ToolSchema:
        """What the model sees of the tool."""
        return self._schema

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why these arguments break the schema, or None."""
        return self._arguments.problem(arguments)

    async def check(self, _call: Call) -> Check:
        """Say that nothing can be told: there is nothing in doubt about what only reads."""
        return Check.unknown()

    @abstractmethod
    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> JsonValue | WithFiles:
        """Read; see `ToolPort.invoke`."""

    async def _read(self, request: Any, kind: Any) -> BaseModel:
        try:
            given: BaseModel = await exchanged(self._connection, request, kind)
        except NotSent as error:
            raise BegunError(str(error)) from error
        if isinstance(given, InputRequiredResult):
            raise ToolError(f"{self._spec.name} asks a person first, which is for tools to do.")
        return given


class ReadResource(Reading):
    """Reads one resource by its URI."""

    method = "read_resource"
    _KIND: ClassVar = TypeAdapter(ReadResourceResult | InputRequiredResult)

    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> JsonValue | WithFiles:
        """Read the resource; texts stand between lines that name it, files are kept."""
        request = ReadResourceRequest(params=ReadResourceRequestParams(uri=str(arguments["uri"])))
        given = cast(ReadResourceResult, await self._read(request, self._KIND))
        made = [contents.resource(each, number) for number, each in enumerate(given.contents, 1)]
        text = "\n".join(each for each in made if isinstance(each, str))
        files = tuple(file for each in made if isinstance(each, WithFiles) for file in each.files)
        value = WithFiles(text, files[:MCP_FILES_MAX]) if files else text or "The resource is empty."
        return contents.masked(value, self._environment)


class GetPrompt(Reading):
    """Gets one prompt by its name, filled in."""

    method = "get_prompt"
    _KIND: ClassVar = TypeAdapter(GetPromptResult | InputRequiredResult)

    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> JsonValue:
        """Get the prompt's messages, each after a line that says whose it is."""
        filled = {
            name: str(value) for name, value in cast(dict[str, JsonValue], arguments.get("arguments", {})).items()
        }
        params = GetPromptRequestParams(name=str(arguments["name"]), arguments=filled or None)
        given = cast(GetPromptResult, await self._read(GetPromptRequest(params=params), self._KIND))
        said = [f"--- {each.role} ---\n{contents.text_of([each.content])}" for each in given.messages]
        return self._environment.masked("\n".join((*said, "--- end of prompt ---")))


async def reading_tools(
    connection: Connection, environment: Environment, rules: dict[str, ToolRules], live: Live
) -> tuple[Reading, ...]:
    """Return the tools that read what this server holds."""
    found: list[Reading] = []
    has = live.client.server_capabilities
    if has.resources is not None:
        described = "Read a resource by its URI." + _listed("Some", await _resources(live))
        uri = {"type": "string", "minLength": 1, "description": "The resource's URI."}
        found.append(
            ReadResource(
                connection, environment, rules_for(ReadResource.method, rules), described, _object({"uri": uri}, "uri")
            )
        )
    if has.prompts is not None:
        prompts = await _prompts(live)
        described = "Get a prompt by its name, filled in." + _listed("Some", prompts)
        name = {"type": "string", "minLength": 1, "description": "The prompt's name."}
        filled = {"type": "object", "additionalProperties": {"type": "string"}, "description": "Its arguments."}
        parameters = _object({"name": name, "arguments": filled}, "name")
        found.append(GetPrompt(connection, environment, rules_for(GetPrompt.method, rules), described, parameters))
    return tuple(found)


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _listed(word: str, lines: list[str]) -> str:
    if not lines:
        return ""
    return f" {word}:\n" + "\n".join(lines[:MCP_LISTED_MAX])


async def _resources(live: Live) -> list[str]:
    try:
        listed = (await live.client.list_resources()).resources
        templates = (await live.client.list_resource_templates()).resource_templates
    except FAILURES:
        return []  # it can still be asked for by URI
    lines = [f"- {each.uri} ({each.name})" for each in listed]
    return lines + [f"- {each.uri_template} ({each.name})" for each in templates]


async def _prompts(live: Live) -> list[str]:
    try:
        listed = (await live.client.list_prompts()).prompts
    except FAILURES:
        return []
    return [
        f"- {each.name}({', '.join(argument.name for argument in each.arguments or ())})"
        + (f": {each.description}" if each.description else "")
        for each in listed
    ]
