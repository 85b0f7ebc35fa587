"""The harness by itself: what a client is told, what it is asked to do, and how two verdicts are compared."""

import contextlib
import json
from collections.abc import AsyncIterator, Mapping

import pytest

from tests.mcp_conformance.driver import Json, RefusedError, Situation, drive, situation
from tests.mcp_conformance.kit_run import Judged, verdict_of
from tests.mcp_conformance.run import kept_baseline

TOOL: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "o": {"type": "boolean"}},
    "required": ["n", "s"],
}


class Noted:
    """A client that notes what it is asked to do."""

    def __init__(self, tools: Mapping[str, Json], refused: str = "") -> None:
        self.calls: list[tuple[str, Json]] = []
        self._tools = tools
        self._refused = refused

    async def tools(self) -> Mapping[str, Json]:
        return self._tools

    async def call(self, name: str, arguments: Json) -> None:
        self.calls.append((name, arguments))
        if name == self._refused:
            raise RefusedError(name)

    @contextlib.asynccontextmanager
    async def opened(self, _: Situation) -> AsyncIterator["Noted"]:
        yield self


def about(scenario: str, version: str = "2026-07-28", **context: object) -> Situation:
    return Situation("http://localhost/mcp", scenario, version, context)


async def test_each_scenario_is_asked_of_a_client() -> None:
    asked: list[tuple[Situation, Mapping[str, Json], list[tuple[str, Json]]]] = [
        (about("initialize"), {}, []),
        (about("tools_call"), {"add_numbers": TOOL}, [("add_numbers", {"a": 5, "b": 3})]),
        (about("http-invalid-tool-headers"), {"valid": TOOL}, [("valid", {"n": 0, "s": "x"})]),
        (
            about("http-custom-headers", toolCalls=[{"name": "t", "arguments": {"a": None}}, {"name": "gone"}]),
            {"t": TOOL},
            [("t", {"a": None})],
        ),
        (
            about("json-schema-2020-12-preservation"),
            {"json_schema_2020_12_tool": TOOL},
            [("json_schema_echo", {"schema": TOOL})],
        ),
        (about("auth/metadata-default"), {"first": TOOL, "second": TOOL}, [("first", {})]),
        (about("a-scenario-of-a-later-kit"), {"first": TOOL}, []),
    ]
    for given, tools, calls in asked:
        client = Noted(tools)
        await drive(given, client.opened)
        assert client.calls == calls, given.scenario


async def test_a_refused_call_is_an_error_where_the_scenario_does_not_want_it() -> None:
    refused = Noted({"add_numbers": TOOL}, refused="add_numbers")
    with pytest.raises(RefusedError):
        await drive(about("tools_call"), refused.opened)
    two = Noted({"a": TOOL, "b": TOOL}, refused="a")
    await drive(about("http-invalid-tool-headers"), two.opened)
    assert [name for name, _ in two.calls] == ["a", "b"]


def test_what_the_kit_says_is_read() -> None:
    environment = {
        "MCP_CONFORMANCE_SCENARIO": "tools_call",
        "MCP_CONFORMANCE_PROTOCOL_VERSION": "2025-11-25",
        "MCP_CONFORMANCE_CONTEXT": json.dumps({"client_id": "me"}),
    }
    given = situation(["client", "http://localhost:1/mcp"], environment)
    assert given == Situation("http://localhost:1/mcp", "tools_call", "2025-11-25", {"client_id": "me"})
    assert given.handshake_only
    assert not about("tools_call").handshake_only
    assert about("json-schema-ref-no-deref").handshake_only


def test_a_form_is_answered_with_what_it_proposes() -> None:
    form = {"properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}}
    assert about("elicitation-sep1034-client-defaults").answer(form) == {"a": "x"}
    assert about("sep-2322-client-request-state").answer(form) == {"confirmed": True}


def test_only_what_the_other_does_not_have_is_beyond_it() -> None:
    theirs = verdict_of([Judged("a", 3, ("x",), (), True), Judged("b", 1, (), ("w",), False)])
    ours = verdict_of([Judged("a", 2, ("x", "y"), (), False), Judged("b", 2, (), ("w",), False)])
    assert ours.beyond(theirs) == ["failures: a:y", "errors: a"]
    assert theirs.beyond(theirs) == []


def test_the_baseline_fails_in_extensions_only() -> None:
    """What the protocol's revisions require the bare client does; what it lacks is optional by definition."""
    kept = kept_baseline()
    assert {each.partition(":")[0] for each in kept.failures} == {"auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer"}
    assert (kept.scenarios, kept.passed, len(kept.failures), kept.warnings) == (48, 482, 9, ())
