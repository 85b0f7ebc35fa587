"""What texts may hold: NUL inside a body comes back, what no database can carry is refused and named."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from perdure.core.content import Message, TextPart, ToolEntry, ToolResult, UserEntry
from perdure.core.digests import body_of, digest
from perdure.core.errors import InvalidInput
from perdure.core.log import Batch
from perdure.store import SqlStore
from tests.store.building import batch, header, message, new_task, numbers, reply, request, row, status, tool_entry


@pytest.mark.parametrize("text", ["a\x00b", "\\u0000", "𝄞 é \u2028 \x7f \x1f", '"\\', "", "\ufffd"])
async def test_any_text_of_a_body_comes_back_with_its_digest(store: SqlStore, text: str) -> None:
    task = await new_task(store)
    said = Message(message_id="m", parts=(TextPart(text=text),))
    named = digest(body_of(UserEntry(message=said)))
    await store.write(batch(task, row(2, data={"text": text, text: 1}), messages=(said,)), 200)
    (stored,) = await store.events_after(task, 1, 10)
    assert stored.event.data == {"text": text, text: 1}
    assert await store.read_entry(task, named) == UserEntry(message=said)
    asked = request(task)
    await store.begin_effect(batch(task), asked, 210)
    result = ToolEntry(result=ToolResult(call_id=text, tool="t", status="ok", text=text))
    assert (await store.finish_effect(asked.key, 1, result, 220)).entry == result
    assert (await store.begin_effect(batch(task), asked, 230)).entry == result


async def test_a_reason_is_shown_without_what_a_column_cannot_hold(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, status(2, "failed", "bad\x00byte")), 200)
    shown = await store.task(task)
    assert shown is not None
    assert shown.reason == "bad\ufffdbyte"
    assert (await store.events_after(task, 1, 1))[0].event.data["reason"] == "bad\x00byte"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"rows": (row(2, data={"x": "\ud800"}),)}, "row 2"),
        ({"messages": (message("m", "a\udfffb"),)}, "message 'm'"),
        ({"messages": (message("m\x00"),)}, "batch.messages.message_id"),
        ({"messages": (message("m\ud800"),)}, "batch.messages.message_id"),
        ({"snapshot": {"last_number": 1, "x": "\ud800"}}, "batch.snapshot"),
        (
            {"rows": (row(2, kind="message.admitted", data={"message_id": "m\x00", "digest": "d"}),)},
            "row 2.data.message_id",
        ),
    ],
)
async def test_what_cannot_be_stored_is_refused_by_name(store: SqlStore, wrong: dict[str, Any], field: str) -> None:
    task = await new_task(store)
    with pytest.raises(InvalidInput) as caught:
        await store.write(Batch(task_id=task, **wrong), 200)
    assert caught.value.field == field
    assert await numbers(store, task) == [1]


USES: list[tuple[str, Callable[[SqlStore, str], Awaitable[object]]]] = [
    ("batch.task_id", lambda store, bad: store.write(batch(bad), 1)),
    ("header.context_id", lambda store, bad: store.write(batch("t", header=header("t", context_id=bad)), 1)),
    ("task_id", lambda store, bad: store.task(bad)),
    ("task_id", lambda store, bad: store.events_after(bad, 0, 1)),
    ("task_id", lambda store, bad: store.effects(bad)),
    ("task_id", lambda store, bad: store.read_transcript(bad, 1, "chain")),
    ("task_id", lambda store, bad: store.read_entry(bad, "digest")),
    ("digest", lambda store, bad: store.read_entry("t", bad)),
    ("message_id", lambda store, bad: store.admission("t", bad)),
    ("task_id", lambda store, bad: store.record_reply(bad, 1, 1, reply(), 1)),
    ("key", lambda store, bad: store.finish_effect(bad, 1, tool_entry(), 1)),
    ("key", lambda store, bad: store.close_effect(bad, 1)),
    ("worker", lambda store, bad: store.begin_model(batch("t"), 1, 1, 1, bad, 1)),
    ("request.tool", lambda store, bad: store.begin_effect(batch("t"), request("t", tool=bad), 1)),
    ("media_type", lambda store, bad: store.put_blob(b"", bad)),
    ("digest", lambda store, bad: store.get_blob(bad)),
]


@pytest.mark.parametrize("bad", ["a\x00b", "a\ud800b"], ids=["nul", "surrogate"])
async def test_ids_that_no_key_can_hold_are_refused_everywhere(store: SqlStore, bad: str) -> None:
    for field, use in USES:
        with pytest.raises(InvalidInput, match="NUL or a lone surrogate") as caught:
            await use(store, bad)
        assert caught.value.field == field
    assert await store.tasks(10) == ()
