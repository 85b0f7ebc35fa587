"""Tasks of one context over A2A: a new one goes on with the conversation of those that have ended."""

import pytest

from perdure.core.content import Entry, ModelEntry, UserEntry
from perdure.testing import last_user, say
from tests.a2a.desk import desk
from tests.temporal.bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")


def told(transcript: tuple[Entry, ...]) -> object:
    before = [
        entry.message.text if isinstance(entry, UserEntry) else entry.reply.text
        for entry in transcript[:-1]
        if isinstance(entry, UserEntry | ModelEntry)
    ]
    return say(f"{last_user(transcript)} after {before}")


async def test_a_new_task_of_a_context_goes_on_with_what_was_said(bench: Bench) -> None:
    async with bench.app(bench.agent(told, told, told)) as app, desk(app) as client:
        first = await client.send("one")
        second = await client.send("two", message_id="m-2", contextId=first["contextId"])
        other = await client.send("three", message_id="m-3")
    answers = [each["artifacts"][0]["parts"][0]["text"] for each in (first, second, other)]
    assert answers == ["one after []", "two after ['one', 'one after []']", "three after []"]


async def test_a_context_without_tasks_is_a_new_conversation(bench: Bench) -> None:
    async with bench.app(bench.agent(told)) as app, desk(app) as client:
        task = await client.send("one", contextId="mine")
    assert task["artifacts"][0]["parts"][0]["text"] == "one after []"
