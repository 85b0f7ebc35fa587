"""What people send cannot fail a task's own steps: a stop gets through, and what was admitted is stored (P1, P9)."""

import asyncio
from typing import Any

import pytest

from perdure import tool
from perdure.core import limits
from perdure.core.content import Message, TextPart
from perdure.core.errors import InvalidInput
from perdure.core.ports import ToolPort
from perdure.temporal.contracts import InboxItem
from perdure.testing import call, calls, say
from tests.temporal.bench import Bench, Gate, event, item, rows_of, until
from tests.temporal.test_store_failures import held

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


def large(name: str, sign: str = "x") -> InboxItem:
    part = TextPart(text=sign * (60 * limits.KIB // len(sign.encode())))
    return InboxItem(message=Message(message_id=name, parts=(part,) * 5), lane="queue")


async def test_p1_large_messages_that_wait_for_the_store_are_written_when_it_answers(bench: Bench) -> None:
    """Together they are larger than one payload may be; each alone is not."""
    gate, tools = _gated()
    async with bench.app(bench.agent(call("hold"), *([say("yes")] * 20), tools=tools)) as app:
        task = await app.send("first", message_id="m-first")
        await gate.wait_reached()
        async with held(bench):
            sending = [asyncio.create_task(bench.inbox(task.id, large(f"m-{n}"))) for n in range(10)]
            await until(lambda: _admitted(bench, task.id, 10))
        for each in sending:
            await asyncio.gather(each, return_exceptions=True)  # told to send again, or durable by now
        assert await task.stop()
        gate.open.set()
        await event(task, "run.ended")
        stored = await bench.sound(task, app.store, replays=False)
    assert len(rows_of(stored, "message.admitted")) == 11


async def _admitted(bench: Bench, task_id: str, count: int) -> bool:
    return len((await bench.tasks.state(task_id)).inbox) == count


def _gated() -> tuple[Gate, list[ToolPort]]:
    gate = Gate()

    @tool(effect="read")
    async def hold() -> str:
        """Hold until the test lets go."""
        await gate.pass_through()
        return "held"

    return gate, [hold]


async def test_messages_of_many_bytes_a_character_go_in_batches_that_fit(bench: Bench) -> None:
    gate, tools = _gated()
    async with bench.app(bench.agent(call("hold"), *([say("yes")] * 20), tools=tools)) as app:
        task = await app.send("first")
        await gate.wait_reached()
        sending = (app.inboxes.send(task.id, large(f"m-{n}", "任")) for n in range(9))
        assert all(receipt.number for receipt in await asyncio.gather(*sending))
        assert await task.stop()
        gate.open.set()
        await event(task, "run.ended")


WRONG = [
    '{"approve": true, "arguments": {"amount": 1e999}}',
    '{"approve": true, "arguments": {"note": "\\ud800"}, "\\ud800": 1}',
    '{"approve": true, "arguments": {"a": ' + "[" * 250 + "]" * 250 + "}}",
    '{"approve": true, "arguments": {"a": ' + "[" * 40 + "]" * 40 + "}}",
]


@tool(effect="once", ask=True)
async def pay(amount: Any) -> str:
    """Pay."""
    return f"paid {amount}"


async def test_p9_no_answer_fails_the_tasks_steps(bench: Bench) -> None:
    """A wrong one is refused, leaves nothing in the history, and the question stays open."""
    async with bench.app(bench.agent(call("pay", {"amount": 1}), say("done"), tools=[pay])) as app:
        task = await app.send("go")
        help_id = (await event(task, "help.requested")).help_id
        before = len((await bench.histories(task.id))[-1].events)
        for text in WRONG:
            with pytest.raises(InvalidInput):
                await task.answer(help_id, text)
        for number in range(50):
            with pytest.raises(InvalidInput):
                await task.answer(help_id, f"perhaps {number}")
        assert len((await bench.histories(task.id))[-1].events) < before + 20, "54 were refused"
        await task.approve(help_id)
        assert await task.result() == "done"
        await bench.sound(task, app.store)


async def test_b22_a_word_that_does_not_say_which_call_approves_none_of_two(bench: Bench) -> None:
    both = calls(call("pay", {"amount": 150}), call("pay", {"amount": 9999}))
    async with bench.app(bench.agent(both, say("done"), tools=[pay])) as app:
        task = await app.send("go")
        asked = [(await event(task, "help.requested", count=number)).help_id for number in (1, 2)]
        word = item("m-1", "approve").model_copy(update={"answers": True})
        with pytest.raises(InvalidInput, match="do not say which call"):
            await app.inboxes.send(task.id, word)
        await task.decline(asked[0], "no")
        await task.decline(asked[1], "no")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    assert rows_of(stored, "tool.started") == []
