"""What a death must not change: messages, runs and counts (A2, A3, A14, A15; B6; rules R3, R10, R12; P1)."""

import os
import signal

import pytest
from temporalio.api.enums.v1 import EventType

from perdure.core import limits
from tests.races.stage import Race, dies
from tests.supervisor.fleet import is_gone
from tests.supervisor.test_quarantine import failures
from tests.temporal.bench import rows_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

KNOWN = {"a-known-message-is-known": "is admitted by row"}


@dies("intake.after/early", without=KNOWN)
async def test_a2_a_message_admitted_while_a_run_is_set_up_is_acted_on_once(race: Race) -> None:
    """The worker dies while its tools connect, and the next one when its run is about to open: nothing was begun.

    Then the message's rows are in the store and nobody knows; whoever sent it sends it again.
    """
    async with race.stage.tools_connect() as connecting_pid:
        await race.start("first")
        await race.unanswered(race.send("early"))
        os.kill(connecting_pid, signal.SIGKILL)
        await race.until(lambda: is_gone(connecting_pid), "who connects is dead")
    await race.died()
    assert race.asked() == [], "its run has begun"
    number = await race.send("early")
    assert await race.send("early") == number
    await race.rests()
    assert await race.promoted() == ["first", "early"]
    assert race.asked() == [(1, "first"), (2, "first,early")]


@dies("model.replied", without={"a-death-is-no-end": "('failed', 'model') != ('answered', '')"})
async def test_a3_a_run_opened_after_a_failed_end_resumes(race: Race) -> None:
    await race.start("fail")
    await race.event("run.ended", end="failed")
    await race.send("new")
    await race.event("run.ended", count=2)
    assert await race.ends() == [("failed", "model"), ("answered", "")]
    assert race.asked() == [(1, "fail"), (2, "fail,new"), (2, "fail,new")]


@dies(without={"a-shutdown-is-no-crash": "assert (0, 1) == (0, 0)"})
async def test_a14_a_shutdown_during_a_model_request_resumes_with_no_crash_counted(race: Race) -> None:
    """Asserted before the provider replies: a turn that ends well takes one off."""
    await race.start("first", "model")
    await race.model_asked()
    await race.stage.supervisor.roll()
    await race.model_asked(2)
    state = await race.state()
    assert (state.crashes, state.shared_deaths) == (0, 0)
    race.let_go("model")
    await race.event("run.ended", end="answered")
    failed = rows_of(await race.log(), "model.failed")
    assert {row.data["failure"] for row in failed} == {"shutdown"}


@dies(without={"only-deaths-alone-count": "deaths in company"})
async def test_a15_a_task_that_kills_its_worker_each_time_ends_at_its_limit_and_costs_its_neighbour_nothing(
    race: Race,
) -> None:
    neighbour = race.beside("neighbour")
    await neighbour.start("work", "work")
    await neighbour.tool_reached("work")
    await race.start("poison")
    ended = await race.event("run.ended")
    assert ended.data["reason"] == "crash_loop"
    before, beside = await neighbour.state(), await failures(race.stage.bench, neighbour.id)
    assert beside, "the poison did cost its neighbour a worker"
    counted = (before.crashes, before.shared_deaths)
    assert counted == (0, len(beside)), "deaths in company are no crashes of the neighbour's"
    assert len(beside) <= limits.SHARED_DEATHS_BEFORE_QUARANTINE
    neighbour.let_go("work")
    await neighbour.event("run.ended", end="answered")
    after = await neighbour.state()
    assert (after.crashes, after.shared_deaths) == (0, 0)
    told = await failures(race.stage.bench, race.id)
    alone = [failure for failure in told.values() if failure.alone]
    assert len(alone) == limits.CRASHES_MAX, "deaths alone"
    assert 1 <= len(told) - len(alone) <= limits.SHARED_DEATHS_BEFORE_QUARANTINE
    assert (await race.state()).entries == 2, "nothing grows with each try"
    assert await neighbour.promoted() == ["work"]


@dies(without=KNOWN)
async def test_b6_a_message_that_arrives_before_anything_is_cached_takes_effect(race: Race) -> None:
    await race.start("first")
    await race.event("run.ended", end="answered")
    async with race.stage.nobody_comes():
        await race.stage.kill()
        await race.unanswered(race.send("early", "queue"))
    await race.event("message.promoted", count=2)
    await race.send("early", "queue")
    await race.rests()
    assert await race.promoted() == ["first", "early"]
    (history,) = await race.stage.bench.histories(race.id)
    accepted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED
    assert any(each.event_type == accepted for each in history.events)
