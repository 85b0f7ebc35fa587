"""The whole path of a task that nothing befalls: what the store, the workflow and Temporal's history say of it."""

import asyncio

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from perdure import Call, tool
from perdure.core.errors import RunFailed
from perdure.core.log import LogEvent
from perdure.temporal.contracts import TaskOutcome
from perdure.testing import call, calls, last_result, say
from tests.temporal.bench import (
    WAIT_S,
    Bench,
    Gate,
    activities,
    activity_inputs,
    entries_of,
    event,
    item,
    logged,
    rows_of,
)

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@tool(effect="read")
async def look_up(word: str) -> str:
    """Look a word up."""
    return f"meaning of {word}"


async def test_a_task_is_answered_and_its_log_tells_all_of_it(bench: Bench) -> None:
    agent = bench.agent(
        call("look_up", {"word": "dusk"}),
        lambda transcript: say(f"It is the {last_result(transcript)}."),
        tools=[look_up],
    )
    async with bench.app(agent) as app:
        task = await app.send("What is dusk?", message_id="m-1")
        assert await task.result() == "It is the meaning of dusk."
        stored = await bench.sound(task, app.store)
    assert [each.event.kind for each in stored] == [
        "task.created",
        "task.status",
        "message.admitted",
        "run.started",
        "task.status",
        "message.promoted",
        "model.started",
        "model.answered",
        "tool.started",
        "tool.finished",
        "model.started",
        "model.answered",
        "run.ended",
        "task.status",
    ]
    assert [entry.kind for entry in entries_of(stored)] == ["user", "model", "tool", "model"]
    states = [row.data["state"] for row in rows_of(stored, "task.status")]
    assert states == ["submitted", "working", "completed"]
    outcome = await bench.client.get_workflow_handle(task.id, result_type=TaskOutcome).result()
    assert outcome == TaskOutcome(state="completed", reason="", last_number=len(stored))


async def test_the_result_is_the_answers_text_and_no_earlier_one(bench: Bench) -> None:
    """A run whose last reply says nothing has an empty answer: what was said before the calls is none."""
    agent = bench.agent(call("look_up", {"word": "dusk"}, text="Let me see."), say(""), tools=[look_up])
    async with bench.app(agent) as app:
        assert await (await app.send("What is dusk?")).result() == ""


async def test_a_result_is_told_though_rows_that_change_nothing_follow_the_end(bench: Bench) -> None:
    """A message that a stop parked is taken back: the task still rests, and says how."""
    gate = Gate()

    @tool(effect="read")
    async def held() -> str:
        await gate.pass_through()
        return "x"

    agent = bench.agent(call("held"), say("never"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        await bench.inbox(task.id, item("m-parked", lane="queue"))
        assert await task.stop()
        await event(task, "run.ended", end="stopped")
        await bench.client.get_workflow_handle(task.id).execute_update("cancel_message", "m-parked")
        await event(task, "message.withdrawn")
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(RunFailed, match="stopped"):
                await task.result()


async def test_store_and_workflow_agree_on_every_row(bench: Bench) -> None:
    gate = Gate()

    @tool(effect="read")
    async def wait_here() -> str:
        await gate.pass_through()
        return "passed"

    agent = bench.agent(call("wait_here"), say("done"), tools=[wait_here])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        handle = bench.client.get_workflow_handle(task.id)
        stored = [each.event for each in await logged(app.store, task.id)]
        unconfirmed = await handle.query("events_since", 0, result_type=list[LogEvent])
        state = await bench.tasks.state(task.id)
        # The tool's rows are in the store with its `begun`, though the workflow has no word of it yet.
        assert [row.number for row in stored] == list(range(1, state.last_number + 1))
        assert unconfirmed == stored[unconfirmed[0].number - 1 :]
        (flight,) = (await task.monitor()).flights
        assert (flight.name, flight.turn, flight.attempt) == ("invoke_tool", 1, 1)
        gate.open.set()
        assert await task.result() == "done"
        await bench.sound(task, app.store)


async def test_a_turn_costs_two_activities_and_no_input_grows(bench: Bench) -> None:
    turns = 61
    agent = bench.agent(*(call("look_up", {"word": "dusk"}) for _ in range(turns - 1)), say("done"), tools=[look_up])
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "done"
        await bench.sound(task, app.store)
        (history,) = await bench.histories(task.id)
    names = activities(history)
    assert names[0] == "intake"
    assert names[-1] == "persist"
    assert names[1:-1] == ["invoke_llm", "invoke_tool"] * (turns - 1) + ["invoke_llm"]
    for name in ("invoke_llm", "invoke_tool"):
        sizes = activity_inputs(history, name)
        assert sizes[59] <= sizes[4] * 1.1, name


async def test_no_input_grows_with_the_messages_of_a_task(bench: Bench) -> None:
    messages = 60
    turns = [turn for _ in range(messages) for turn in (call("look_up", {"word": "dusk"}), say("done"))]
    agent = bench.agent(*turns, tools=[look_up], after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go", message_id="m-100")
        for place in range(1, messages):
            await event(task, "run.ended", count=place)
            await task.send("go", message_id=f"m-{100 + place}")
        await event(task, "run.ended", count=messages)
        await task.cancel()
        await event(task, "task.status", state="canceled")
        histories = await bench.histories(task.id)
    for name in ("intake", "invoke_llm", "invoke_tool", "persist"):
        sizes = [size for history in histories for size in activity_inputs(history, name)]
        assert len(sizes) >= messages, name
        assert max(sizes[-5:]) <= max(sizes[2:7]) * 1.1, (name, sizes)


async def test_a_call_gets_its_key_and_attempt(bench: Bench) -> None:
    seen: list[Call] = []

    @tool(effect="once", parallel=True)
    async def act(call: Call) -> str:
        seen.append(call)
        return "ok"

    # B26: the scripted model repeats nothing, so the ids are made to repeat by two turns of two calls each.
    agent = bench.agent(calls(call("act"), call("act")), calls(call("act"), call("act")), say("done"), tools=[act])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await task.result()
        await bench.sound(task, app.store)
    assert sorted(each.idempotency_key for each in seen) == [
        f"{task.id}/{turn}/{index}" for turn in (1, 2) for index in (0, 1)
    ]
    assert {each.attempt for each in seen} == {1}


async def test_a_workflow_without_a_message_ends_itself(bench: Bench) -> None:
    agent = bench.agent(say("never"))
    async with bench.app(agent) as app:
        task_id = await bench.start(agent, messages=())
        with pytest.raises(WorkflowFailureError) as failure:
            await bench.client.get_workflow_handle(task_id).result()
        assert isinstance(failure.value.cause, ApplicationError)
        assert "P1" in str(failure.value.cause)
        assert await app.store.task(task_id) is None
