"""What a client does in each scenario of the MCP conformance kit, whichever client it is.

The kit starts a server for one scenario, runs a command with that server's URL, and judges what the server saw. The
scenario, the protocol's version and what the client is to know come in the environment. What is asked of a client is
the same for every client; how it connects, lists and calls is an `Opener`: the SDK's bare client has one (`bare.py`),
and a client path of this package is another. Nothing here imports either.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

Json = dict[str, Any]

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Those that begin with `initialize`; a later one is asked for with each request."""

ADDING: Final = {"a": 5, "b": 3}

OF_TYPE: Final[Json] = {"string": "x", "integer": 0, "number": 0, "boolean": True, "object": {}, "array": []}


class RefusedError(Exception):
    """The server, or the client itself, refused a call; the scenario may want just that."""


@dataclass(frozen=True)
class Situation:
    """What the kit tells its client."""

    url: str
    scenario: str
    version: str
    context: Json = field(default_factory=dict)

    @property
    def is_modern(self) -> bool:
        """Whether the server knows no handshake."""
        return self.version not in HANDSHAKE_VERSIONS

    @property
    def handshake_only(self) -> bool:
        """Whether to begin with `initialize`; of one scenario the server knows nothing else, whatever its version."""
        return not self.is_modern or self.scenario == "json-schema-ref-no-deref"

    def answer(self, schema: Mapping[str, Any]) -> Json:
        """Return what a person says to a question: what the form proposes, and yes."""
        if self.scenario.startswith("sep-2322"):
            return {"confirmed": True}
        properties = schema.get("properties", {})
        return {name: each["default"] for name, each in properties.items() if "default" in each}


class Session(Protocol):
    """A connection to the kit's server."""

    async def tools(self) -> Mapping[str, Json]:
        """Return the input schemas of the tools that the client offers, by name."""
        ...

    async def call(self, name: str, arguments: Json) -> None:
        """Call a tool and take its result. Raises `RefusedError`."""
        ...


Opener = Callable[[Situation], AbstractAsyncContextManager[Session]]


def situation(arguments: list[str], environment: Mapping[str, str]) -> Situation:
    """Return what this process was told; the URL is the command's last word."""
    return Situation(
        url=arguments[-1],
        scenario=environment["MCP_CONFORMANCE_SCENARIO"],
        version=environment["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        context=json.loads(environment.get("MCP_CONFORMANCE_CONTEXT", "{}")),
    )


async def drive(given: Situation, opener: Opener) -> None:
    """Do what the scenario asks for. Raises where the client cannot."""
    async with opener(given) as session:
        tools = await session.tools()
        for name, arguments in _calls(given, tools):
            try:
                await session.call(name, arguments)
            except RefusedError:
                if given.scenario not in MAY_BE_REFUSED and not given.scenario.startswith("auth/"):
                    raise


MAY_BE_REFUSED: Final = frozenset({"http-invalid-tool-headers", "http-custom-headers"})
"""Where the server has tools that a client must not call, or calls that it may refuse to make."""


def _calls(given: Situation, tools: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """Return the calls to make, in order."""
    match given.scenario:
        case "tools_call" | "request-metadata" | "http-standard-headers":
            return [("add_numbers", ADDING)]
        case "sse-retry":
            return [("test_reconnection", {})]
        case "elicitation-sep1034-client-defaults":
            return [("test_client_elicitation_defaults", {})]
        case "json-schema-2020-12-preservation":
            return [("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"]})]
        case "http-invalid-tool-headers":
            return [(name, _required(schema)) for name, schema in tools.items()]
        case "http-custom-headers":
            wanted = [(each["name"], each.get("arguments") or {}) for each in given.context.get("toolCalls", [])]
            return [(name, arguments) for name, arguments in wanted if name in tools]
        case "sep-2322-client-request-state":
            kinds = ("echo_state", "unrelated", "no_state", "no_result_type")
            return [(f"test_mrtr_{kind}", {}) for kind in kinds]
        case scenario if scenario.startswith("auth/"):
            return [(name, {}) for name in list(tools)[:1]]
        case _:
            return []


def _required(schema: Json) -> Json:
    properties = schema.get("properties", {})
    return {name: OF_TYPE.get(properties.get(name, {}).get("type"), "x") for name in schema.get("required", [])}
