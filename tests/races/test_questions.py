"""Messages and questions that cross (B1): a message is an answer only where its sender may have meant one."""

import pytest

from perdure.a2a.extension import URI
from perdure.testing import call, results, say
from tests.a2a.desk import desk
from tests.temporal.bench import Bench, event, rows_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_b1_a_message_with_a_lane_is_no_answer_to_the_question_that_is_open(bench: Bench) -> None:
    agent = bench.agent(
        call("ask_participant", {"question": "Which one?"}),
        lambda transcript: say(results(transcript)[0].text),
        say("done"),
        after_answer="input_required",
    )
    async with bench.app(agent) as app, desk(app) as client:
        asked = await client.send()
        lane = {"metadata": {URI: {"lane": "queue"}}}
        await client.send("and one more", message_id="m-2", taskId=asked["id"], wait=False, **lane)
        task = app.task(asked["id"])
        admitted = await event(task, "message.admitted", message_id="m-2")
        assert admitted.data["lane"] == "queue"
        await client.send("the red one", message_id="m-3", taskId=asked["id"])
        await event(task, "message.promoted", message_id="m-2")
        await event(task, "run.ended", end="answered")
        stored = await bench.sound(task, app.store)
    assert [row.data["text"] for row in rows_of(stored, "help.answered")] == ["the red one"]


async def test_without_a_lane_it_is_the_answer(bench: Bench) -> None:
    agent = bench.agent(
        call("ask_participant", {"question": "Which one?"}), lambda transcript: say(results(transcript)[0].text)
    )
    async with bench.app(agent) as app, desk(app) as client:
        asked = await client.send()
        answered = await client.send("the red one", message_id="m-2", taskId=asked["id"])
        assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
