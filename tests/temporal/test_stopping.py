"""Stop and cancel at every moment: what was acknowledged holds, and nothing reaches the outside after it (P9, R11).

Longer than other files: it is one table of moments, each a short test.
"""

import asyncio
import contextlib

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus

from perdure import Check, Task, tool
from perdure.a2a import extension
from perdure.core.agent import EffectClass, RetryPolicy
from perdure.core.content import ToolEntry
from perdure.core.errors import InvalidInput, TaskClosed
from perdure.core.ports import Store, ToolPort
from perdure.testing import call, calls, fail, results, say
from tests.a2a.desk import desk, reason_of
from tests.temporal.bench import Bench, Gate, ended, event, item, logged, results_of, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def stopped(task: Task) -> None:
    assert await task.stop()
    await event(task, "run.ended", end="stopped")


def deaf(gate: Gate) -> ToolPort:
    """Return a reading tool that waits at a gate, and does not end when it is first told to."""

    @tool(effect="read")
    async def held() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await gate.pass_through()
        await gate.pass_through()
        return "x"

    return held


async def goes_on(bench: Bench, task: Task, store: Store, answer: str = "done") -> None:
    """After a stop the task rests; the next message goes on from there (R13)."""
    row = await task.row()
    assert (row.state, row.reason) == ("input_required", "stopped")
    await task.send("go on")
    assert await task.result() == answer
    await bench.sound(task, store)


async def test_during_a_model_call(bench: Bench) -> None:
    agent = bench.agent(lambda transcript: say("slow", delay_s=30.0 if len(transcript) == 1 else 0.0))
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "model.started")
        await stopped(task)
        await goes_on(bench, task, app.store, "slow")


@pytest.mark.parametrize(("effect", "status"), [("read", "error"), ("idempotent", "unknown"), ("once", "unknown")])
async def test_during_a_tool_call_of_each_class(bench: Bench, effect: EffectClass, status: str) -> None:
    gate = Gate()

    @tool(effect=effect)
    async def held() -> str:
        bench.outside.note("held")
        await gate.pass_through()
        return "never"

    agent = bench.agent(call("held"), say("done"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        await stopped(task)
        await goes_on(bench, task, app.store)
        (result,) = results_of(await logged(app.store, task.id))
    assert result.result.status == status
    assert bench.outside.count("held") == 1


async def test_a_stopped_call_is_resolved_by_its_check(bench: Bench) -> None:
    """R14: the next run tells the model what became of the call that the stop cut."""
    gate = Gate()

    @tool(effect="once", check=lambda key: Check.happened("it did happen"), settle_s=0)
    async def held() -> str:
        await gate.pass_through()
        return "never"

    agent = bench.agent(call("held"), say("done"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        await stopped(task)
        await goes_on(bench, task, app.store)
        (result,) = results_of(await logged(app.store, task.id))
    assert (result.result.status, result.result.text) == ("ok", "it did happen")


async def test_a_call_that_ended_before_its_stop_keeps_its_result(bench: Bench) -> None:
    """Two calls in line: one is cut by the stop; the other had ended, and a third never began."""
    gate = Gate()

    @tool(effect="once")
    async def act(name: str) -> str:
        bench.outside.note(name)
        if name == "second":
            await gate.pass_through()
        return f"{name} done"

    names = ("first", "second", "third")
    agent = bench.agent(calls(*(call("act", {"name": name}) for name in names)), say("done"), tools=[act])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        await stopped(task)
        await goes_on(bench, task, app.store)
        found = [entry.result.status for entry in results_of(await logged(app.store, task.id))]
    assert found == ["ok", "unknown", "not_begun"]
    assert [noted.what for noted in bench.outside.all()] == ["first", "second"]


async def test_during_a_backoff_no_further_request_is_made(bench: Bench) -> None:
    """B4: a provider that answers 429 for minutes; the stop takes effect at once."""

    def busy(transcript: tuple[object, ...]) -> object:
        bench.outside.note("request")
        return fail("429", retryable=True, retry_after_s=600)

    agent = bench.agent(busy, model_retry=RetryPolicy(attempts_max=5))
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "model.failed")
        await until(lambda: _waits(task))
        await stopped(task)
        assert not (await task.monitor()).flights
        await bench.sound(task, app.store)
    assert bench.outside.count("request") == 1


async def _waits(task: Task) -> bool:
    return any(flight.status == "waiting" for flight in (await task.monitor()).flights)


async def test_with_nothing_to_stop_nothing_is_recorded(bench: Bench) -> None:
    agent = bench.agent(say("yes"), say("done"), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "run.ended")
        before = (await bench.tasks.state(task.id)).last_number
        assert await task.stop() is False
        assert (await bench.tasks.state(task.id)).last_number == before
        await task.send("more")
        await event(task, "run.ended", count=2, end="answered")
        await bench.sound(task, app.store)


async def test_before_the_run_opened_it_counts(bench: Bench) -> None:
    """A11: accepted before `run.started`: recorded, and the message is parked."""
    agent = bench.agent(say("done"))
    async with bench.halves(agent) as halves:
        task = halves.task(await bench.start(agent))
        stopping = asyncio.create_task(task.stop())
        await until(lambda: _stopped_before_start(bench, task))
        async with halves.writing():
            assert await stopping
            row = await event(task, "run.stopped_before_start")
            assert rows_of(await logged(halves.store, task.id), "run.started") == []
            await task.send("go on")
            assert (await event(task, "message.promoted", message_id="m-first")).number > row.number
            await bench.sound(task, halves.store)


async def _stopped_before_start(bench: Bench, task: Task) -> bool:
    return (await bench.tasks.state(task.id)).status == "input_required"


@pytest.mark.parametrize("round_", range(4))
async def test_after_an_acknowledged_stop_nothing_reaches_the_outside(bench: Bench, round_: int) -> None:
    """P9, with the fence: a call that was started, but had not called its tool yet, does not call it."""

    @tool(effect="read")
    async def touch(name: str) -> str:
        bench.outside.note(name)
        return "ok"

    steps = [calls(*(call("touch", {"name": f"{turn}.{index}"}) for index in range(3))) for turn in range(60)]
    agent = bench.agent(*steps, tools=[touch])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "tool.started", count=1 + 4 * round_)
        assert await task.stop()
        touched = len(bench.outside.all())
        await event(task, "run.ended", end="stopped")
        # Whatever was on its way has come down by now: the run's end waits for all flights.
        assert len(bench.outside.all()) == touched
        await bench.sound(task, app.store, replays=round_ == 0)


async def test_a_stop_twice_ends_the_run_once(bench: Bench) -> None:
    gate = Gate()

    held = deaf(gate)

    agent = bench.agent(call("held"), say("done"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        # The later one finds a run that winds down: it records nothing, and is acknowledged after the same fence.
        assert all(await asyncio.gather(task.stop(), task.stop()))
        gate.open.set()
        await event(task, "run.ended", end="stopped")
        assert not await task.stop()
        stored = await bench.sound(task, app.store)
    assert len(rows_of(stored, "run.stop_requested")) == 1


async def test_what_waited_parks_and_the_next_message_takes_all(bench: Bench) -> None:
    """A5, B1: parked messages join the next run, each once, none as an answer to something else."""
    gate = Gate()

    @tool(effect="read")
    async def held() -> str:
        await gate.pass_through()
        return "x"

    agent = bench.agent(call("held"), *([say("done")] * 4), tools=[held], after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go", message_id="m-1")
        await gate.wait_reached()
        await bench.inbox(task.id, item("m-2", lane="queue"), item("m-3", lane="steer"))
        await stopped(task)
        assert [p.message_id for p in (await bench.tasks.state(task.id)).inbox] == ["m-2", "m-3"]
        await task.send("next", message_id="m-4")
        await event(task, "run.ended", end="answered")
        stored = await bench.sound(task, app.store)
    promoted = [str(row.data["message_id"]) for row in rows_of(stored, "message.promoted")]
    assert sorted(promoted) == ["m-1", "m-2", "m-3", "m-4"]


# --- cancel -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["update", "signal", "temporal"])
async def test_a_cancel_is_terminal_whoever_asks(bench: Bench, how: str) -> None:
    gate = Gate()

    @tool(effect="once")
    async def held() -> str:
        await gate.pass_through()
        return "x"

    agent = bench.agent(call("held"), say("never"), tools=[held])
    async with bench.app(agent) as app:
        task = await app.send("go")
        await gate.wait_reached()
        await bench.inbox(task.id, item("m-waits", lane="queue"))
        handle = bench.client.get_workflow_handle(task.id)
        match how:
            case "update":
                await task.cancel()
            case "signal":
                await handle.signal("cancel")
            case _:
                await handle.cancel()
        status = await ended(task, "canceled")
        assert status.data["unprocessed"] == ["m-waits"]
        assert status.data["open_calls"] == ["1/0"]
        await until(lambda: _status(bench, task, WorkflowExecutionStatus.COMPLETED))
        await bench.sound(task, app.store)
        with pytest.raises(TaskClosed):
            await task.cancel()


async def _status(bench: Bench, task: Task, status: WorkflowExecutionStatus) -> bool:
    return (await bench.client.get_workflow_handle(task.id).describe()).status == status


@pytest.mark.parametrize("how", ["update", "temporal"])
async def test_cancel_exactly_when_an_activity_completes(bench: Bench, how: str) -> None:
    """B5: thirty tasks, each canceled in the moment in which its call returns; one terminal state each."""
    gates = [Gate() for _ in range(15)]

    @tool(effect="read")
    async def held(index: int) -> str:
        await gates[index].pass_through()
        return "x"

    def which(transcript: tuple[object, ...]) -> object:
        text = transcript[0].message.text  # type: ignore[attr-defined] # the first entry is the message
        return say("done") if len(transcript) > 1 else call("held", {"index": int(text)})

    agent = bench.agent(*([which] * 2), tools=[held])
    async with bench.app(agent) as app:

        async def race(index: int) -> None:
            task = await app.send(str(index))
            await gates[index].wait_reached()
            gates[index].open.set()
            with contextlib.suppress(TaskClosed):
                if how == "update":
                    await task.cancel()
                else:
                    await bench.client.get_workflow_handle(task.id).cancel()
            with contextlib.suppress(Exception):
                await task.result()
            await until(lambda: _status(bench, task, WorkflowExecutionStatus.COMPLETED))
            row = await task.row()
            assert row.state in {"canceled", "completed"}
            await bench.sound(task, app.store, replays=index < 3)

        await asyncio.gather(*(race(index) for index in range(15)))


@pytest.mark.parametrize("first", ["cancel", "backoff"])
async def test_a_cancel_and_the_end_of_a_backoff_in_one_moment(bench: Bench, first: str) -> None:
    """While no worker is up both happen; the next one hears of them at once, and the wait's end changes nothing."""
    slow = RetryPolicy(attempts_max=5, first_ms=2000, factor=1.0)
    agent = bench.agent(fail("503", retryable=True), say("never"), model_retry=slow)
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "model.failed")
        await until(lambda: _waits(task))
    handle = bench.client.get_workflow_handle(task.id)

    async def fired() -> bool:
        history = await handle.fetch_history()
        return any(each.event_type == EventType.EVENT_TYPE_TIMER_FIRED for each in history.events)

    if first == "backoff":
        await until(fired)
    await handle.cancel()
    await until(fired)
    async with bench.app(agent) as app:
        await ended(app.task(task.id), "canceled")
        await until(lambda: _status(bench, task, WorkflowExecutionStatus.COMPLETED))
        await bench.sound(app.task(task.id), app.store)


async def test_a_stop_of_what_is_being_canceled_says_so(bench: Bench) -> None:
    """After a stop the next message goes on; after a cancel nothing does, and who stops must not be told otherwise."""
    gate = Gate()

    held = deaf(gate)

    agent = bench.agent(call("held"), tools=[held], after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        task = await app.send("go")
        await gate.wait_reached()
        await task.cancel()
        for asked in (task.stop(), task.send("more")):
            with pytest.raises(TaskClosed, match="is being canceled; start a new task"):
                await asked
        refused = (await client.rpc(extension.STOP, {"id": task.id}))["error"]
        assert reason_of(refused["data"]) == "UNSUPPORTED_OPERATION"
        assert "is being canceled" in refused["message"]
        gate.open.set()
        await ended(task, "canceled")
        stored = await bench.sound(task, app.store)
    assert len(rows_of(stored, "run.stop_requested")) == 1


async def test_a_cancel_of_a_resting_task_is_terminal(bench: Bench) -> None:
    agent = bench.agent(say("yes"), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go")
        await event(task, "run.ended")
        await task.cancel()
        await ended(task, "canceled")
        await bench.sound(task, app.store)


# --- questions and answers --------------------------------------------------------------------------------------

ASK = call("ask_participant", {"question": "Which colour?"})


async def test_an_answer_is_the_calls_result_and_is_taken_once(bench: Bench) -> None:
    agent = bench.agent(ASK, lambda transcript: say(f"So {results(transcript)[0].text}."))
    async with bench.app(agent) as app:
        task = await app.send("go")
        question = await event(task, "help.requested")
        assert question.text == "Which colour?"
        assert (await event(task, "task.status", state="input_required")).data["reason"] == "help"
        # P8: while it waits, nothing of it flies and no timer runs.
        assert not (await task.monitor()).flights
        with pytest.raises(InvalidInput, match="help_id"):
            await task.answer("t-1/9/9", "blue")
        with pytest.raises(InvalidInput, match="empty"):
            await task.answer(question.help_id, "  ")
        await task.answer(question.help_id, "blue")
        assert await task.result() == "So blue."
        with pytest.raises(InvalidInput):
            await task.answer(question.help_id, "red")
        await bench.sound(task, app.store)


async def test_two_answers_at_once_are_one(bench: Bench) -> None:
    agent = bench.agent(ASK, lambda transcript: say(results(transcript)[0].text), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("go")
        question = await event(task, "help.requested")
        answers = await asyncio.gather(
            *(task.answer(question.help_id, text) for text in ("red", "blue")), return_exceptions=True
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["InvalidInput", "NoneType"]
        assert await task.result() == ("blue" if answers[0] else "red")
        await bench.sound(task, app.store)


async def test_an_answer_after_the_stop_finds_no_question(bench: Bench) -> None:
    agent = bench.agent(ASK, say("done"))
    async with bench.app(agent) as app:
        task = await app.send("go")
        question = await event(task, "help.requested")
        await stopped(task)
        with pytest.raises(InvalidInput, match="not an open question"):
            await task.answer(question.help_id, "blue")
        await goes_on(bench, task, app.store)
        (result,) = results_of(await logged(app.store, task.id))
    assert isinstance(result, ToolEntry)
    assert result.result.status == "not_begun"


async def test_a_sub_tasks_end_is_recorded_once_it_is_told(bench: Bench) -> None:
    agent = bench.agent(ASK, say("done"))
    async with bench.app(agent) as app:
        task = await app.send("go")
        question = await event(task, "help.requested")
        await bench.client.get_workflow_handle(task.id).signal("child_done", args=["t-child", "completed"])
        row = await event(task, "child.done")
        assert row.data == {"child_id": "t-child", "status": "completed"}
        await task.answer(question.help_id, "blue")
        assert await task.result() == "done"
        await bench.sound(task, app.store)
