"""A message in place of a task, where the agent says so; and extensions that a client must know of."""

import pytest

from perdure.app.offer import Offer
from perdure.core.content import Message
from perdure.testing import call, say
from tests.a2a.desk import desk, sending
from tests.temporal.bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_plain_answer_is_a_message_that_names_its_task(bench: Bench) -> None:
    """3.1.1, 3.1.2: one message, alone in a stream; the task is there all the same."""
    agent = bench.agent(say("at once"), say("at once"), direct=lambda message: message.text == "quick")
    async with bench.app(agent) as app, desk(app) as client:
        message = (await client.result("SendMessage", sending("quick")))["message"]
        assert (message["role"], message["parts"]) == ("ROLE_AGENT", [{"text": "at once"}])
        assert (await client.task(message["taskId"]))["status"]["state"] == "TASK_STATE_COMPLETED"
        events = await client.stream("SendStreamingMessage", sending("quick"))
        assert [list(event) for _, event in events] == [["message"]]


async def test_what_says_more_is_a_task(bench: Bench) -> None:
    """A question is a task's, and so is what is not waited for, and what the agent does not answer directly."""
    agent = bench.agent(call("ask_participant", {"question": "Which?"}), direct=lambda message: message.text == "quick")
    async with bench.app(agent) as app, desk(app) as client:
        assert (await client.send("quick"))["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert "task" in await client.result("SendMessage", sending("quick", wait=False))
        assert "task" in await client.result("SendMessage", sending("slow"))


async def test_an_extension_that_is_required_must_be_named(bench: Bench) -> None:
    """3.3.4: ExtensionSupportRequiredError for a client that does not; nothing begins."""
    uri = "https://example.org/must"
    async with bench.app(bench.agent(say("yes"))) as app, desk(app, offer=Offer(requires=(uri,))) as client:
        card = (await client.http.get("/.well-known/agent-card.json")).json()
        assert [each["uri"] for each in card["capabilities"]["extensions"] if each.get("required")] == [uri]
        for method in ("SendMessage", "SendStreamingMessage"):
            assert await client.reason(method, sending()) == "EXTENSION_SUPPORT_REQUIRED"
        assert (await client.result("ListTasks", {}))["tasks"] == []
        assert "task" in await client.result("SendMessage", sending(), A2A_Extensions=f"urn:other, {uri}")


async def test_where_its_author_fails_nothing_is_taken_in(bench: Bench) -> None:
    """Else a client without a key is told of an error for a task that is there, and gives a second one (P1)."""

    def fails(message: Message) -> bool:
        raise ZeroDivisionError

    async with bench.app(bench.agent(say("yes"), direct=fails)) as app, desk(app) as client:
        assert "error" in await client.rpc("SendMessage", sending())
        assert (await client.result("ListTasks", {}))["tasks"] == []
