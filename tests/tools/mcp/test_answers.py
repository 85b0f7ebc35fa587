"""What a server's answers mean: errors of the protocol, checks, contents, and a list of tools that changes."""

import asyncio
import base64
from typing import Any

import mcp_types as types
import pytest
from opentelemetry import trace

from perdure.core.artifacts import WithFiles
from perdure.core.errors import BegunError, ConfigurationError, ToolError
from perdure.core.ports import Check
from perdure.tools.mcp import contents
from perdure.tools.mcp.checks import read_check
from tests.tools.mcp.shop import WITHIN_S, Shop, call, named


@pytest.mark.slow
async def test_errors_before_a_call_say_that_it_did_not_begin_and_others_say_nothing(shop: Shop) -> None:
    async with shop.odd("codes").opened() as tools:
        fail = named(tools)["fail"]
        for code in (-32020, -32021):
            with pytest.raises(ToolError, match=f"Not begun: the MCP server 'odd' refused it.* failed with {code}"):
                await fail.invoke({"code": code}, call())
        for code in (-32601, -32602, -32603, -32600, -32700, -32000, 7):
            with pytest.raises(BegunError, match=f"failed with {code}"):
                await fail.invoke({"code": code}, call())


@pytest.mark.slow
async def test_a_tool_that_changes_while_it_is_connected_refuses_the_next_call(shop: Shop) -> None:
    async with shop.odd("changing").opened() as tools:
        grow = named(tools)["grow"]
        registered = grow.spec.schema_digest
        assert await grow.ready(registered) == ""
        assert await grow.invoke({}, call()) == "ok"
        async with asyncio.timeout(WITHIN_S):
            while not await grow.ready(registered):  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # the server's word comes on a stream of its own
        assert "the schema or class of odd.grow changed at its server" in await grow.ready(registered)
        assert await grow.ready(None) == "", "a task from before digests goes on"


@pytest.mark.slow
async def test_key_and_trace_go_along_with_a_call(shop: Shop) -> None:
    within = trace.SpanContext(trace_id=0xABC, span_id=0xDEF, is_remote=False, trace_flags=trace.TraceFlags(1))
    async with shop.server(tools=("look_up",)).opened() as tools:
        with trace.use_span(trace.NonRecordingSpan(within)):
            await named(tools)["look_up"].invoke({"word": "w"}, call("t/7/1"))
        await named(tools)["look_up"].invoke({"word": "w"}, call("t/7/2"))
    traced, plain = shop.told("calls")
    assert (traced["key"], plain["key"]) == ("t/7/1", "t/7/2")
    assert ("traceparent" in traced["meta"], "traceparent" in plain["meta"]) == (True, False)


# --- checks -----------------------------------------------------------------------------------------------------


def answer(structured: Any = None, text: str | None = None, *, is_error: bool = False) -> types.CallToolResult:
    content: list[types.ContentBlock] = [] if text is None else [types.TextContent(text=text)]
    return types.CallToolResult(content=content, structured_content=structured, is_error=is_error)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (answer({"happened": True, "result": {"id": 1}}), Check.happened({"id": 1})),
        (answer({"happened": True}), Check.happened(None)),
        (answer({"happened": False, "final": True}), Check.never()),
        (answer({"happened": False}), Check.not_yet()),
        (answer({"happened": False, "final": "yes"}), Check.not_yet()),
        (answer({"result": {"happened": False, "final": True}}), Check.never()),
        (answer(text='{"happened": true, "result": "r"}'), Check.happened("r")),
    ],
)
def test_a_check_says_what_became_of_a_key(given: types.CallToolResult, read: Check) -> None:
    assert read_check("find", given) == read


@pytest.mark.parametrize(
    "given",
    [
        answer({"happened": "yes"}),
        answer({"found": True}),
        answer(["happened"]),
        answer(text="it happened"),
        answer({"happened": True}, is_error=True),
        answer(),
    ],
)
def test_a_check_that_says_something_else_says_nothing(given: types.CallToolResult) -> None:
    with pytest.raises(ConfigurationError, match="as a check it must answer"):
        read_check("find", given)


# --- contents ---------------------------------------------------------------------------------------------------

IMAGE = types.ImageContent(data=base64.b64encode(b"image").decode(), mime_type="image/png")


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (answer(text="plain"), "plain"),
        (answer({"a": 1}, '{"a": 1}'), {"a": 1}),
        (answer({"result": "x"}, "x"), "x"),
        (answer({"result": [1]}, "[1]"), {"result": [1]}),
        (answer({"a": 1}, "and so on"), '{"a": 1}\nand so on'),
        (answer(), None),
        (answer(0, "0"), 0),
    ],
)
def test_what_is_said_twice_is_told_once(given: types.CallToolResult, value: Any) -> None:
    assert contents.returned("t", given) == value


def test_files_are_parts_and_what_is_no_base64_is_said_to_be_none() -> None:
    given = answer(text="see")
    blob = types.BlobResourceContents(uri="shop://a/b.pdf", blob=base64.b64encode(b"pdf").decode())
    given.content += [IMAGE, types.EmbeddedResource(resource=blob)]
    given.content.append(types.AudioContent(data="%%%", mime_type="audio/wav"))
    made = contents.returned("t", given)
    assert isinstance(made, WithFiles)
    assert [(file.name, file.media_type, file.data) for file in made.files] == [
        ("image-2", "image/png", b"image"),
        ("b.pdf", "application/octet-stream", b"pdf"),
    ]
    assert made.text == "see\n[audio 4 is no base64]"
    assert made.artifact is None


def test_more_files_than_are_kept_are_counted() -> None:
    given = answer()
    given.content = [IMAGE] * 18
    made = contents.returned("t", given)
    assert isinstance(made, WithFiles)
    assert (len(made.files), made.text) == (16, "[2 more files were not kept]")
