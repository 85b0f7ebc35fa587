"""What a provider answers becomes a reply: the same from three wire formats, streamed or whole."""

import json

import httpx
import pytest

from perdure.core import limits
from perdure.core.content import ModelEntry
from perdure.core.digests import body_of, canonical
from perdure.core.errors import ModelError
from tests.models.conftest import Opener
from tests.models.talk import DOTTED, ask, result, user
from tests.models.wire import Said, Wire

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALL_FORMATS = pytest.mark.parametrize("wire_format", ["chat", "responses", "messages"])
THINKING_FORMATS = pytest.mark.parametrize("wire_format", ["responses", "messages"])
"""Chat Completions has no reasoning items."""
BOTH_WAYS = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@ALL_FORMATS
@BOTH_WAYS
async def test_text_comes_with_its_usage_and_price(opened: Opener, wire: Wire, wire_format: str, stream: bool) -> None:
    wire.prepare(Said("Your order left today.", input_tokens=1000, cached_tokens=200, output_tokens=100))
    deltas: list[str] = []

    reply = await ask(opened(wire_format, stream=stream), user("Where is it?"), deltas=deltas)

    assert (reply.text, reply.calls, reply.finish) == ("Your order left today.", (), "stop")
    assert "".join(deltas) == ("Your order left today." if stream else "")
    assert not stream or len(deltas) > 1
    usage = reply.usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (1000, 200, 100)
    assert 0 < usage.cost_usd < 0.1
    assert len(wire.received) == 1
    assert bool(wire.last.get("stream")) is stream


async def test_a_streamed_chat_asks_for_its_usage(opened: Opener, wire: Wire) -> None:
    """The service sends none unasked, and neither does this server."""
    wire.prepare(Said("Yes."), Said("Yes."))
    await ask(opened("chat"), user("Are you there?"))
    assert wire.last["stream_options"] == {"include_usage": True}

    async with httpx.AsyncClient(base_url=wire.url, headers={"authorization": "Bearer k"}) as client:
        unasked = {name: value for name, value in wire.last.items() if name != "stream_options"}
        answered = await client.post("/v1/chat/completions", json=unasked)
    assert "Yes." in answered.text
    assert "usage" not in answered.text


@ALL_FORMATS
@BOTH_WAYS
async def test_parallel_calls_keep_their_order(opened: Opener, wire: Wire, wire_format: str, stream: bool) -> None:
    asked = [(f"call_{n}", "get_order", json.dumps({"order_id": f"A-{n}"})) for n in range(4)]
    wire.prepare(Said("Let me look.", calls=tuple(asked)))

    reply = await ask(opened(wire_format, stream=stream), user("All four, please"))

    assert [call.call_id for call in reply.calls] == ["call_0", "call_1", "call_2", "call_3"]
    assert [call.arguments for call in reply.calls] == [{"order_id": f"A-{n}"} for n in range(4)]
    assert reply.text == "Let me look."


@ALL_FORMATS
@BOTH_WAYS
async def test_a_tool_is_known_by_its_own_name(opened: Opener, wire: Wire, wire_format: str, stream: bool) -> None:
    model = opened(wire_format, stream=stream)
    wire.prepare(Said("What do you mean?"))
    await ask(model, user("list"), tools=[DOTTED])
    (tool,) = wire.last["tools"]
    sent = tool.get("function", tool)["name"]
    wire.prepare(Said(calls=(("c", sent, "{}"),)))

    reply = await ask(model, user("list"), tools=[DOTTED])

    assert sent.startswith("shop_orders_list_")
    assert reply.calls[0].tool == "shop.orders/list"


@THINKING_FORMATS
@BOTH_WAYS
async def test_thinking_goes_back_with_its_signature(
    opened: Opener, wire: Wire, wire_format: str, stream: bool
) -> None:
    model = opened(wire_format, stream=stream)
    calls = (("c1", "get_order", '{"order_id": "A-1"}'),)
    wire.prepare(Said(thinking="Which order is it?", signature="c2lnbmVk", calls=calls), Said("It left."))
    first = ModelEntry(reply=await ask(model, user("Where is it?")))
    restored = ModelEntry.model_validate_json(canonical(body_of(first)))  # as the store gives it back

    await ask(model, user("Where is it?"), restored, result("c1", "sent"))

    if wire_format == "messages":
        assert wire.last["messages"][1]["content"] == [
            {"type": "thinking", "thinking": "Which order is it?", "signature": "c2lnbmVk"},
            {"type": "tool_use", "id": "c1", "name": "get_order", "input": {"order_id": "A-1"}},
        ]
    else:
        reasoning = wire.last["input"][1]
        assert (reasoning["type"], reasoning["encrypted_content"]) == ("reasoning", "c2lnbmVk")
        assert reasoning["summary"] == [{"type": "summary_text", "text": "Which order is it?"}]
        # Nothing of the conversation is left with the provider: a task may outlive what it keeps.
        assert wire.last["store"] is False
        assert "previous_response_id" not in wire.last


@ALL_FORMATS
@BOTH_WAYS
async def test_a_reply_cut_for_length_says_so(opened: Opener, wire: Wire, wire_format: str, stream: bool) -> None:
    wire.prepare(Said("And then the", finish="length"))
    reply = await ask(opened(wire_format, stream=stream), user("Tell me"))
    assert (reply.text, reply.finish) == ("And then the", "length")


@ALL_FORMATS
@BOTH_WAYS
async def test_a_refusal_says_so(opened: Opener, wire: Wire, wire_format: str, stream: bool) -> None:
    if wire_format == "messages":
        wire.prepare(Said("I cannot help with that.", finish="refusal"))
    else:
        wire.prepare(Said(refusal="I cannot help with that."))
    reply = await ask(opened(wire_format, stream=stream), user("Do it"))
    assert (reply.text, reply.finish) == ("I cannot help with that.", "refusal")


@pytest.mark.parametrize(
    ("wire_format", "thinking"),
    [("chat", ""), ("responses", ""), ("responses", "Hm."), ("messages", ""), ("messages", "Hm.")],
)
@BOTH_WAYS
async def test_an_empty_reply_is_worth_another_attempt(
    opened: Opener, wire: Wire, wire_format: str, stream: bool, thinking: str
) -> None:
    wire.prepare(Said(thinking=thinking, signature="cw" if thinking else ""))
    with pytest.raises(ModelError, match="empty reply") as caught:
        await ask(opened(wire_format, stream=stream), user("Hello?"))
    assert caught.value.retryable
    assert len(wire.received) == 1


@pytest.mark.parametrize(
    ("wire_format", "stream"),
    # Anthropic's whole form holds arguments as an object, which cannot be malformed.
    [("chat", True), ("chat", False), ("responses", True), ("responses", False), ("messages", True)],
)
@pytest.mark.parametrize("written", ['{"order_id": "A-', '["A-1"]', '{"order_id": NaN}', '{"n": 1e999}'])
async def test_b12_malformed_arguments_are_kept_apart_and_given_back_as_json(
    opened: Opener, wire: Wire, wire_format: str, stream: bool, written: str
) -> None:
    model = opened(wire_format, stream=stream)
    wire.prepare(Said(calls=(("c1", "get_order", written),)), Said("Sorry."))

    reply = await ask(model, user("Where is it?"))

    (call,) = reply.calls
    assert (call.arguments, call.malformed) == (None, written)
    canonical(body_of(reply))  # what is stored is JSON

    await ask(model, user("Where is it?"), ModelEntry(reply=reply), result("c1", "not a JSON object", "error"))
    sent = wire.received[-1].text
    assert json.loads(sent, parse_constant=pytest.fail)
    assert "malformed_arguments" in sent


@ALL_FORMATS
@BOTH_WAYS
async def test_b15_what_no_database_takes_is_replaced(
    opened: Opener, wire: Wire, wire_format: str, stream: bool
) -> None:
    deltas: list[str] = []
    wire.prepare(Said("a\x00b", calls=(("c1", "get_order", '{"order_id": "x\\u0000\\ud800"}'),)))
    reply = await ask(opened(wire_format, stream=stream), user("nul \x00 and \ud800"), deltas=deltas)
    assert reply.text == "a\ufffdb"
    assert reply.calls[0].arguments == {"order_id": "x\ufffd\ufffd"}
    assert "\x00" not in "".join(deltas)
    assert b"\x00" not in canonical(body_of(reply))
    assert "nul \ufffd and \ufffd" in wire.received[-1].text


@THINKING_FORMATS
@BOTH_WAYS
async def test_a_native_form_that_is_too_large_is_dropped(
    opened: Opener, wire: Wire, wire_format: str, stream: bool
) -> None:
    model = opened(wire_format, stream=stream)
    signature = "c2ln" * (limits.NATIVE_BYTES_MAX // 4)
    calls = (("c1", "get_order", '{"order_id": "A-1"}'),)
    wire.prepare(Said(thinking="Hm.", signature=signature, calls=calls), Said("Fine."))

    reply = await ask(model, user("Where is it?"))

    assert (reply.native, reply.native_format) == (None, "")
    await ask(model, user("Where is it?"), ModelEntry(reply=reply), result("c1"))
    assert "A-1" in wire.received[-1].text
    assert "c2lnc2ln" not in wire.received[-1].text
