"""What a provider is sent: read from the request bodies that arrived."""

import base64
import json
from typing import Any

import pytest

from perdure.core.content import DataPart, FilePart, ModelEntry, ModelReply, ResultStatus
from perdure.core.errors import InvariantBroken, StoreBehind
from tests.models.conftest import Opener
from tests.models.talk import Blobs, ask, asked, result, said, user
from tests.models.wire import Said, Wire

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALL_FORMATS = pytest.mark.parametrize("wire_format", ["chat", "responses", "messages"])

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
IMAGE = FilePart(media_type="image/png", name="blender.png", blob="image")


def pairs(wire_format: str, body: dict[str, Any]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the ids of the calls that were sent, and (id, text) of the results, in order."""
    calls: list[str] = []
    results: list[tuple[str, str]] = []
    if wire_format == "responses":
        for item in body["input"]:
            if item.get("type") == "function_call":
                calls.append(item["call_id"])
            elif item.get("type") == "function_call_output":
                results.append((item["call_id"], item["output"]))
        return calls, results
    for message in body["messages"]:
        calls += [call["id"] for call in message.get("tool_calls", [])]
        if message["role"] == "tool":
            results.append((message["tool_call_id"], message["content"]))
        blocks = message["content"] if isinstance(message["content"], list) else []
        calls += [block["id"] for block in blocks if block["type"] == "tool_use"]
        results += [
            (block["tool_use_id"], json.dumps(block["content"])) for block in blocks if block["type"] == "tool_result"
        ]
    return calls, results


@ALL_FORMATS
async def test_b7_and_b26_every_call_has_exactly_one_result_whatever_the_ids(
    opened: Opener, wire: Wire, wire_format: str
) -> None:
    wire.prepare(Said("Done."))
    await ask(
        opened(wire_format),
        user("Both"),
        said("", asked("c", order_id="1"), asked("c", order_id="2")),
        result("c", "first"),
        result("c", "second"),
        said("", asked("c", order_id="3"), asked("functions.get_order:0", order_id="4"), asked("", order_id="5")),
        user("said meanwhile"),
        result("functions.get_order:0", "fourth"),
        result("c", "third"),
    )
    calls, results = pairs(wire_format, wire.last)
    assert len(calls) == len(set(calls)) == 5
    assert [call_id for call_id, _ in results] == calls
    texts = [text for _, text in results]
    for text, word in zip(texts, ["first", "second", "third", "fourth", "OUTCOME UNKNOWN"], strict=True):
        assert word in text


@ALL_FORMATS
async def test_an_id_that_the_provider_gave_twice_is_made_unique_in_its_own_form_too(
    opened: Opener, wire: Wire, wire_format: str
) -> None:
    model = opened(wire_format)
    wire.prepare(*(Said(calls=(("same", "get_order", '{"order_id": "1"}'),)) for _ in range(2)), Said("Done."))
    first = ModelEntry(reply=await ask(model, user("a")))
    second = ModelEntry(reply=await ask(model, user("a"), first, result("same", "one")))
    await ask(model, user("a"), first, result("same", "one"), second, result("same", "two"))
    calls, results = pairs(wire_format, wire.last)
    assert calls == ["same", "same_2"]
    assert [call_id for call_id, _ in results] == calls


@ALL_FORMATS
@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("error", ["Error: the reason"]),
        ("unknown", ["OUTCOME UNKNOWN", "Do not make it again", "the reason"]),
        ("not_begun", ["NOT BEGUN", "no effect", "the reason"]),
    ],
)
async def test_a_result_that_is_not_ok_says_what_it_is(
    opened: Opener, wire: Wire, wire_format: str, status: ResultStatus, words: list[str]
) -> None:
    wire.prepare(Said("I see."))
    await ask(opened(wire_format), user("Do it"), said("", asked("c1")), result("c1", "the reason", status))
    (sent,) = [text for _, text in pairs(wire_format, wire.last)[1]]
    for word in words:
        assert word in sent


@ALL_FORMATS
async def test_an_image_arrives_as_base64(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Said("It is cracked."))
    await ask(opened(wire_format), user("Look:", IMAGE), blobs=Blobs(image=PNG))
    encoded = base64.b64encode(PNG).decode()
    if wire_format == "messages":
        assert wire.last["messages"][0]["content"][1]["source"] == {
            "type": "base64",
            "media_type": "image/png",
            "data": encoded,
        }
    elif wire_format == "chat":
        image = wire.last["messages"][1]["content"][1]
        assert image == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}}
    else:
        image = wire.last["input"][0]["content"][1]
        assert (image["type"], image["image_url"]) == ("input_image", f"data:image/png;base64,{encoded}")


@ALL_FORMATS
async def test_an_image_by_url_is_left_to_the_provider(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Said("Nice."))
    await ask(opened(wire_format), user(FilePart(media_type="image/png", url="https://example.org/a.png")))
    assert "https://example.org/a.png" in wire.received[-1].text


@ALL_FORMATS
async def test_a_pdf_arrives_as_a_document_and_text_between_marks(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Said("Read."))
    pdf = FilePart(media_type="application/pdf", name="bill.pdf", blob="pdf")
    table = FilePart(media_type="text/csv; charset=utf-8", name="rows.csv", blob="table")
    await ask(opened(wire_format), user(pdf, table), blobs=Blobs(pdf=b"%PDF-1.7", table=b"a,b\n1,2"))
    body = wire.received[-1].text
    assert base64.b64encode(b"%PDF-1.7").decode() in body
    assert "a,b\\n1,2\\n[end of file table]" in body


@ALL_FORMATS
@pytest.mark.parametrize(
    "part",
    [
        FilePart(media_type="video/mp4", name="fall.mp4", blob="bytes"),
        FilePart(media_type="video/mp4", name="fall.mp4", url="https://example.org/fall.mp4"),
        FilePart(media_type="audio/ogg", name="fall.ogg", blob="bytes"),
        FilePart(media_type="application/zip", name="fall.zip", blob="bytes"),
        FilePart(media_type="text/plain", name="fall.txt", blob="bytes"),
        FilePart(media_type="image/png", name="fall.png"),
    ],
    ids=lambda part: f"{part.media_type}{' by url' if part.url else ''}",
)
async def test_a_file_that_the_model_does_not_take_is_named_instead(
    opened: Opener, wire: Wire, wire_format: str, part: FilePart
) -> None:
    wire.prepare(Said("I cannot open it."))
    await ask(opened(wire_format), user("Look:", part), blobs=Blobs(bytes=b"\xff\xfe\x00"))
    assert "A file was attached here" in wire.received[-1].text
    assert "fall." in wire.received[-1].text


async def test_a_missing_blob_is_a_store_that_is_behind(opened: Opener, wire: Wire) -> None:
    with pytest.raises(StoreBehind, match="image"):
        await ask(opened("chat"), user(IMAGE))
    assert wire.received == []


@ALL_FORMATS
async def test_data_goes_as_json_and_an_empty_message_as_words(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Said("Yes?"))
    await ask(opened(wire_format), user(DataPart(data={"b": 1, "a": ["é"]})), user(""), instructions="")
    sent = wire.received[-1].text
    assert json.dumps('{"a":["é"],"b":1}', ensure_ascii=False) in sent
    assert "(an empty message)" in sent


@ALL_FORMATS
async def test_a_reply_written_by_another_codec_goes_back_from_its_text_and_calls(
    opened: Opener, wire: Wire, wire_format: str
) -> None:
    wire.prepare(Said("Fine."), Said("Fine."))
    call = asked("c1", order_id="A-1")
    for native, native_format in [({"parts": "?"}, "pydantic-ai/ModelResponse/1"), ({"other": 1}, "elsewhere/3")]:
        reply = ModelReply(text="Looking.", calls=(call,), native=native, native_format=native_format)
        await ask(opened(wire_format), user("a"), ModelEntry(reply=reply), result("c1"))
        assert "Looking." in wire.received[-1].text
        assert pairs(wire_format, wire.last)[0] == ["c1"]


@ALL_FORMATS
async def test_a_reply_without_content_is_left_out(opened: Opener, wire: Wire, wire_format: str) -> None:
    wire.prepare(Said("Fine."))
    refused = ModelEntry(reply=ModelReply(finish="refusal"))
    await ask(opened(wire_format), user("first"), refused, user("second"), instructions="")
    messages = wire.last["input" if wire_format == "responses" else "messages"]
    assert {message["role"] for message in messages} == {"user"}
    assert "first" in json.dumps(messages)
    assert "second" in json.dumps(messages)


@ALL_FORMATS
async def test_a_conversation_begun_with_another_provider_goes_on(opened: Opener, wire: Wire, wire_format: str) -> None:
    for other in {"chat", "responses", "messages"} - {wire_format}:
        thinking = {} if other == "chat" else {"thinking": "Hm.", "signature": "c2ln"}
        wire.prepare(Said("Wait.", calls=(("c.1", "get_order", "{}"),), **thinking), Said("There."))  # type: ignore[arg-type]
        first = ModelEntry(reply=await ask(opened(other), user("a")))
        await ask(opened(wire_format), user("a"), first, result("c.1", "one"))
        calls, results = pairs(wire_format, wire.last)
        assert len(calls) == 1
        assert [call_id for call_id, _ in results] == calls


@pytest.mark.parametrize(
    "transcript",
    [(), (user("a"), said("b")), (result("c1"),), (user("a"), said("", asked("c1")), result("c1"), result("c1"))],
    ids=["empty", "nothing to answer", "result without a call", "two results"],
)
async def test_r14_a_broken_transcript_is_not_sent(opened: Opener, wire: Wire, transcript: tuple[Any, ...]) -> None:
    with pytest.raises(InvariantBroken, match="R14"):
        await ask(opened("chat"), *transcript)
    assert wire.received == []
