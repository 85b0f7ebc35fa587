"""What waits when a run ends without an answer, and what starts it (A1, A4 to A8; B2; rules R1 to R5, R9)."""

import pytest

from tests.races.stage import Race, dies
from tests.temporal.bench import rows_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def failing(race: Race) -> None:
    """Bring a run to where it is failing: its end is decided, and a call that is deaf to it still flies."""
    await race.start("doubt", "doubtful", "work")
    await race.tool_reached("work")


@dies("run.ending", without={"an-unanswered-end-parks": "instead of being parked"})
async def test_a1_what_came_while_a_run_failed_is_parked_and_the_next_message_runs_all(race: Race) -> None:
    await failing(race)
    await race.send("B", "queue")
    race.let_go("doubtful")
    await race.event("tool.in_doubt")
    await race.send("A", "queue")
    await race.steer("B")
    race.let_go("work")
    await race.died()
    await race.parks("B", "A")
    assert await race.ends() == [("failed", "tool")]
    await race.send("next")
    await race.event("run.ended", end="answered")
    assert await race.promoted() == ["doubt", "B", "A", "next"]


@dies("intake.after/new", without={"an-open-run-takes-what-is-parked": "is-parked.new"})
async def test_a4_a_parked_follow_up_goes_first_and_the_old_reply_is_not_asked_for_again(race: Race) -> None:
    await race.start("fail", "model")
    await race.model_asked()
    await race.send("F", "queue")
    race.let_go("model")
    await race.event("run.ended", end="failed")
    await race.parks("F")
    await race.send("new")
    second = await race.event("message.promoted", count=2)
    assert second.data["message_id"] == race.message("F")
    await race.rests()
    assert race.asked() == [(1, "fail"), (2, "fail,F"), (3, "fail,F,new")]


@dies("run.ending", without={"a-stopped-end-parks": "instead of being parked"})
async def test_a5_what_was_queued_before_a_stop_and_sent_while_it_winds_down_is_parked(race: Race) -> None:
    await race.start("work", "work")
    await race.tool_reached("work")
    await race.send("A", "queue")
    assert await race.stop()
    await race.send("B")
    race.let_go("work")
    await race.died()
    await race.parks("A", "B")
    assert await race.ends() == [("stopped", "stopped")]
    assert await race.promoted() == ["work"]


async def one_parked(race: Race, lane: str) -> None:
    """Let a run fail behind which P waits."""
    await race.start("fail", "model")
    await race.model_asked()
    await race.send("P", "queue" if lane == "queue" else "steer")
    race.let_go("model")
    await race.event("run.ended", end="failed")
    await race.parks("P")


@dies("model.replied", without={"a-move-moves-the-tail": "P is not in a run"})
async def test_a6_a_parked_message_moved_to_steer_had_started_at_once_and_resumes(race: Race) -> None:
    await one_parked(race, "queue")
    race.hold("model")
    await race.steer("P")
    assert (await race.state()).run is not None, "P is not in a run"
    race.let_go("model")
    await race.event("run.ended", end="answered")
    assert await race.promoted() == ["fail", "P"]
    assert race.asked() == [(1, "fail"), (2, "fail,P"), (2, "fail,P")]


@dies("message.changed/P", without={"a-steer-can-be-moved": "P is not in a run"})
async def test_a7_a_parked_steer_asked_for_the_steer_lane_again_runs(race: Race) -> None:
    await one_parked(race, "steer")
    race.hold("model")
    await race.steer("P")
    assert (await race.state()).run is not None, "P is not in a run"
    race.let_go("model")
    await race.event("run.ended", end="answered")
    assert await race.promoted() == ["fail", "P"]
    assert len(rows_of(await race.log(), "message.moved")) == 1


@dies("persist.after", without={"a-known-message-is-known": "is admitted by row"})
async def test_a8_a_parked_message_that_is_sent_again_changes_nothing(race: Race) -> None:
    await one_parked(race, "steer")
    before = await race.state()
    number = next(p.admitted for p in before.inbox)
    assert await race.send("P") == number
    await race.parks("P")
    await race.stage.kill()
    assert await race.state() == before
    assert race.asked() == [(1, "fail")]


@dies("run.ending", without={"answered-needs-empty-lanes": "early has a run of its own"})
async def test_b2_a_steer_that_comes_as_the_run_ends_is_acted_on_once(race: Race) -> None:
    """One that came before the end joins the run, one that comes while it commits is decided by the server."""
    await race.start("first", "model")
    await race.model_asked()
    await race.send("early", "steer")
    race.let_go("model")
    await race.died()
    await race.send("late", "steer")
    await race.rests()
    runs = {row.data["message_id"]: row.run for row in rows_of(await race.log(), "message.promoted")}
    assert await race.promoted() == ["first", "early", "late"]
    assert runs[race.message("early")] == 1, "early has a run of its own"
