"""The scripted model: what it says follows from the transcript and the attempt, and from nothing else."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure.testing
from perdure.core.content import (
    Entry,
    Message,
    ModelEntry,
    ModelReply,
    TextPart,
    ToolEntry,
    ToolResult,
    UserEntry,
)
from perdure.core.errors import ModelError
from perdure.core.ports import ModelPort, ModelRequest
from perdure.testing import call, calls, fail, last_result, last_user, replies, results, say, scripted


def user(text: str) -> UserEntry:
    return UserEntry(message=Message(message_id="m", parts=(TextPart(text=text),)))


def answered(reply: ModelReply) -> list[Entry]:
    """Return a reply's entry and a result for each of its calls."""
    entries: list[Entry] = [ModelEntry(reply=reply)]
    for asked in reply.calls:
        text = f"result of {asked.tool}"
        result = ToolResult(call_id=asked.call_id, tool=asked.tool, status="ok", text=text)
        entries.append(ToolEntry(result=result))
    return entries


async def ask(
    model: ModelPort, transcript: list[Entry], *, attempt: int = 1, deltas: list[str] | None = None
) -> ModelReply:
    async def no_blobs(digest: str) -> bytes:
        raise KeyError(digest)

    def on_delta(text: str) -> None:
        if deltas is not None:
            deltas.append(text)

    request = ModelRequest(
        task_id="t", turn=1, attempt=attempt, instructions="", transcript=tuple(transcript), tools=()
    )
    return await model.reply(request, on_delta, no_blobs)


async def converse(model: ModelPort, *messages: str) -> list[ModelReply]:
    """Put the messages one after another, each until an answer without calls; return all replies."""
    transcript: list[Entry] = []
    said: list[ModelReply] = []
    for message in messages:
        transcript.append(user(message))
        while True:
            said.append(await ask(model, transcript))
            transcript += answered(said[-1])
            if not said[-1].calls:
                break
    return said


async def test_a_script_is_followed_step_by_step() -> None:
    model = scripted(
        call("get_order", {"order_id": "A-1"}, text="Let me look."),
        calls(call("refund", {"amount": 3}), call("notify")),
        lambda transcript: say(f"{last_user(transcript)}: {len(results(transcript))}, {last_result(transcript)}"),
        say("You are welcome."),
    )

    looked, two, done, thanks = await converse(model, "It broke", "Thanks")

    assert (looked.text, looked.calls[0].tool, looked.calls[0].arguments) == (
        "Let me look.",
        "get_order",
        {"order_id": "A-1"},
    )
    assert [(asked.tool, asked.arguments) for asked in two.calls] == [("refund", {"amount": 3}), ("notify", {})]
    assert done.text == "It broke: 2, result of notify"
    assert (thanks.text, thanks.finish, thanks.model) == ("You are welcome.", "stop", "scripted")
    ids = [asked.call_id for reply in (looked, two) for asked in reply.calls]
    assert len(set(ids)) == 3


async def test_two_models_of_one_script_answer_the_same() -> None:
    def build() -> ModelPort:
        return scripted(call("a"), say("b"), name="m", usd_per_token=0.5)

    transcript: list[Entry] = [user("x")]
    first = await ask(build(), transcript)
    assert first == await ask(build(), transcript, attempt=7)
    transcript += answered(first)
    assert replies(transcript) == (first,)
    assert (await ask(build(), transcript)).text == "b"
    assert first.usage.input_tokens > 0
    assert first.usage.cost_usd == 0.5 * (first.usage.input_tokens + first.usage.output_tokens)


async def test_past_the_script_says_so() -> None:
    model = scripted(say("once"), name="short")
    transcript: list[Entry] = [user("x"), *answered(await ask(model, [user("x")])), user("y")]
    with pytest.raises(ModelError, match=r"short: the script has 1 steps, and step 2 was asked for") as caught:
        await ask(model, transcript)
    assert not caught.value.retryable
    looped = scripted(say("once"), loop=True)
    assert (await ask(looped, transcript)).text == "once"
    with pytest.raises(ModelError, match="0 steps"):
        await ask(scripted(loop=True), [user("x")])


async def test_failures_are_counted_by_the_attempt() -> None:
    model = scripted(
        say("at last", failure=fail("busy", retryable=True, retry_after_s=2), failures=2, stream=True), fail("never")
    )
    for attempt in (1, 2):
        deltas: list[str] = []
        with pytest.raises(ModelError, match="busy") as caught:
            await ask(model, [user("x")], attempt=attempt, deltas=deltas)
        assert (caught.value.retryable, caught.value.retry_after_s, deltas) == (True, 2, [])
    reply = await ask(model, [user("x")], attempt=3)
    assert reply.text == "at last"
    with pytest.raises(ModelError, match="never"):
        await ask(model, [user("x"), *answered(reply), user("y")], attempt=9)


@settings(deadline=None)
@given(st.text(max_size=60))
async def test_the_deltas_are_the_text(text: str) -> None:
    deltas: list[str] = []
    reply = await ask(scripted(say(text, stream=True)), [user("x")], deltas=deltas)
    assert "".join(deltas) == reply.text
    assert len(deltas) == (len(text.split(" ")) if text else 0)


async def test_a_delay_can_be_cancelled() -> None:
    deltas: list[str] = []
    model = scripted(say("one two three", stream=True, delay_s=3600))
    asking = asyncio.create_task(ask(model, [user("x")], deltas=deltas))
    await asyncio.sleep(0)
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, timeout=5)
    assert deltas == []


async def test_malformed_arguments_can_be_written() -> None:
    reply = await ask(scripted(calls(call("a", '{"x": '), call("a", "[1]"), call("a", '{"x": 1}'))), [user("x")])
    assert [(asked.arguments, asked.malformed) for asked in reply.calls] == [
        (None, '{"x": '),
        (None, "[1]"),
        ({"x": 1}, None),
    ]


async def test_length_and_refusal_can_be_scripted() -> None:
    cut = await ask(scripted(say("and then", finish="length")), [user("x")])
    assert cut.finish == "length"


def test_a_step_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="delay_s"):
        say("x", delay_s=-1)


def test_the_exported_names_are_these() -> None:
    assert sorted(perdure.testing.__all__) == [
        "ScriptedModel",
        "Step",
        "call",
        "calls",
        "fail",
        "last_result",
        "last_user",
        "replies",
        "results",
        "say",
        "scripted",
    ]
