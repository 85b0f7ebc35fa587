"""Answers are bounded in bytes: of a large task the newest is told and the rest counted, a large page ends early."""

import base64
import random

import pytest

from perdure import Artifact, File, tool
from perdure.a2a.extension import URI
from perdure.core import door_limits
from perdure.testing import call, say
from tests.a2a.desk import Json, desk
from tests.temporal.bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")

KB = 1_000


def file_of(size: int, seed: int) -> Json:
    data = random.Random(seed).randbytes(size)
    return {"raw": base64.b64encode(data).decode(), "mediaType": "image/png"}


async def test_of_a_long_conversation_with_files_the_newest_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_limits, "TASK_BYTES_MAX", 250 * KB)
    agent = bench.agent(*[say("seen")] * 4, after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        parts: list[Json] = [file_of(100 * KB, 0)]
        task = first = await client.send(parts=parts)
        for number in range(1, 4):
            parts = [{"text": f"{number}"}, file_of(100 * KB, number)]
            task = await client.send(parts=parts, message_id=f"more-{number}", taskId=first["id"])
        asked: list[str] = []
        get_blob = type(app.store).get_blob

        async def noted(store: object, digest: str) -> bytes:
            asked.append(digest)
            return await get_blob(app.store, digest)

        monkeypatch.setattr(type(app.store), "get_blob", noted)
        again = await client.task(first["id"])
        assert again == task
        sent = [each["messageId"] for each in again["history"] if each["role"] == "ROLE_USER"]
        assert sent == ["more-2", "more-3"]
        assert again["history"][-1]["parts"] == parts
        assert again["metadata"][URI]["messagesLeftOut"] == 3  # two of the client's, and the answer between
        assert len(asked) == 3  # and no more is read than shows that it does not fit
        few = await client.task(first["id"], historyLength=2)
        assert "messagesLeftOut" not in few["metadata"][URI]
        assert len(few["artifacts"]) == 4


@tool(effect="read")
async def report(name: str) -> Artifact:
    """Make a report."""
    return Artifact(name, File("text/plain", name=name, data=b"x" * 20 * KB))


async def test_artifacts_that_are_left_out_come_in_their_events(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_limits, "TASK_BYTES_MAX", 50 * KB)
    steps = [call("report", {"name": f"r-{number}"}) for number in range(4)]
    async with bench.app(bench.agent(*steps, say("done"), tools=[report])) as app, desk(app) as client:
        task = await client.send()
        assert [each["name"] for each in task["artifacts"]] == ["r-2", "r-3", "answer"]
        assert task["metadata"][URI]["artifactsLeftOut"] == 2
        events = await client.stream("SubscribeToTask", {"id": task["id"]}, Last_Event_ID="0")
        handed = [event["artifactUpdate"]["artifact"]["name"] for _, event in events if "artifactUpdate" in event]
        assert handed == ["r-0", "r-1", "r-2", "r-3", "answer"]


async def test_a_page_that_is_too_large_ends_early_and_the_next_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_limits, "PAGE_BYTES_MAX", 250 * KB)
    async with bench.app(bench.agent(), worker=False) as app, desk(app) as client:
        sizes = [100, 100, 100, 1, 1, 300, 1, 240, 100, 1]
        sent = [
            (await client.send(parts=[file_of(size * KB, 7)], message_id=f"m-{number}", wait=False))["id"]
            for number, size in enumerate(sizes)
        ]
        pages: list[list[str]] = []
        token = ""
        while token or not pages:
            page = await client.result("ListTasks", {"pageToken": token} if token else {})
            assert (page["totalSize"], page["pageSize"]) == (10, 50)
            pages.append([each["id"] for each in page["tasks"]])
            token = page["nextPageToken"]
            size = sum(len(each["history"][0]["parts"][0]["raw"]) * 3 // 4 for each in page["tasks"])
            assert size <= 250 * KB or len(page["tasks"]) == 1
        assert sorted(each for page in pages for each in page) == sorted(sent)
        assert 5 <= len(pages) <= 8
        by_two = await client.result("ListTasks", {"pageSize": 2})
        assert len(by_two["tasks"]) == 2
        bare = await client.result("ListTasks", {"historyLength": 0})
        assert (len(bare["tasks"]), bare["nextPageToken"]) == (10, "")
