"""Tasks that began under earlier code go on under today's: every recording decides the same, arguments included (P11).

A field that was added since must not show where it is not used: a row that says more than it did then has another
digest, and a store that has the row already refuses it.

A new recording is made by `PERDURE_TEST_RECORD=<name> pytest tests/temporal/test_recorded.py`, once for each change of
a durable format, by the code that has it. What stays and what may be made anew: `recorded.py`.

They were recorded under Python 3.11 and go on under every later one (`perdure.temporal.waiting`).

    first           before messages could answer questions and carried an envelope
    front-door      with both
    fallbacks       with models that take over for a turn, one of them across two histories
    asked           with approvals, choices, a form, and questions that expire
"""

import asyncio
import os
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory

from perdure import Agent, ApprovalRule, tool
from perdure.core import asking_limits, events, limits, mcp_limits
from perdure.core.bounds import FIRST, Bounds, bounds_now
from perdure.core.content import Message, TextPart
from perdure.core.errors import InvalidInput
from perdure.core.machine import doubts
from perdure.core.machine.draft import Draft
from perdure.temporal.contracts import InboxItem, InboxRequest
from perdure.testing import call, calls, fail, say, scripted
from tests.temporal import recorded
from tests.temporal.bench import FAST, Bench, Gate, ended, event
from tests.temporal.replaying import Difference, replay, replay_all
from tests.temporal.test_replay import look_up

pytestmark = pytest.mark.asyncio(loop_scope="session")

HISTORY_EVENTS_MAX = 60
"""Low, so that a recording holds what continue-as-new hands over."""


@pytest.mark.parametrize("name", recorded.recordings())
async def test_p11_a_task_that_began_under_earlier_code_decides_the_same(name: str) -> None:
    histories = recorded.read(name)
    assert len(histories) > 1, "it continued as new"
    await replay_all(histories)


async def test_a_row_that_says_more_than_it_said_then_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: an answer names its message only where it came as one."""

    def always(answer: events.Answered) -> dict[str, str]:
        return {"message_id": answer.message_id, "message_digest": answer.digest}

    (asked,) = [history for history in recorded.read("first") if _answers(history)]
    await replay(asked)
    monkeypatch.setattr("perdure.core.machine.calls.sender_of", always)
    monkeypatch.setattr(doubts, "sender_of", always)
    with pytest.raises(Difference, match="arguments"):
        await replay(asked)


@pytest.mark.parametrize("name", recorded.recordings())
async def test_p11_a_limit_that_was_changed_since_decides_nothing_in_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _change_every_limit(monkeypatch)
    await replay_all(recorded.read(name))


async def test_a_task_that_took_todays_limits_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control."""
    _change_every_limit(monkeypatch)
    monkeypatch.setattr(Draft, "bounds", property(lambda draft: bounds_now()))
    with pytest.raises((Difference, workflow.NondeterminismError)):
        await replay_all(recorded.read("asked"))


def _change_every_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Bounds.model_fields:
        for module in (limits, asking_limits, mcp_limits):
            if hasattr(module, name.upper()):
                monkeypatch.setattr(module, name.upper(), 17)
    assert all(now != then for now, then in zip(dict(bounds_now()).values(), dict(FIRST).values(), strict=True))


async def test_a_history_in_which_nothing_was_decided_yet_replays_at_once() -> None:
    (first, *_) = recorded.read("first")
    async with asyncio.timeout(30):
        await replay(WorkflowHistory(first.workflow_id, first.events[:1]))


def _answers(history: WorkflowHistory) -> bool:
    accepted = [event.workflow_execution_update_accepted_event_attributes for event in history.events]
    return any(each.accepted_request.input.name == "answer" for each in accepted)


@pytest.mark.skipif("PERDURE_TEST_RECORD" not in os.environ, reason="records, and only when asked to")
async def test_it_is_recorded(bench: Bench) -> None:
    name = os.environ["PERDURE_TEST_RECORD"]
    tellers = {"fallbacks": _fell_back, "asked": _asked}
    recorded.keep(name, await tellers.get(name, _told)(bench))


async def _fell_back(bench: Bench) -> list[WorkflowHistory]:
    """Record a task whose first model is down in every turn, and whose second one is in some."""
    down = fail("the provider is down", retryable=True)
    looks = [call("look_up", {"word": word}) for word in "abcdef"]
    agent = Agent(
        bench.queue,
        model=scripted(down, name="first", loop=True),
        fallbacks=[
            scripted(*[look if place % 2 else down for place, look in enumerate(looks)], say("done"), name="second"),
            scripted(*looks, name="third"),
        ],
        tools=[look_up],
        model_retry=FAST,
        after_answer="input_required",
    )
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=HISTORY_EVENTS_MAX))
        await event(task, "run.ended", end="answered")
        await task.cancel()
        await ended(task, "canceled")
        await bench.sound(task, app.store, replays=False)
        return await bench.histories(task.id)


async def _asked(bench: Bench) -> list[WorkflowHistory]:
    """Record a task that asks in every way, and gets wrong answers, right ones and none."""

    @tool(effect="once", ask="amount > 100")
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    form: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    agent = bench.agent(
        calls(call("pay", {"amount": 150}), call("pay", {"amount": 151}), call("pay", {"amount": 5000})),
        call("ask_participant", {"question": "Which?", "choices": ["red", "blue"], "expires_in_s": 3600}),
        call("ask_participant", {"question": "How many?", "form": form}),
        call("ask_participant", {"question": "Anybody?", "expires_in_s": 1}),
        *(call("look_up", {"word": word}) for word in "abcdef"),
        say("done"),
        tools=[pay, look_up],
        approvals=[ApprovalRule(then="deny", when="amount > 1000", reason="never so much")],
        after_answer="input_required",
    )
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=HISTORY_EVENTS_MAX))
        first = await event(task, "help.requested")
        await task.approve(first.help_id, by="alice", arguments={"amount": 120}, reason="less will do")
        second = await event(task, "help.requested", count=2)
        await task.decline(second.help_id, "once is enough", by="alice")
        which = await event(task, "help.requested", count=3)
        with pytest.raises(InvalidInput):
            await task.answer(which.help_id, "green")
        await task.answer(which.help_id, "Blue")
        count = await event(task, "help.requested", count=4)
        with pytest.raises(InvalidInput):
            await task.answer(count.help_id, {"n": 0})
        await task.answer(count.help_id, {"n": 2})
        await event(task, "help.closed", reason="expired")
        await event(task, "run.ended", end="answered")
        await task.cancel()
        await ended(task, "canceled")
        await bench.sound(task, app.store, replays=False)
        return await bench.histories(task.id)


def _said(name: str, text: str) -> Message:
    envelope = {"messageId": name, "role": "ROLE_USER", "metadata": {"kept": "whole"}}
    return Message(message_id=name, parts=(TextPart(text=text),), envelope=envelope)


async def _told(bench: Bench) -> list[WorkflowHistory]:
    """Record a task whose questions are answered by messages, one of them twice, over several workflow runs."""
    gate = Gate()

    @tool(effect="once")
    async def held() -> str:
        await gate.pass_through()
        return "ok"

    agent = bench.agent(
        call("look_up", {"word": "flaky"}),
        call("ask_participant", {"question": "Which?"}),
        call("held"),
        *(call("look_up", {"word": word}) for word in "abcdef"),
        say("done"),
        say("done again"),
        tools=[look_up, held],
        after_answer="input_required",
    )
    async with bench.app(agent) as app:
        messages = (_said("m-first", "hello"),)
        task = app.task(await bench.start(agent, messages=messages, history_events_max=HISTORY_EVENTS_MAX))
        first = await event(task, "help.requested")
        answer = InboxItem(message=_said("m-2", "the first"), answers=True, help_id=first.help_id)
        handle = bench.client.get_workflow_handle(task.id)
        for _ in range(2):
            await handle.execute_update("inbox", InboxRequest(items=(answer,)))
        await gate.wait_reached()
        steer = InboxItem(message=_said("m-3", "and quickly"), answers=True, lane="steer")
        await handle.execute_update("inbox", InboxRequest(items=(steer,)))
        gate.open.set()
        await event(task, "run.ended", end="answered")
        await task.send("once more")
        await event(task, "run.ended", end="answered", count=2)
        await task.cancel()
        await ended(task, "canceled")
        await bench.sound(task, app.store, replays=False)
        return await bench.histories(task.id)
