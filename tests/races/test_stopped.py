"""Who stops or takes back, wherever the worker dies (A9 to A13, A16, A21; B1, B4, B5; rules R6, R8 to R11)."""

import asyncio
import contextlib
import os

import pytest

from perdure.core.errors import TaskClosed
from tests.races.stage import Race, Stage, dies
from tests.races.test_parked import failing, one_parked
from tests.temporal.bench import entries_of, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@dies("run.ending", without={"an-end-is-decided-once": "the stop that met it changed the end"})
async def test_a9_a_stop_while_the_failed_end_commits_makes_one_end(race: Race) -> None:
    """The worker dies within the very step that commits the end; the stop is there when the next one makes it anew."""
    await failing(race)
    race.let_go("doubtful")
    await race.event("tool.in_doubt")
    async with race.stage.nobody_comes():
        race.let_go("work")
        await race.died()
        await race.unanswered(race.stop())
    await race.event("run.ended")
    assert await race.ends() == [("failed", "tool")], "the stop that met it changed the end"
    assert rows_of(await race.log(), "run.stop_requested") == []
    assert await race.stop() is False
    assert (await race.state()).run is None


@dies("persist.after", without={"nothing-to-stop-is-no-event": "assert True is False"})
async def test_a10_a_stop_after_a_failed_end_with_nothing_new_is_no_event(race: Race) -> None:
    await one_parked(race, "queue")
    await race.died()
    before = await race.state()
    assert await race.stop() is False
    assert await race.state() == before
    await race.parks("P")


@dies("stop.recorded", without={"a-stop-counts-before-the-run": "assert 'run.started' =="})
async def test_a11_a_stop_accepted_before_the_run_opened_counts_and_parks_the_message(race: Race) -> None:
    async with race.stage.nobody_comes():
        await race.stage.kill()
        await race.start("first")
        await race.unanswered(race.stop())
    assert await race.first("run.") == "run.stopped_before_start"
    await race.parks("first")
    assert rows_of(await race.log(), "run.started") == []
    await race.send("second")
    await race.rests()
    assert await race.promoted() == ["first", "second"]


@dies("stop.recorded", "persist.before", without={"no-model-attempt-after-a-stop": "what was stopped went on"})
async def test_a12_a_run_that_a_crash_cut_off_and_that_is_stopped_stays_stopped(race: Race) -> None:
    await race.start("first", "model")
    await race.model_asked()
    async with race.stage.nobody_comes():
        await race.stage.kill()
        await race.unanswered(race.stop())
    await race.died("stop.recorded")
    await race.died("persist.before")
    race.let_go("model")
    await race.event("run.ended")
    told = (await race.ends(), race.asked())
    assert told == ([("stopped", "stopped")], [(1, "first")]), "what was stopped went on"
    await race.parks()


@dies("persist.after", "stop.recorded", without={"a-stop-before-the-run-parks": "instead of being parked"})
async def test_a13_a_message_stopped_right_after_an_answered_end_never_starts_by_itself(race: Race) -> None:
    await race.start("first", "model")
    await race.model_asked()
    async with race.stage.nobody_comes():
        race.let_go("model")
        await race.died("persist.after")
        await race.unanswered(race.send("late"))
        await race.unanswered(race.stop())
    await race.died("stop.recorded")
    await race.event("run.stopped_before_start")
    assert await race.send("late") > 0  # the same message again: durable now, and nothing new
    await race.parks("late")
    assert await race.ends() == [("answered", "")]


@dies("persist.after", without={"no-tool-attempt-after-a-stop": "assert [('failed'"})
async def test_a16_a_stop_and_then_a_crash_stays_stopped(race: Race) -> None:
    await race.start("work", "work")
    await race.tool_reached("work")
    assert await race.stop()
    await race.died()
    await race.event("run.ended")
    assert await race.ends() == [("stopped", "stopped")]
    await race.parks()
    assert len(race.reached("work")) == 1
    assert (await race.state()).crashes == 0


@dies("message.changed/Q", "run.ending", without={"what-is-taken-back-is-gone": "['work', 'Q', 'new']"})
async def test_a21_of_one_taken_back_one_stopped_and_one_new_message_only_the_new_one_runs(race: Race) -> None:
    await race.start("work", "model")
    await race.model_asked()
    await race.send("Q", "queue")
    await race.withdraw("Q")
    assert await race.stop()
    await race.event("run.ended", end="stopped")
    race.let_go("model")
    await race.send("new")
    await race.event("run.ended", end="answered")
    assert await race.promoted() == ["work", "new"]
    assert race.asked()[-1] == (2, "work,new")


@dies("stop.recorded", "run.ending", without={"open-calls-get-a-result": "R14"})
async def test_b1_a_message_after_a_stop_in_the_middle_of_a_tool_is_in_the_next_run(race: Race) -> None:
    """It is no answer to what was open: the call gets a result of its own first."""
    await race.start("work", "work")
    await race.tool_reached("work")
    race.let_go("work")
    stopping = asyncio.create_task(race.stop())
    await race.died("stop.recorded")
    await stopping
    await race.send("next")
    await race.rests()
    assert await race.promoted() == ["work", "next"]
    kinds = [entry.kind for entry in entries_of(await race.log())]
    assert kinds == ["user", "model", "tool", "user", "model"], "R14"


@dies("stop.recorded", without={"waits-end-with-their-run": "the run waits on"})
async def test_b4_a_stop_while_a_provider_refuses_takes_effect_at_once(race: Race) -> None:
    await race.start("busy")
    await race.event("model.failed")
    await race.stage.kill()
    assert await race.stop()
    assert (await race.state()).run is None, "the run waits on"
    assert await race.ends() == [("stopped", "stopped")]
    assert race.asked() == [(1, "busy")]


CANCELS = 100 if os.environ.get("PERDURE_TEST_FULL") == "1" else 8
AT_ONCE = 4


async def test_b5_a_cancel_exactly_when_an_activity_completes_makes_one_terminal_state(stage: Stage) -> None:
    """Twice the worker is killed among them; each task has one terminal state, and its workflow has returned."""
    lanes = asyncio.Semaphore(AT_ONCE)
    reached = stage.bench.outside

    async def raced(number: int) -> str:
        async with lanes:
            task = await stage.app.send("brief", task_id=f"{stage.bench.queue}-b5-{number}")
            key = f"{task.id}/1/0"
            await until(lambda: any(noted.key == key for noted in reached.of("brief")), 30)
            if number in {CANCELS // 3, 2 * CANCELS // 3}:
                await stage.kill()
            with contextlib.suppress(TaskClosed):
                await task.cancel()
            assert await stage.bench.tasks.returned(task.id, 30)
            stored = await stage.bench.sound(task, stage.app.store, replays=number < 3)
            states = [str(row.data["state"]) for row in rows_of(stored, "task.status")]
            assert states[-1] == "canceled"
            return states[-1]

    assert await asyncio.gather(*(raced(number) for number in range(CANCELS))) == ["canceled"] * CANCELS
