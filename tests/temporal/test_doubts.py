"""Outcomes that nobody can tell, from end to end: the model is told, a person is asked, or the run fails (P4)."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from perdure import Call, Check, OutcomeUnknown, RunFailed, tool
from perdure.core.agent import InDoubt
from perdure.core.errors import InvalidInput
from perdure.core.ports import Store, ToolPort
from perdure.core.state import TERMINAL
from perdure.testing import call, say
from tests.temporal.bench import WAIT_S, Bench, event, results_of, rows_of, until
from tests.temporal.outside import Outside

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

PAY = call("pay", {"order_id": "A-1", "amount": 79.0})


def paying(outside: Outside, in_doubt: InDoubt, check: Callable[[str], object] | None = None) -> ToolPort:
    """Return a tool that reaches the outside and then cannot tell."""

    @tool(in_doubt=in_doubt, check=check, settle_s=0)
    async def pay(order_id: str, amount: float, call: Call) -> str:
        """Pay."""
        outside.note("pay", call.idempotency_key)
        raise OutcomeUnknown(call.idempotency_key, "the bank timed out")

    return pay


async def outcomes(store: Store, task_id: str) -> list[tuple[str, str, str | None]]:
    return [(row.key.removeprefix(task_id), row.outcome, row.status) for row in await store.effects(task_id)]


async def test_a_person_says_that_it_happened(bench: Bench) -> None:
    agent = bench.agent(PAY, say("paid"), tools=[paying(bench.outside, "ask")])
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        assert asked.help_id == f"{task.id}/1/0"
        assert asked.text.startswith('Did pay(amount=79.0, order_id="A-1") happen? It was begun under the key')
        assert "the bank timed out" in asked.text
        assert asked.data["choices"] == ["it happened", "it did not happen"]
        await event(task, "task.status", state="input_required", reason="help")
        with pytest.raises(InvalidInput, match='answer "it happened" or "it did not happen"'):
            await task.answer(asked.help_id, "no idea")
        await task.answer(asked.help_id, "It happened: receipt r-17")
        assert await task.result() == "paid"
        with pytest.raises(InvalidInput):
            await task.answer(asked.help_id, "it did not happen")
        stored = await bench.sound(task, app.store)
        assert await outcomes(app.store, task.id) == [("/1/0", "done", "ok")]
    (result,) = results_of(stored)
    assert (result.result.status, result.result.text) == ("ok", "A person says: It happened: receipt r-17")
    assert bench.outside.count("pay") == 1


async def test_a_person_says_that_it_did_not_happen_and_the_model_may_ask_again(bench: Bench) -> None:
    agent = bench.agent(PAY, PAY, say("done"), tools=[paying(bench.outside, "ask")])
    async with bench.app(agent) as app:
        task = await app.send("go")
        first = await event(task, "help.requested")
        await task.answer(first.help_id, "it did not happen")
        second = await event(task, "help.requested", after=first.number)
        assert second.help_id == f"{task.id}/2/0"
        await task.answer(second.help_id, "it happened")
        assert await task.result() == "done"
        stored = await bench.sound(task, app.store)
        assert await outcomes(app.store, task.id) == [("/1/0", "closed", None), ("/2/0", "done", "ok")]
    assert [result.result.status for result in results_of(stored)] == ["not_begun", "ok"]
    assert [noted.key for noted in bench.outside.of("pay")] == [f"{task.id}/1/0", f"{task.id}/2/0"]


async def test_the_run_fails_and_says_which_outcome_is_unknown(bench: Bench) -> None:
    agent = bench.agent(PAY, say("never mind"), tools=[paying(bench.outside, "fail")])
    async with bench.app(agent) as app:
        task = await app.send("go")
        with pytest.raises(RunFailed, match=r"the outcome of pay is unknown .*the bank timed out") as failed:
            await task.result()
        assert failed.value.reason == "tool"
        unknown = failed.value.__cause__
        assert isinstance(unknown, OutcomeUnknown)
        assert unknown.key == f"{task.id}/1/0"
        assert "the bank timed out" in unknown.reason
        await task.send("go on")
        assert await task.result() == "never mind"
        stored = await bench.sound(task, app.store)
    assert [result.result.status for result in results_of(stored)] == ["unknown"]
    assert bench.outside.count("pay") == 1


@pytest.mark.parametrize("in_doubt", ["tell", "ask", "fail"])
async def test_a_check_that_can_tell_spares_all_that(bench: Bench, in_doubt: InDoubt) -> None:
    pay = paying(bench.outside, in_doubt, lambda key: Check.happened("the bank has it"))
    agent = bench.agent(PAY, say("paid"), tools=[pay])
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await task.result() == "paid"
        stored = await bench.sound(task, app.store)
    assert [result.result.text for result in results_of(stored)] == ["the bank has it"]
    assert not rows_of(stored, "tool.in_doubt")
    (failed,) = rows_of(stored, "tool.failed")
    assert failed.data["failure"] == "in_doubt"
    assert str(failed.data["message"]).startswith("OutcomeUnknown: the outcome of")


async def test_a_question_outlives_its_worker(bench: Bench) -> None:
    agent = bench.agent(PAY, say("paid"), tools=[paying(bench.outside, "ask")])
    async with bench.app(agent) as app:
        task = await app.send("go")
        asked = await event(task, "help.requested")
        await event(task, "task.status", state="input_required")
    async with bench.app(agent) as app:
        again = app.task(task.id)
        await again.answer(asked.help_id, "it happened")
        assert await again.result() == "paid"
        assert (await again.row()).state in TERMINAL
        await bench.sound(again, app.store)
    assert bench.outside.count("pay") == 1


async def test_a_result_that_comes_late_is_an_event_and_the_same_call_gets_it(bench: Bench) -> None:
    entered, release = threading.Event(), threading.Event()

    @tool(timeout_s=0.5, settle_s=0)
    def pay(order_id: str, amount: float, call: Call) -> str:
        """Pay."""
        bench.outside.note("pay", call.idempotency_key)
        entered.set()
        release.wait(WAIT_S)
        return "receipt r-17"

    agent = bench.agent(PAY, say("unknown"), PAY, PAY, say("paid"), tools=[pay], after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go")
        assert await asyncio.to_thread(entered.wait, WAIT_S)
        assert await task.result() == "unknown"
        assert await outcomes(app.store, task.id) == [("/1/0", "open", None)]
        release.set()

        async def recorded() -> bool:
            return await outcomes(app.store, task.id) == [("/1/0", "done", "ok")]

        await until(recorded)
        await task.send("again")
        late = await event(task, "tool.late")
        assert late.data == {"key": f"{task.id}/1/0", "status": "ok", "text": "receipt r-17"}
        assert await task.result() == "paid"
        stored = await bench.sound(task, app.store)
    first, second, third = (result.result for result in results_of(stored))
    assert first.status == "unknown"
    assert second.status == "ok"
    assert second.text.endswith("had ended after all, its result came late: receipt r-17")
    assert third.text == "receipt r-17"
    assert [noted.key for noted in bench.outside.of("pay")] == [f"{task.id}/1/0", f"{task.id}/4/0"]
    assert len(rows_of(stored, "tool.late")) == 1
