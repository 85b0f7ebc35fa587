"""Fallbacks end to end: who answered is the same in the log, in the store and in Temporal's history."""

from dataclasses import replace

import pytest

from perdure import Agent, RunFailed, tool
from perdure.core.attempts import AttemptRow
from perdure.temporal.history import attempts
from perdure.testing import call, fail, last_result, say, scripted
from perdure.testing.scripted import ScriptedModel
from tests.temporal.bench import FAST, Bench, rows_of
from tests.temporal.test_history import from_log

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@tool(effect="read")
async def look_up() -> str:
    """Look it up."""
    return "dusk"


def down(name: str) -> ScriptedModel:
    return scripted(fail("the provider is down", retryable=True), name=name, loop=True)


def answering(name: str) -> ScriptedModel:
    return scripted(call("look_up"), lambda transcript: say(f"It is {last_result(transcript)}."), name=name)


def agent_of(bench: Bench, *models: ScriptedModel) -> Agent:
    return Agent(bench.queue, model=models[0], fallbacks=models[1:], tools=[look_up], model_retry=FAST)


async def test_who_answered_is_told_alike_by_log_store_and_history(bench: Bench) -> None:
    agent = agent_of(bench, down("first"), down("second"), answering("third"))
    async with bench.app(agent) as app:
        task = await app.send("What is it?")
        assert await task.result() == "It is dusk."
        await bench.client.get_workflow_handle(task.id).result()
        stored = await bench.sound(task, app.store)
        logged = await from_log(app.store, task.id)
        history = await attempts(bench.client, task.id)
        begun = await app.store.model_calls(task.id)
    asked = ["first"] * 3 + ["second"] * 3 + ["third"]
    assert [row.model for row in begun] == asked * 2
    assert [(row.turn, row.attempt) for row in begun] == [(turn, n) for turn in (1, 2) for n in range(1, 8)]
    assert _asked(logged) == _asked(history) == asked * 2
    assert [row.data["model"] for row in rows_of(stored, "model.answered")] == ["third", "third"]


def _asked(rows: tuple[AttemptRow, ...]) -> list[str]:
    return [row.model for row in rows if row.activity == "invoke_llm"]


async def test_who_refuses_whoever_asks_is_left_at_once(bench: Bench) -> None:
    refusing = scripted(fail("no such key"), loop=True, name="first")
    async with bench.app(agent_of(bench, refusing, answering("second"))) as app:
        task = await app.send("What is it?")
        assert await task.result() == "It is dusk."
        begun = await app.store.model_calls(task.id)
    assert [row.model for row in begun] == ["first", "second"] * 2


async def test_a_refused_request_is_not_carried_to_another(bench: Bench) -> None:
    refusing = scripted(fail("the context is too long", elsewhere=False), name="first")
    async with bench.app(agent_of(bench, refusing, answering("second"))) as app:
        task = await app.send("What is it?")
        with pytest.raises(RunFailed, match="the context is too long"):
            await task.result()
        assert [row.model for row in await app.store.model_calls(task.id)] == ["first"]


async def test_a_fallback_that_was_taken_out_since_is_named(bench: Bench) -> None:
    """The task's start records its models; a worker of a changed agent says which one it lacks."""
    before = agent_of(bench, down("first"), answering("second"))
    async with bench.app(replace(before, fallbacks=())) as app:
        task = app.task(await bench.start(before))
        with pytest.raises(RunFailed, match=r"Agent\.fallbacks: this worker has no model 'second'; put it back"):
            await task.result()


async def test_models_that_changed_places_are_found_by_their_names(bench: Bench) -> None:
    before = agent_of(bench, down("first"), answering("second"))
    async with bench.app(agent_of(bench, answering("second"), down("first"))) as app:
        task = app.task(await bench.start(before))
        assert await task.result() == "It is dusk."
        begun = await app.store.model_calls(task.id)
    assert [row.model for row in begun] == (["first"] * 3 + ["second"]) * 2


async def test_a_model_that_was_exchanged_is_served_in_its_place(bench: Bench) -> None:
    before = agent_of(bench, down("first"), down("second"))
    async with bench.app(agent_of(bench, answering("newer"), answering("newest"))) as app:
        task = app.task(await bench.start(before))
        assert await task.result() == "It is dusk."
        assert {row.model for row in await app.store.model_calls(task.id)} == {"newer"}
