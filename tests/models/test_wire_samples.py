"""What the vendors document, and what they describe but do not show, replayed byte for byte.

The server of the other tests builds its answers for each request; these are files. `samples/` holds the documentation's
own examples, `written/` what is written here in the same shape; the README of each says which is which.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perdure.core.content import Finish, ModelEntry, ModelReply
from perdure.core.errors import ModelError
from tests.models.conftest import Opener
from tests.models.talk import ask, result, user
from tests.models.wire import Replayed, Said, Wire

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOLDERS = tuple(Path(__file__).parent / folder for folder in ("samples", "written"))


@dataclass(frozen=True)
class Recorded:
    """What the adapter makes of a sample.

    `tokens` are input, cached, output; `kept` must go back with the next request.
    """

    reply_id: str
    tokens: tuple[int, int, int]
    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    finish: Finish = "stop"
    reasoning_tokens: int = 0
    kept: tuple[str, ...] = ()


HELLO = "Hello! How can I assist you today?"

DOCUMENTED = {
    "chat_text.json": Recorded("chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", (19, 0, 10), HELLO),
    "chat_tool.json": Recorded(
        "chatcmpl-abc123", (82, 0, 17), calls=(("call_abc123", "get_current_weather", {"location": "Boston, MA"}),)
    ),
    "chat_text.sse": Recorded("chatcmpl-123", (19, 0, 10), HELLO),
    "responses_text.json": Recorded(
        "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
        (36, 0, 87),
        "In a peaceful grove beneath a silver moon, a unicorn named Lumina discovered a hidden pool that reflected the "
        "stars. As she dipped her horn into the water, the pool began to shimmer, revealing a pathway to a magical "
        "realm of endless night skies. Filled with wonder, Lumina whispered a wish for all who dream to find their own "
        "hidden magic, and as she glanced back, her hoofprints sparkled like stardust.",
    ),
    "responses_tool.json": Recorded(
        "resp_67ca09c5efe0819096d0511c92b8c890096610f474011cc0",
        (291, 0, 23),
        calls=(
            ("call_unLAR8MvFNptuiZK6K6HCy5k", "get_current_weather", {"location": "Boston, MA", "unit": "celsius"}),
        ),
    ),
    "responses_reasoning.json": Recorded(
        "resp_67ccd7eca01881908ff0b5146584e408072912b2993db808",
        (81, 0, 1035),
        "The classic tongue twister...",
        reasoning_tokens=832,
    ),
    "responses_text.sse": Recorded(
        "resp_67c9fdcecf488190bdd9a0409de3a1ec07b8b0ad4e5eb654", (37, 0, 11), "Hi there! How can I assist you today?"
    ),
    "messages_text.json": Recorded("msg_01XFDUDYJgAACzvnptvVoYEL", (12, 0, 6), "Hello!"),
    "messages_text.sse": Recorded("msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY", (25, 0, 15), "Hello!"),
    "messages_tool.sse": Recorded(
        "msg_014p7gG3wDgGV9EUtLvnow3U",
        (472, 0, 89),
        "Okay, let's check the weather for San Francisco, CA:",
        calls=(("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", {"location": "San Francisco, CA"}),),
    ),
}
WRITTEN = {
    "chat_tool.sse": Recorded(
        "chatcmpl-written-tool",
        (57, 0, 21),
        calls=(("call_written_parcel", "track_parcel", {"parcel": "Zürich-7", "deep": True}),),
    ),
    "chat_tools.sse": Recorded(
        "chatcmpl-written-tools",
        (163, 0, 71),
        calls=(
            ("call_written_stock", "count_stock", {"shelf": "B-12", "kind": "jar"}),
            ("call_written_shift", "who_works", {"day": "Thursday", "hour": 9}),
            ("call_written_bell", "ring_bell", {}),
        ),
    ),
    "chat_refusal.sse": Recorded(
        "chatcmpl-written-refusal", (33, 0, 9), "That door stays shut: ask the keeper.", finish="refusal"
    ),
    "chat_length.sse": Recorded("chatcmpl-written-length", (28, 0, 6), "The list begins with apri", finish="length"),
    "chat_cached.json": Recorded("chatcmpl-written-cached", (2075, 1920, 13), "The lamp is in the third crate."),
    "responses_tool.sse": Recorded(
        "resp_written_tool",
        (91, 0, 24),
        calls=(("call_written_ferry", "next_ferry", {"pier": "Ærø north", "bikes": 2}),),
        kept=("fc_written_tool",),
    ),
    "responses_reasoning.sse": Recorded(
        "resp_written_reasoning",
        (72, 0, 311),
        calls=(("call_written_sum", "book_seats", {"seats": 17}),),
        reasoning_tokens=256,
        kept=("rs_written_reasoning", "d3JpdHRlbi1oZXJlLWZpbmlzaGVk", "Two piers: the north one sails first."),
    ),
    "responses_encrypted.json": Recorded(
        "resp_written_encrypted",
        (1290, 1152, 93),
        "Four boats are out.",
        reasoning_tokens=64,
        kept=("rs_written_encrypted", "d3JpdHRlbi1oZXJlLXdob2xl"),
    ),
    "messages_thought.sse": Recorded(
        "msg_written_thought",
        (51, 0, 138),
        "Fill it twice:\n\n- first for four cups,\n- then for two “small” ones — that’s all.",
        kept=("The kettle holds 1½ litres; six cups need it twice.", "d3JpdHRlbi9oZXJlK3NpZ25lZA=="),
    ),
    "messages_refusal.sse": Recorded(
        "msg_written_refusal", (26, 0, 0), "Nobody gets the key to this cellar.", finish="refusal"
    ),
    "messages_caller.sse": Recorded(
        "msg_written_caller",
        (402, 0, 58),
        "I will ask the harbour.",
        calls=(("toolu_written_caller", "ask_harbour", {"berth": "Tromsø 4"}),),
    ),
    "messages_tool.json": Recorded(
        "msg_written_tool", (588, 0, 47), calls=(("toolu_written_tool", "weigh_fish", {"crate": "K-3", "wet": False}),)
    ),
    "messages_cached.json": Recorded(
        "msg_written_cached",
        # Anthropic counts what was written to the cache and read from it apart: 5 + 310 + 1204.
        (1519, 1204, 16),
        "Crate K-3 weighs what it did before.",
    ),
}
RECORDED = {**DOCUMENTED, **WRITTEN}
FAILING = {"messages_thinking.sse", "messages_error.sse"}
CUT_IN_THE_QUICK_TESTS = {"chat_tool.sse", "responses_text.sse", "messages_thought.sse"}
"""A stream of each format, so that a quick run sees a cut; the slow tests cut them all."""


PIECES = [
    pytest.param(
        name,
        piece_bytes,
        marks=pytest.mark.slow if piece_bytes == 1 or (piece_bytes and name not in CUT_IN_THE_QUICK_TESTS) else (),
    )
    for name in RECORDED
    for piece_bytes in (0, 7, 1)
]
"""Pieces of seven bytes end within a field's name, an escape, a character, and between the two ends of an event."""

SENT_BACK = [
    pytest.param(name, marks=() if name in WRITTEN and not name.endswith("cached.json") else pytest.mark.slow)
    for name in RECORDED
]
"""What is written here holds what is hard to send back; the documented texts and calls are in it too."""

CUTS = pytest.mark.parametrize("piece_bytes", [0, *(pytest.param(size, marks=pytest.mark.slow) for size in (7, 1))])


def _bytes(name: str) -> bytes:
    (path,) = (folder / name for folder in FOLDERS if (folder / name).exists())
    return path.read_bytes()


def _reasoning_tokens(reply: ModelReply) -> int:
    assert isinstance(reply.native, dict)
    usage = reply.native["usage"]
    assert isinstance(usage, dict)
    tokens = usage["output_reasoning_tokens"]
    assert isinstance(tokens, int)
    return tokens


async def test_every_sample_is_replayed_and_every_origin_named() -> None:
    for folder, replayed in zip(FOLDERS, (set(DOCUMENTED) | FAILING, set(WRITTEN)), strict=True):
        assert {path.name for path in folder.iterdir()} - {"README.md"} == replayed
        origins = (folder / "README.md").read_text()
        assert not [name for name in replayed if f"| `{name}` |" not in origins]


@pytest.mark.parametrize(("name", "piece_bytes"), PIECES)
async def test_a_sample_is_recorded_as_it_says(opened: Opener, wire: Wire, name: str, piece_bytes: int) -> None:
    expected, stream = RECORDED[name], name.endswith(".sse")
    model = opened(name.partition("_")[0], stream=stream)
    wire.prepare(Replayed(_bytes(name), piece_bytes))
    deltas: list[str] = []

    reply = await ask(model, user("Hello"), deltas=deltas)

    assert bool(wire.last.get("stream")) is stream
    assert reply.text == expected.text
    assert reply.finish == expected.finish
    assert tuple((call.call_id, call.tool, call.arguments) for call in reply.calls) == expected.calls
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens) == expected.tokens
    assert _reasoning_tokens(reply) == expected.reasoning_tokens
    assert isinstance(reply.native, dict)
    assert reply.native["provider_response_id"] == expected.reply_id
    # A refusal's words come beside the text, so that nobody sees them as one while they are written.
    assert "".join(deltas) == (reply.text if stream and expected.finish != "refusal" else "")


@pytest.mark.parametrize("name", SENT_BACK)
async def test_a_sample_goes_back_in_a_request_that_the_service_takes(opened: Opener, wire: Wire, name: str) -> None:
    expected = RECORDED[name]
    model = opened(name.partition("_")[0], stream=name.endswith(".sse"))
    wire.prepare(Replayed(_bytes(name)), Said("I see."))
    reply = await ask(model, user("Hello"))
    answers = [result(call.call_id, "sunny", tool=call.tool) for call in reply.calls]

    again = await ask(model, user("Hello"), ModelEntry(reply=reply), *answers, user("Go on"))

    assert again.text == "I see."
    sent = wire.received[-1].text
    for call_id, tool, _ in expected.calls:
        assert sent.count(f'"{call_id}"') == 2, "a call and its result"
        assert f'"{tool}"' in sent
    for kept in expected.kept:
        assert kept in sent


@CUTS
async def test_a_stream_without_the_usage_that_its_format_requires_is_another_attempt(
    opened: Opener, wire: Wire, piece_bytes: int
) -> None:
    """Such as the documented example of thinking: the provider's fault, which must not look like a defect of ours."""
    wire.prepare(Replayed(_bytes("messages_thinking.sse"), piece_bytes))
    with pytest.raises(ModelError, match="not one that its format allows") as caught:
        await ask(opened("messages"), user("Hello"))
    assert caught.value.retryable


@CUTS
async def test_an_error_inside_a_stream_is_what_it_is_outside(opened: Opener, wire: Wire, piece_bytes: int) -> None:
    begun = _bytes("messages_text.sse").partition(b"event: content_block_stop")[0]
    wire.prepare(Replayed(begun + _bytes("messages_error.sse") + b"\n", piece_bytes))
    deltas: list[str] = []
    with pytest.raises(ModelError, match="HTTP 529: Overloaded") as caught:
        await ask(opened("messages"), user("Hello"), deltas=deltas)
    assert caught.value.retryable
    assert "".join(deltas) == "Hello!"
