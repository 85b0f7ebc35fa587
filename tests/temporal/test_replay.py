"""Replays decide the same, arguments included (P11), and the check that says so can fail.

`Bench.sound` replays the history of nearly every test of this folder; here are a task that meets most of what can
happen, replayed with and without the core passed through the sandbox, and the negative controls.
"""

import asyncio

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory

from perdure import Call, tool
from perdure.core.commands import CallModel
from perdure.core.errors import ModelError
from perdure.core.machine import turn
from perdure.temporal.connection import DATA_CONVERTER
from perdure.temporal.contracts import TaskStart
from perdure.testing import call, calls, fail, say
from tests.temporal.bench import FAST, Bench, Gate, ended, event, item, rows_of
from tests.temporal.replaying import Difference, replay, replay_all

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@tool(effect="read", retry=FAST)
async def look_up(word: str, call: Call) -> str:
    """Look a word up."""
    if word == "flaky" and call.attempt < 3:
        raise RuntimeError("not yet")
    return f"meaning of {word}"


def busy() -> ModelError:
    return fail("busy", retryable=True, retry_after_s=0.01)


async def eventful(bench: Bench) -> list[WorkflowHistory]:
    """Record a task with parallel calls, failures and backoff, a question, a stop, further messages and a cancel."""
    gate = Gate()

    @tool(effect="once")
    async def held(round_: int) -> str:
        await gate.pass_through()
        return "ok"

    agent = bench.agent(
        calls(call("look_up", {"word": "a"}), call("look_up", {"word": "flaky"}), call("no_such_tool")),
        call("ask_participant", {"question": "Which?"}, failure=busy(), failures=2),
        call("held", {"round_": 1}),
        call("look_up", {"word": "b"}),
        say("done"),
        call("held", {"round_": 2}),
        tools=[look_up, held],
        after_answer="input_required",
    )
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=150))
        question = await event(task, "help.requested")
        await task.send("a side note")
        await task.answer(question.help_id, "the first")
        await gate.wait_reached()
        assert await task.stop()
        await event(task, "run.ended", end="stopped")
        await bench.inbox(task.id, item("m-2", lane="steer"), item("m-3", lane="steer"))
        gate.reached.clear()
        await event(task, "run.ended", end="answered")
        await task.send("once more")
        await gate.wait_reached()
        await task.cancel()
        await ended(task, "canceled")
        await bench.sound(task, app.store, replays=False)
        return await bench.histories(task.id)


async def test_an_eventful_task_replays_with_and_without_the_core_passed_through(bench: Bench) -> None:
    histories = await eventful(bench)
    await replay_all(histories)
    await replay_all(histories, pass_core_through=False)


# --- the check can fail -----------------------------------------------------------------------------------------


async def plain(bench: Bench) -> WorkflowHistory:
    agent = bench.agent(call("look_up", {"word": "a"}), say("done"), tools=[look_up])
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        (history,) = await bench.histories(task.id)
    await replay(history)
    return history


async def test_a_start_that_says_otherwise_is_seen(bench: Bench) -> None:
    history = await plain(bench)
    started = history.events[0].workflow_execution_started_event_attributes
    (start,) = await DATA_CONVERTER.decode(started.input.payloads, [TaskStart])
    slower = start.agent.model_copy(update={"model": start.agent.model.model_copy(update={"timeout_s": 1.5})})
    (payload,) = await DATA_CONVERTER.encode([start.model_copy(update={"agent": slower})])
    started.input.payloads[0].CopyFrom(payload)
    with pytest.raises(Difference, match="start_to_close"):
        await replay(history)


async def test_a_machine_that_decides_otherwise_is_seen(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    history = await plain(bench)
    right = turn.model_command

    def wrong(*given: object) -> CallModel:
        command: CallModel = right(*given)  # type: ignore[arg-type] # whatever it takes
        return command.model_copy(update={"upto": command.upto + 1})

    monkeypatch.setattr(turn, "model_command", wrong)
    with pytest.raises(Difference, match="arguments"):
        await replay(history)


async def test_another_order_is_seen_by_temporal_itself(bench: Bench) -> None:
    history = await plain(bench)
    scheduled = [e for e in history.events if e.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED]
    scheduled[1].activity_task_scheduled_event_attributes.activity_type.name = "invoke_tool"
    with pytest.raises(Exception, match=r"(?i)nondeterminism"):
        await replay(history)


async def test_concurrent_tasks_replay_alike(bench: Bench) -> None:
    agent = bench.agent(call("look_up", {"word": "a"}), call("look_up", {"word": "flaky"}), say("x"), tools=[look_up])
    async with bench.app(agent) as app:
        tasks = await asyncio.gather(*(app.send("go") for _ in range(4)))
        await asyncio.gather(*(task.result() for task in tasks))
        for task in tasks:
            stored = await bench.sound(task, app.store)
            assert [row.data["attempt"] for row in rows_of(stored, "tool.started")] == [1, 1, 2, 3]
