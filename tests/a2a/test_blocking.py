"""A blocking SendMessage comes back when what became of its message lets it wait for nothing more (A2A 3.2.2)."""

import asyncio
from typing import Any

import pytest

from perdure import App
from perdure.a2a.extension import URI
from perdure.a2a.streams import Streams
from perdure.a2a.tasks import Found, TaskReader
from perdure.a2a.translate import TaskView
from perdure.core.errors import StoreUnavailable
from perdure.core.log import Batch, LogEvent, TaskHeader
from perdure.testing import call, results, say
from tests.a2a.desk import desk
from tests.a2a.specified import state
from tests.temporal.bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHIN_S = 20.0


def asks(after: str = "done") -> tuple[Any, ...]:
    question = call("ask_participant", {"question": "Which one?"})
    return (question, lambda transcript: say(results(transcript)[0].text), *([say(after)] * 3))


async def test_a_message_in_a_lane_comes_back_with_the_question_that_it_waits_behind(bench: Bench) -> None:
    async with bench.app(bench.agent(*asks(), after_answer="input_required")) as app, desk(app) as client:
        asked = await client.send()
        assert state(asked) == "INPUT_REQUIRED"
        async with asyncio.timeout(WITHIN_S):
            for message_id, lane in (("m-2", "queue"), ("m-3", "steer"), ("m-2", "queue")):  # the last one once more
                named = {"taskId": asked["id"], "metadata": {URI: {"lane": lane}}}
                waits = await client.send(message_id, message_id=message_id, **named)
                assert state(waits) == "INPUT_REQUIRED"
                assert waits["status"]["message"]["parts"] == [{"text": "Which one?"}]
            answered = await client.send("the red one", message_id="m-4", taskId=asked["id"])
        assert state(answered) == "INPUT_REQUIRED"
        assert answered["metadata"][URI]["reason"] == "answered"
        assert [len(answered["artifacts"]), (await app.task(asked["id"]).inbox()).messages] == [2, ()]


async def test_a_message_that_opens_a_run_waits_for_that_runs_answer(bench: Bench) -> None:
    agent = bench.agent(say("one"), say("two"), after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        first = await client.send()
        async with asyncio.timeout(WITHIN_S):
            named = {"taskId": first["id"], "metadata": {URI: {"lane": "queue"}}}
            second = await client.send(message_id="m-2", **named)
    assert second["status"]["message"]["parts"] == [{"text": "two"}]


def row(number: int, kind: Any, **data: Any) -> LogEvent:
    return LogEvent(number=number, kind=kind, at_ms=number, data=data)


def stopped(number: int) -> LogEvent:
    return row(number, "task.status", state="input_required", reason="stopped", message="")


ONCE_MORE = row(6, "message.admitted", message_id="m-2", digest="d", lane="queue")


@pytest.mark.parametrize("taken", [row(7, "run.stopped_before_start"), row(7, "message.withdrawn", message_id="m-2")])
async def test_a_message_that_was_taken_before_its_run_is_waited_for_no_more(bench: Bench, taken: LogEvent) -> None:
    """A task that was stopped already is not said to be so again: no status follows the message."""
    rows = [row(1, "task.created"), row(2, "task.status", state="submitted", reason="", message="")]
    rows += [row(3, "message.admitted", message_id="m-1", digest="d", lane="queue")]
    rows += [row(4, "run.stopped_before_start"), stopped(5), ONCE_MORE]
    async with bench.app(bench.agent(), worker=False) as app:
        found = await written(app, bench, rows)
        waiting = asyncio.create_task(Streams(app, TaskReader(app)).until_rest(found, 5))
        await app.store.write(Batch(task_id=found.header.task_id, rows=(taken,)), 1)
        async with asyncio.timeout(WITHIN_S):
            view = await waiting
    assert (view.number, view.state) == (7, "input_required")


class Failing(TaskReader):
    """Reads a store that fails the first time that a task is read as it is now."""

    failed = False

    async def view(self, found: Found, upto: int | None = None) -> TaskView:
        if upto is None and not self.failed:
            self.failed = True
            raise StoreUnavailable("the store does not answer")
        return await super().view(found, upto)


async def test_a_rest_that_was_reached_before_the_store_failed_is_not_waited_for_again(bench: Bench) -> None:
    rows = [row(1, "task.created"), row(2, "message.admitted", message_id="m-1", digest="d", lane="queue")]
    async with bench.app(bench.agent(), worker=False) as app:
        found = await written(app, bench, [*rows, row(3, "run.stopped_before_start"), stopped(4)])
        reader = Failing(app)
        async with asyncio.timeout(WITHIN_S):
            view = await Streams(app, reader).until_rest(found, 0)
    assert (view.number, reader.failed) == (4, True)


async def written(app: App, bench: Bench, rows: list[LogEvent]) -> Found:
    header = TaskHeader(task_id="t-1", context_id="c-1", agent_id=bench.queue, principal="")
    await app.store.write(Batch(task_id="t-1", header=header, rows=tuple(rows)), 1)
    return Found(header, "input_required", len(rows))
