"""What a tool hands over reaches the client as an artifact, in a stream and in the task (A2A 3.7, 4.1.7)."""

import pytest

from perdure import Artifact, File, tool
from perdure.testing import call, say
from tests.a2a.desk import desk, sending
from tests.temporal.bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")


@tool(effect="read")
async def report() -> Artifact:
    """Make a report."""
    return Artifact(
        "report",
        {"n": 42, "of": [True, None]},
        File("text/plain", name="a.txt", data=b"tck"),
        File("image/png", name="b.png", url="https://example.org/b.png"),
    )


async def test_a_tool_hands_over_data_and_files(bench: Bench) -> None:
    agent = bench.agent(call("report"), say("Here it is."), tools=[report])
    async with bench.app(agent) as app, desk(app) as client:
        events = await client.stream("SendStreamingMessage", sending("report"))
        updates = [event["artifactUpdate"] for _, event in events if "artifactUpdate" in event]
        (task_id,) = {update["taskId"] for update in updates}
        task = await client.task(task_id)
        told = [event.data for event in [e async for e in app.task(task_id).events()] if event.kind == "tool.finished"]
    assert task["artifacts"] == [update["artifact"] for update in updates]
    handed, answer = task["artifacts"]
    assert (handed["artifactId"], handed["name"]) == ("turn-1-0", "report")
    assert handed["parts"] == [
        {"data": {"n": 42, "of": [True, None]}},
        {"raw": "dGNr", "mediaType": "text/plain", "filename": "a.txt"},
        {"url": "https://example.org/b.png", "mediaType": "image/png", "filename": "b.png"},
    ]
    assert answer["parts"] == [{"text": "Here it is."}]
    assert len(told) == 1
