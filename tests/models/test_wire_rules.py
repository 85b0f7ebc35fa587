"""The server of these tests refuses what the real services refuse, and takes what they take."""

import json
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from perdure.core.content import ModelEntry, ModelReply
from tests.models.conftest import Opener
from tests.models.talk import ask, asked, result, user
from tests.models.wire import Said, Wire

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
HEADERS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}

CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c1", "name": "get_order", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
SAYING = {"type": "text", "text": "Here it is"}
HELLO = {"role": "user", "content": "Hello"}
CALLED = {"type": "function_call", "call_id": "c1", "name": "get_order", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "done"}

GOOD: dict[str, dict[str, Any]] = {
    CHAT: {
        "model": "gpt-4.1",
        "messages": [HELLO, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c1"}],
    },
    RESPONSES: {"model": "gpt-5", "input": [HELLO, CALLED, OUTPUT]},
    MESSAGES: {
        "model": "claude-haiku-5-5",
        "max_tokens": 100,
        "messages": [HELLO, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT, SAYING]}],
    },
}


def post(wire: Wire, path: str, body: dict[str, Any], headers: dict[str, str] = HEADERS) -> tuple[int, dict[str, Any]]:
    # Not by httpx, which loads certificates for each client.
    with closing(HTTPConnection(wire.url.removeprefix("http://"), timeout=10)) as connection:
        connection.request("POST", path, json.dumps(body), {**headers, "content-type": "application/json"})
        answered = connection.getresponse()
        return answered.status, json.load(answered)


def dialogue(*blocks_by_turn: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a change of Anthropic's messages: a greeting, then these turns, the model's first."""
    roles = ("assistant", "user")
    turns = [{"role": roles[number % 2], "content": blocks} for number, blocks in enumerate(blocks_by_turn)]
    return {"messages": [HELLO, *turns]}


@pytest.mark.parametrize("path", GOOD)
def test_a_good_request_is_answered(wire: Wire, path: str) -> None:
    wire.prepare(Said("Yes."))
    status, body = post(wire, path, GOOD[path])
    assert (status, "Yes." in str(body)) == (200, True)


@pytest.mark.parametrize("path", GOOD)
@pytest.mark.parametrize(
    ("change", "status"),
    [({"model": None}, 400), ({"model": "gpt-0"}, 404), ({"surprise": 1}, 400)],
    ids=["no model", "unknown model", "unknown field"],
)
def test_a_model_is_named_and_no_field_invented(wire: Wire, path: str, change: dict[str, Any], status: int) -> None:
    body = {name: value for name, value in {**GOOD[path], **change}.items() if value is not None}
    wire.prepare(Said("Yes."))

    answered, error = post(wire, path, body)

    assert answered == status
    if path == MESSAGES:
        assert error["error"]["type"] == ("not_found_error" if status == 404 else "invalid_request_error")
    else:
        codes = {"model": "model_not_found" if status == 404 else "missing_required_parameter"}
        assert error["error"]["type"] == "invalid_request_error"
        assert error["error"]["code"] == codes.get(next(iter(change)), "unknown_parameter")
    assert len(wire.prepared) == 1, "a request that is refused uses up no answer"


@pytest.mark.parametrize("path", GOOD)
def test_a_key_is_asked_for(wire: Wire, path: str) -> None:
    status, error = post(wire, path, GOOD[path], {})
    assert status == 401
    if path == MESSAGES:
        assert error["error"]["type"] == "authentication_error"
    else:
        assert error["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("path", "change", "param"),
    [
        (CHAT, {"stream_options": {"include_usage": True}}, "stream_options"),
        (CHAT, {"messages": [HELLO, {"role": "tool", "tool_call_id": "c1"}]}, "messages.[1].role"),
        (CHAT, {"messages": [{"role": "assistant", "tool_calls": [CALL]}, HELLO]}, "messages.[1].role"),
        (CHAT, {"messages": [{"role": "assistant", "tool_calls": [CALL]}]}, "messages"),
        (CHAT, {"messages": [HELLO, {"role": "assistant"}]}, "messages.[1].content"),
        (
            CHAT,
            {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "id": "x" * 41}]}]},
            "messages[0].tool_calls[0].id",
        ),
        (CHAT, {"tools": [{"function": {"name": "a.b"}}]}, "tools[0].function.name"),
        (RESPONSES, {"input": [HELLO, OUTPUT]}, "input"),
        (RESPONSES, {"input": [HELLO, CALLED]}, "input"),
        (RESPONSES, {"input": [{**CALLED, "call_id": "x" * 65}]}, "input[0].call_id"),
        (RESPONSES, {"input": [{**CALLED, "id": "c1"}, OUTPUT]}, "input[0].id"),
        (RESPONSES, {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}, HELLO]}, "input"),
        (RESPONSES, {"tools": [{"name": "a.b"}]}, "tools[0].name"),
    ],
)
def test_openai_refuses_and_names_the_parameter(wire: Wire, path: str, change: dict[str, Any], param: str) -> None:
    wire.prepare(Said("Yes."))
    status, error = post(wire, path, {**GOOD[path], **change})
    assert status in {400, 404}
    assert error["error"]["type"] == "invalid_request_error"
    assert error["error"]["param"] == param


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "messages"),
        ({"messages": [HELLO, {"role": "tool", "content": "done"}]}, "messages.1.role"),
        (dialogue([SAYING], [RESULT]), "messages.2.content.0"),
        (dialogue([USE], [SAYING]), "messages.1"),
        (dialogue([USE]), "messages"),
        (dialogue([USE], [SAYING, RESULT]), "messages.2"),
        (dialogue([USE], [RESULT], [USE], [RESULT]), "messages.3"),
        (dialogue([{**USE, "id": "a.b"}]), "messages.1"),
        (dialogue([{"type": "text", "text": " "}], [SAYING]), "messages.1.content.0.text"),
        (dialogue([{"type": "thinking", "thinking": "Hm."}], [SAYING]), "messages.1.content.0.thinking.signature"),
        ({"tools": [{"name": "a.b", "input_schema": {"type": "object"}}]}, "tools.0.custom.name"),
    ],
)
def test_anthropic_refuses_and_names_the_place(wire: Wire, change: dict[str, Any], named: str) -> None:
    wire.prepare(Said("Yes."))
    status, error = post(wire, MESSAGES, {**GOOD[MESSAGES], **change})
    assert (status, error["type"], error["error"]["type"]) == (400, "error", "invalid_request_error")
    assert error["error"]["message"].startswith(f"{named}:")


def test_anthropic_requires_a_bound_on_the_reply_and_its_version(wire: Wire) -> None:
    unbound = {name: value for name, value in GOOD[MESSAGES].items() if name != "max_tokens"}
    assert post(wire, MESSAGES, unbound)[0] == 400
    assert post(wire, MESSAGES, GOOD[MESSAGES], {"x-api-key": "k"})[0] == 400


def test_anthropic_joins_what_one_side_says_twice(wire: Wire) -> None:
    wire.prepare(Said("Yes."))
    assert post(wire, MESSAGES, {**GOOD[MESSAGES], "messages": [HELLO, HELLO]})[0] == 200


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("wire_format", ["chat", "responses", "messages"])
async def test_a_calls_id_of_another_origin_fits_every_service(opened: Opener, wire: Wire, wire_format: str) -> None:
    long = "call_" + "0123456789abcdef" * 4
    reply = ModelReply(calls=(asked(long), asked("b" * 41)))
    wire.prepare(Said("Yes."))
    answer = await ask(opened(wire_format), user("Hello"), ModelEntry(reply=reply), result(long), result("b" * 41))
    assert answer.text == "Yes."
