"""B25: a store that fails, at the front door: an error at once that says when to try again, and nothing is lost."""

import json
from typing import Any

import httpx
import pytest

from perdure.core import limits
from perdure.core.errors import StoreUnavailable
from perdure.testing import say
from tests.a2a.desk import Desk, Json, desk, sending
from tests.temporal.bench import Bench, ended, event, rows_of, until
from tests.temporal.test_store_failures import held

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a write that is not taken fail soon: the settings, not the behaviour, are the test's."""
    monkeypatch.setattr(limits, "STORE_WRITE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(limits, "ACKNOWLEDGE_WITHIN_S", 0.6)
    monkeypatch.setattr(limits, "BACKOFF_MAX_MS", 300)


async def posted(client: Desk, method: str, params: Json) -> httpx.Response:
    return await client.http.post("/", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def is_unavailable(answer: httpx.Response) -> bool:
    reason = answer.json()["error"]["data"][0]["reason"]
    return (answer.status_code, answer.headers.get("Retry-After"), reason) == (503, "5", "SERVICE_UNAVAILABLE")


async def test_a_first_message_that_was_refused_has_left_nothing(bench: Bench) -> None:
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        message = sending(contextId="mine")
        async with held(bench):
            assert is_unavailable(await posted(client, "SendMessage", message))
        assert await client.result("ListTasks", {}) == {
            "nextPageToken": "",
            "pageSize": 50,
            "tasks": [],
            "totalSize": 0,
        }
        task = (await client.result("SendMessage", message))["task"]
        assert (task["status"]["state"], task["contextId"]) == ("TASK_STATE_COMPLETED", "mine")
        assert len((await client.result("ListTasks", {}))["tasks"]) == 1


async def test_a_further_message_stays_admitted_and_a_resend_tells(bench: Bench) -> None:
    agent = bench.agent(say("yes"), say("and yes"), after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        task = await client.send()
        message = sending("more", message_id="m-2", taskId=task["id"])
        async with held(bench):
            assert is_unavailable(await posted(client, "SendMessage", message))
        # The write that was under way may fail yet, and the next one waits: both may take longer than an answer.
        answers: list[Json] = []

        async def taken() -> bool:
            answers.append(await client.rpc("SendMessage", message))
            return "result" in answers[-1]

        await until(taken)
        resent = answers[-1]["result"]["task"]
        assert [each["messageId"] for each in resent["history"] if each["role"] == "ROLE_USER"] == ["m-1", "m-2"]
        handle = app.task(task["id"])
        await event(handle, "run.ended", count=2)
        stored = await bench.sound(handle, app.store, replays=False)
    assert len(rows_of(stored, "message.admitted")) == len(rows_of(stored, "message.promoted")) == 2


async def test_a_server_without_its_store_takes_messages_and_says_that_it_can_tell_no_more(bench: Bench) -> None:
    """A first message is durable in Temporal; a server that lost its store must not make its client send it twice."""
    agent = bench.agent(say("yes"))
    async with bench.app(agent) as working, bench.app(agent, worker=False) as lost, desk(lost) as client:
        await lost.store.close()
        task = await client.send(wait=False)
        assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
        assert [each["messageId"] for each in task["history"]] == ["m-1"]
        assert is_unavailable(await posted(client, "GetTask", {"id": task["id"]}))
        assert is_unavailable(await posted(client, "ListTasks", {}))
        assert is_unavailable(await posted(client, "SendMessage", sending("b", message_id="m-2", taskId=task["id"])))
        assert is_unavailable(await posted(client, "SubscribeToTask", {"id": task["id"]}))
        await ended(working.task(task["id"]))


async def test_what_was_taken_in_is_not_asked_for_again_where_the_store_fails_after_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a key that is told to send again makes a second task of one that is there (P1)."""
    monkeypatch.setattr(limits, "STORE_PATIENCE_S", 0.3)
    agent = bench.agent(say("yes"))
    async with bench.app(agent) as working, bench.app(agent, worker=False) as lost, desk(lost) as client:
        reading = lost.store.events_after

        async def fails_after_acceptance(*arguments: Any) -> object:
            raise StoreUnavailable("the store has gone")

        monkeypatch.setattr(lost.store, "events_after", fails_after_acceptance)
        task = await client.send()  # blocking: it waits for an end that this server cannot see
        assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
        assert [each["messageId"] for each in task["history"]] == ["m-1"]
        answer = await posted(client, "SendStreamingMessage", sending(message_id="m-2"))
        first, *rest = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        assert first["result"]["task"]["id"] not in {"", task["id"]}
        assert ["error" in each for each in rest] == [True]
        monkeypatch.setattr(lost.store, "events_after", reading)
        await ended(working.task(task["id"]))


async def test_an_answer_that_waits_outlives_a_short_failure_of_the_store(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = bench.agent(say("yes"))
    async with bench.app(agent) as app, bench.app(agent, worker=False) as serving, desk(serving) as client:
        reading, failures = serving.store.events_after, iter([True, True])

        async def fails_twice(*arguments: Any) -> object:
            if next(failures, False):
                raise StoreUnavailable("the store has gone")
            return await reading(*arguments)

        monkeypatch.setattr(serving.store, "events_after", fails_twice)
        task = await client.send()
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert next(failures, None) is None
        await ended(app.task(task["id"]))


async def test_a_stream_says_that_it_was_cut_and_goes_on_elsewhere_from_its_number(bench: Bench) -> None:
    agent = bench.agent(say("yes", delay_s=0.3))
    async with bench.app(agent) as working, bench.app(agent, worker=False) as lost, desk(lost) as client:
        await lost.store.close()
        answer = await posted(client, "SendStreamingMessage", sending())
        first, *rest = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        task = first["result"]["task"]
        assert ["error" in each for each in rest] == [True]
        async with desk(working) as elsewhere:
            await event(working.task(task["id"]), "run.started")
            events = await elsewhere.stream("SubscribeToTask", {"id": task["id"]}, Last_Event_ID="0")
        assert [number for number, _ in events] == list(range(len(events)))
