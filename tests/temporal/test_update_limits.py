"""Temporal's limits on updates, ten at once and two thousand in one history, are nobody's problem."""

import asyncio
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType

from perdure import Task, tool
from perdure.core import limits
from perdure.core.errors import InvalidInput, MessageNotWaiting, Unavailable
from perdure.testing import call, say
from tests.temporal.bench import Bench, Gate, event, item, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def updates(bench: Bench, task: Task) -> list[int]:
    """Return how many updates each of the task's histories has taken."""
    accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    histories = await bench.histories(task.id)
    return [sum(each.event_type == accepted for each in history.events) for history in histories]


async def test_three_hundred_mixed_operations_at_once(bench: Bench) -> None:
    """P1: each is answered, by what it asked or by a refusal that names it, and every message is accounted for."""
    agent = bench.agent(
        call("ask_participant", {"question": "Which?"}), *([say("done")] * 400), after_answer="input_required"
    )
    async with bench.app(agent) as app:
        task = await app.send("go", message_id="m-first")
        question = await event(task, "help.requested")
        early = [f"e-{n}" for n in range(40)]
        await asyncio.gather(*(task.send("early", message_id=name, lane="queue") for name in early))
        late = [f"l-{n}" for n in range(150)]
        asked: list[Any] = []
        for number in range(300):
            match number % 15:
                case 0 | 1 | 2 | 3 | 4 | 5 | 6:
                    asked.append(task.send("late", message_id=late[len(asked) // 2], lane="queue"))
                case 7 | 8 | 9:
                    asked.append(task.steer(early[number % 40]))
                case 10 | 11:
                    asked.append(task.withdraw(early[(number * 7) % 40]))
                case 12 | 13:
                    asked.append(task.answer(question.help_id, f"answer {number}"))
                case _:
                    asked.append(task.stop())
        found = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in found if isinstance(each, BaseException)]
        assert all(isinstance(each, InvalidInput) for each in refused), refused
        for each in refused:
            assert isinstance(each, MessageNotWaiting) or each.field == "help_id", each  # type: ignore[attr-defined]
        assert [each for each in found if each is True], "one of the stops stopped the run"
        took = sum(await updates(bench, task))
        assert took < 30, f"300 operations took {took} updates"

        async def rests() -> bool:
            return not (await task.inbox()).runnable and (await task.row()).state == "input_required"

        await until(rests)
        inbox = await task.inbox()
        stored = await bench.sound(task, app.store, replays=False)
    admitted = [str(row.data["message_id"]) for row in rows_of(stored, "message.admitted")]
    promoted = [str(row.data["message_id"]) for row in rows_of(stored, "message.promoted")]
    withdrawn = [str(row.data["message_id"]) for row in rows_of(stored, "message.withdrawn")]
    waiting = [each.message_id for each in inbox.messages]
    assert len(set(admitted)) == len(admitted)
    assert sorted(promoted + withdrawn + waiting) == sorted(admitted)


async def test_two_and_a_half_thousand_operations_on_a_task_that_works(bench: Bench) -> None:
    """Alone and in crowds, over as many histories as it takes: none fails but by a refusal that names it."""
    agent = bench.agent(*([say("done")] * 3_000), after_answer="input_required")
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=500))
        await event(task, "run.ended")
        asked, refused = 0, 0

        async def has_room() -> bool:
            return len((await task.inbox()).messages) < 128

        for round_ in range(25):
            names = [f"m-{round_}-{n}" for n in range(40)]
            crowd: list[Any] = [task.send("more", message_id=name, lane="queue") for name in names]
            crowd += [task.steer(name) for name in names] + [task.withdraw(name) for name in names[:10]]
            found = await asyncio.gather(*crowd, return_exceptions=True)
            asked += len(found)
            wrong = [each for each in found if isinstance(each, BaseException)]
            assert all(isinstance(each, MessageNotWaiting) for each in wrong), wrong
            refused += len(wrong)
            for number in range(10):
                await task.send("alone", message_id=f"a-{round_}-{number}")
                asked += 1
            await until(has_room, 60)  # of 256 that may wait
        assert asked == 2_500
        assert await task.stop() in {True, False}

        async def rests() -> bool:
            return not (await task.inbox()).runnable and (await task.row()).state == "input_required"

        await until(rests, 120)
        waiting = [each.message_id for each in (await task.inbox()).messages]
        stored = await bench.sound(task, app.store, replays=False)
        histories = await bench.histories(task.id)
    admitted = [str(row.data["message_id"]) for row in rows_of(stored, "message.admitted")]
    promoted = [str(row.data["message_id"]) for row in rows_of(stored, "message.promoted")]
    withdrawn = [str(row.data["message_id"]) for row in rows_of(stored, "message.withdrawn")]
    assert len(admitted) == len(set(admitted)) == 1 + 25 * 50
    assert sorted(promoted + withdrawn + waiting) == sorted(admitted)
    assert len(histories) > 1


async def test_in_one_step_a_task_takes_in_what_can_be_replayed_and_always_a_stop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P7: what is refused leaves no trace in the history; what is known is told; and the way out is never closed."""
    monkeypatch.setattr(limits, "HISTORY_EVENTS_TAKEN_MAX", 150)
    gate = Gate()

    @tool(effect="read", name="held")
    async def hold() -> str:
        await gate.pass_through()
        return "x"

    agent = bench.agent(call("held"), *([say("done")] * 99), tools=[hold], after_answer="input_required")
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=150))
        await gate.wait_reached()
        taken: dict[str, int] = {}
        problem = ""
        while not problem:
            name = f"m-{len(taken)}"
            try:
                taken[name] = await task.send("more", message_id=name, lane="queue")
            except Unavailable as error:
                problem = str(error)
        assert "before its present step ends" in problem
        assert 5 < len(taken) < 30
        before = await events(bench, task)
        for refused in (task.send("more", message_id="m-new"), task.steer("m-0"), task.withdraw("m-0")):
            with pytest.raises(Unavailable):
                await refused
        assert await events(bench, task) == before
        assert await task.send("more", message_id="m-0", lane="queue") == taken["m-0"]
        assert await task.stop() is True
        await event(task, "run.ended", end="stopped")

        async def continued() -> bool:
            return len(await bench.histories(task.id)) > 1

        await until(continued)
        await task.send("go on", message_id="m-last")
        await event(task, "run.ended", end="answered")
        stored = await bench.sound(task, app.store)
    promoted = [str(row.data["message_id"]) for row in rows_of(stored, "message.promoted")]
    assert sorted(promoted) == sorted(["m-first", "m-last", *taken])


async def events(bench: Bench, task: Task) -> int:
    """Return how long the task's histories are."""
    return sum(len(history.events) for history in await bench.histories(task.id))


async def test_an_answer_by_message_is_taken_however_full_the_history_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads out of the step that fills it; what answers nothing is refused."""
    monkeypatch.setattr(limits, "HISTORY_EVENTS_TAKEN_MAX", 12)
    agent = bench.agent(call("ask_participant", {"question": "Who?"}), say("done"), after_answer="input_required")
    async with bench.app(agent) as app:
        task = await app.send("first")
        question = await event(task, "help.requested")
        with pytest.raises(Unavailable, match="before its present step ends"):
            await task.send("more", lane="queue")
        (taken,) = (await bench.inbox(task.id, item("m-answer", "me", answers=True))).receipts
        assert (taken.problem, taken.number is None) == (None, False)
        assert await task.result() == "done"
        (answered,) = rows_of(await bench.sound(task, app.store), "help.answered")
    assert answered.data["help_id"] == question.help_id
