"""A message that is sent again, and again, while its task continues in a new workflow run, or ends, is one message."""

import asyncio

import pytest

from perdure import Agent, tool
from perdure.a2a.extension import URI
from perdure.core.agent import Budget
from perdure.core.content import Entry, UserEntry
from perdure.testing import call, say, scripted
from perdure.testing.script import Step
from tests.a2a.desk import Desk, Json, desk, reason_of, sending
from tests.temporal.bench import Bench, ended, entries_of, rows_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

MESSAGES = 12
HISTORY_EVENTS_MAX = 60
AT_ONCE = 3


@tool(effect="read")
async def wait() -> str:
    """Wait for the customer."""
    return "still there"


def listen(transcript: tuple[Entry, ...]) -> Step:
    """Wait, turn after turn, until the last message came."""
    heard = [entry.message.text for entry in transcript if isinstance(entry, UserEntry)]
    return say(f"heard {len(heard)}") if "that is all" in heard else call("wait")


def listener(bench: Bench) -> Agent:
    return Agent(bench.queue, model=scripted(listen, loop=True), tools=[wait], budget=Budget(turns_max=10_000))


async def answered(client: Desk, text: str, **message: str) -> Json:
    """Send until there is an answer; what is refused for the moment is sent again."""
    steer: Json = {URI: {"lane": "steer"}}  # to be heard in the run that waits for it
    while True:
        answer = await client.rpc("SendMessage", sending(text, wait=False, metadata=steer, **message))
        if "error" not in answer or reason_of(answer["error"]["data"]) != "SERVICE_UNAVAILABLE":
            return answer


async def insisting(client: Desk, text: str, **message: str) -> Json:
    """Send until it is taken in; return its task."""
    answer = await answered(client, text, **message)
    assert "result" in answer, answer
    task: Json = answer["result"]["task"]
    return task


async def test_p1_a_message_sent_again_while_the_task_continues_as_new_is_one(bench: Bench) -> None:
    async with bench.app(listener(bench)) as app, desk(app) as client:
        task = app.task(await bench.start(app.agent, history_events_max=HISTORY_EVENTS_MAX))
        names = [f"m-{number}" for number in range(MESSAGES)]
        for number, name in enumerate(names):
            again = names[number // 2]  # one from a while ago, from an earlier run of the workflow
            sends = [insisting(client, name, message_id=name, taskId=task.id) for _ in range(AT_ONCE)]
            await asyncio.gather(*sends, insisting(client, again, message_id=again, taskId=task.id))
        other = await answered(client, "other", message_id=names[0], taskId=task.id)
        assert other["error"]["data"][0]["metadata"]["code"] == "message_conflict"
        await insisting(client, "that is all", message_id="m-last", taskId=task.id)
        assert await task.result() == f"heard {MESSAGES + 2}"
        stored = await bench.sound(task, app.store)
        assert len(await bench.histories(task.id)) > MESSAGES / 10
    admitted = [row.data["message_id"] for row in rows_of(stored, "message.admitted")]
    assert admitted == ["m-first", *names, "m-last"]
    texts = [entry.message.text for entry in entries_of(stored) if isinstance(entry, UserEntry)]
    assert texts == ["hello", *names, "that is all"]


async def test_p1_a_message_sent_again_while_its_task_ends_is_never_refused(bench: Bench) -> None:
    async with bench.app(listener(bench)) as app, desk(app) as client:
        for place in range(5):
            name = f"m-{place}"
            task_id = (await client.send(wait=False, message_id=f"{name}-0"))["id"]
            over = asyncio.Event()

            async def until_over(name: str, task_id: str, over: asyncio.Event) -> int:
                times = 0
                while not over.is_set():
                    assert (await insisting(client, "that is all", message_id=name, taskId=task_id))["id"] == task_id
                    times += 1
                return times

            senders = [asyncio.create_task(until_over(name, task_id, over)) for _ in range(AT_ONCE)]
            await ended(app.task(task_id))
            for sender in senders:
                assert not sender.done(), sender.result()
            over.set()
            assert min(await asyncio.gather(*senders)) > 0
            refused = await client.reason("SendMessage", sending("more", message_id="m-new", taskId=task_id))
            assert refused == "UNSUPPORTED_OPERATION"
