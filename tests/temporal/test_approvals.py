"""Approvals from end to end: asked, given once, changed, declined, expired; the outside's own log says what began."""

import asyncio
import json
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType

from perdure import ApprovalRule, Call, tool
from perdure.core.errors import InvalidInput
from perdure.core.ports import ToolPort
from perdure.testing import call, calls, say
from tests.temporal.bench import Bench, event, item, results_of, rows_of
from tests.temporal.outside import Outside

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

BIG: dict[str, Any] = {"order_id": "A-1", "amount": 150.0}


def refunding(outside: Outside) -> ToolPort:
    @tool(effect="once", ask="amount > 100")
    async def refund(order_id: str, amount: float, call: Call) -> str:
        """Refund."""
        outside.note(f"refund {order_id} {amount:g}", call.idempotency_key)
        return f"refunded {amount:g}"

    return refund


async def test_a_call_waits_and_begins_once_it_is_approved(bench: Bench) -> None:
    agent = bench.agent(
        calls(call("refund", {"order_id": "A-1", "amount": 50.0}), call("refund", BIG)),
        say("done"),
        tools=[refunding(bench.outside)],
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        assert asked.text.startswith('May refund(amount=150.0, order_id="A-1") run?')
        await event(task, "task.status", state="input_required", reason="help")
        assert (bench.outside.count("refund A-1 50"), bench.outside.count("refund A-1 150")) == (1, 0)
        await task.approve(asked.help_id, by="alice", digest=str(asked.data["call_digest"]))
        assert await task.result() == "done"
        with pytest.raises(InvalidInput, match=r"any more|is closed"):
            await task.approve(asked.help_id, by="bob")
        stored = await bench.sound(task, app.store)
    (said,) = rows_of(stored, "help.answered")
    assert (said.data["by"], said.data["verdict"]) == ("alice", "approved")
    assert [result.result.text for result in results_of(stored)] == ["refunded 50", "refunded 150"]
    assert bench.outside.count("refund A-1 150") == 1


async def test_of_a_call_too_large_to_be_shown_every_value_is_shown_cut(bench: Bench) -> None:
    large: dict[str, Any] = {"order_id": "A-1 " + "x" * 9_000, "amount": 150.0}
    agent = bench.agent(call("refund", large), say("done"), tools=[refunding(bench.outside)])
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        calls_told: Any = (await event(task, "model.answered")).data["calls"]
        assert calls_told[0]["arguments_cut"] is True
        shown = json.loads(calls_told[0]["arguments"])
        assert (shown["amount"], shown["order_id"][:5]) == (150.0, "A-1 x")
        assert shown["order_id"].endswith("… [cut, 9004 bytes]")
        assert asked.text.startswith('May refund(amount=150.0, order_id="A-1 xxx')
        await task.approve(asked.help_id)
        assert await task.result() == "done"
        await bench.sound(task, app.store)
    assert bench.outside.count(f"refund {large['order_id']} 150") == 1


async def test_two_people_approve_one_call_at_once_and_it_runs_once(bench: Bench) -> None:
    agent = bench.agent(call("refund", BIG), say("done"), tools=[refunding(bench.outside)])
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        given = [task.approve(asked.help_id, by=name) for name in ("alice", "bob", "carol", "dave")]
        came = await asyncio.gather(*given, return_exceptions=True)
        assert sorted(type(each).__name__ for each in came) == [
            "InvalidInput",
            "InvalidInput",
            "InvalidInput",
            "NoneType",
        ]
        assert await task.result() == "done"
        await bench.sound(task, app.store)
    assert bench.outside.count("refund A-1 150") == 1


async def test_changed_arguments_are_what_runs_and_the_model_is_told(bench: Bench) -> None:
    agent = bench.agent(call("refund", BIG), say("done"), tools=[refunding(bench.outside)])
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        await task.approve(asked.help_id, by="alice", arguments={"order_id": "A-1", "amount": 60})
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    (result,) = results_of(stored)
    assert result.result.text == (
        'A person approved this call with other arguments: {"amount":60,"order_id":"A-1"}.\nrefunded 60'
    )
    assert (bench.outside.count("refund A-1 60"), bench.outside.count("refund A-1 150")) == (1, 0)


async def test_changed_arguments_that_do_not_fit_or_that_a_rule_denies_begin_nothing(bench: Bench) -> None:
    agent = bench.agent(
        call("refund", BIG),
        call("refund", BIG),
        say("done"),
        tools=[refunding(bench.outside)],
        approvals=[ApprovalRule(then="deny", tool="refund", when="amount > 1000", reason="never so much")],
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        first = await event(task, "help.requested")
        await task.approve(first.help_id, arguments={"order_id": "A-1", "amount": "much"})
        second = await event(task, "help.requested", after=first.number)
        await task.approve(second.help_id, arguments={"order_id": "A-1", "amount": 5000})
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    told = [(result.result.status, result.result.text) for result in results_of(stored)]
    assert [status for status, _ in told] == ["not_begun", "not_begun"]
    assert "amount" in told[0][1]
    assert told[1][1].endswith("Not begun: never so much.")
    assert bench.outside.all() == []


async def test_declined_by_message_and_denied_by_a_rule(bench: Bench) -> None:
    agent = bench.agent(
        calls(call("refund", BIG), call("refund", {"order_id": "A-2", "amount": 5000.0})),
        say("done"),
        tools=[refunding(bench.outside)],
        approvals=[ApprovalRule(then="deny", when="amount > 1000", reason="never so much")],
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "help.requested")
        reply = await bench.inbox(task.id, item("m-2", "please hurry", answers=True))
        assert "neither approves nor declines" in str(reply.receipts[0].problem)
        words = "decline: they have had one"
        for _ in range(2):  # the second is the same message again
            reply = await bench.inbox(task.id, item("m-3", words, answers=True, by="alice"))
            assert reply.receipts[0].number is not None
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    assert [result.result.text for result in results_of(stored)] == [
        "Declined by alice: they have had one. It was not begun.",
        "Not begun: this call is not allowed (never so much). Do not ask for it again.",
    ]
    assert bench.outside.all() == []


async def test_an_approval_expires_by_its_one_timer(bench: Bench) -> None:
    agent = bench.agent(
        call("refund", BIG),
        say("done"),
        tools=[refunding(bench.outside)],
        approvals=[ApprovalRule(then="ask", tool="refund", expires_in_s=1)],
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    (closed,), (asked,) = rows_of(stored, "help.closed"), rows_of(stored, "help.requested")
    assert closed.data["reason"] == "expired"
    assert closed.at_ms >= asked.at_ms + 1000
    assert results_of(stored)[0].result.text == "Declined: nobody approved it in time. It was not begun."
    assert bench.outside.all() == []


async def test_p8_an_answer_cancels_the_timer_and_without_an_expiry_there_is_none(bench: Bench) -> None:
    agent = bench.agent(
        call("ask_participant", {"question": "Which?", "expires_in_s": 3600}),
        call("ask_participant", {"question": "And then?"}),
        say("done"),
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        first = await event(task, "help.requested")
        await task.answer(first.help_id, "this")
        second = await event(task, "help.requested", after=first.number)
        await event(task, "task.status", after=second.number, state="input_required")
        (history,) = await bench.histories(task.id)
        kinds = [each.event_type for each in history.events]
        assert kinds.count(EventType.EVENT_TYPE_TIMER_STARTED) == 1
        assert kinds.count(EventType.EVENT_TYPE_TIMER_CANCELED) == 1
        assert (await task.monitor()).flights == ()
        await task.answer(second.help_id, "that")
        assert await task.result() == "done"
        await bench.sound(task, app.store)


async def test_a_form_is_answered_with_data_and_refused_with_the_place(bench: Bench) -> None:
    form: dict[str, Any] = {
        "type": "object",
        "properties": {"size": {"enum": ["S", "M"]}, "count": {"type": "integer", "minimum": 1}},
        "required": ["size", "count"],
    }
    agent = bench.agent(
        call(
            "ask_participant", {"question": "Which?", "form": {"type": "object", "properties": {"a": {"pattern": "x"}}}}
        ),
        call("ask_participant", {"question": "Which?", "form": form}),
        say("done"),
    )
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        assert asked.data["schema"] == form
        with pytest.raises(InvalidInput, match='count: missing; size: must be one of "S", "M", got "XL"'):
            await task.answer(asked.help_id, {"size": "XL"})
        await task.answer(asked.help_id, {"count": 2, "size": "M"})
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
    refused, answered = [result.result for result in results_of(stored)]
    assert refused.status == "error"
    assert "ask_participant.form.properties.a.pattern: is not taken in a form" in refused.text
    assert json.loads(answered.text) == {"count": 2, "size": "M"}


async def test_a_task_that_asks_in_every_turn_continues_as_new_and_leaves_no_timer(bench: Bench) -> None:
    asks = [call("ask_participant", {"question": f"Which {n}?", "expires_in_s": 3600}) for n in range(8)]
    agent = bench.agent(*asks, say("done"))
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=30))
        for n in range(8):
            asked = await event(task, "help.requested", count=n + 1)
            await task.answer(asked.help_id, f"this {n}")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
        histories = await bench.histories(task.id)
    assert len(histories) > 2
    for history in histories:
        kinds = [each.event_type for each in history.events]
        started, canceled = EventType.EVENT_TYPE_TIMER_STARTED, EventType.EVENT_TYPE_TIMER_CANCELED
        assert kinds.count(started) == kinds.count(canceled)
    assert [result.result.text for result in results_of(stored)] == [f"this {n}" for n in range(8)]


async def test_a_worker_without_the_tool_lets_no_call_of_it_begin_elsewhere(bench: Bench) -> None:
    """Workers change over: what takes the reply in knows no rule of the tool, and what comes next has it."""
    before = bench.agent(tools=[refunding(bench.outside)], after_answer="input_required")
    script = call("refund", BIG), say("later"), call("refund", BIG), say("done")
    lacking = bench.agent(*script, after_answer="input_required")
    async with bench.app(lacking) as app:
        task = app.task(await bench.start(before))
        assert await task.result() == "later"
        (missed,) = results_of(await bench.sound(task, app.store))
    assert missed.result.text.startswith("Not begun: the worker that took this call in has no tool 'refund'")
    having = bench.agent(*script, tools=[refunding(bench.outside)])
    async with bench.app(having) as app:
        task = app.task(task.id)
        await task.send("now?")
        asked = await event(task, "help.requested")
        assert bench.outside.all() == []
        await task.approve(asked.help_id)
        assert await task.result() == "done"
        await bench.sound(task, app.store)
    assert bench.outside.count("refund A-1 150") == 1
