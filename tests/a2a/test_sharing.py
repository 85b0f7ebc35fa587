"""A task is seen by who gave it and by those it names; they read it, and do nothing else with it."""

from typing import Any

import pytest

from perdure import tool
from perdure.a2a.extension import URI
from perdure.core import door_limits, limits
from perdure.testing import call, say
from tests.a2a.desk import Desk, Json, desk, sending
from tests.temporal.bench import Bench, ended

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

ALICE, BOB, EVE = ({"x_name": name} for name in ("alice", "bob", "eve"))


def shared(*names: Any, wait: bool = True, **message: Any) -> Json:
    return sending(metadata={URI: {"sharedWith": list(names)}}, wait=wait, **message)


async def opened(client: Desk, *names: str, **fields: Any) -> Json:
    task: Json = (await client.result("SendMessage", shared(*names, **fields), **ALICE))["task"]
    return task


async def listed(client: Desk, who: dict[str, str], **fields: Any) -> tuple[list[str], int]:
    page = await client.result("ListTasks", fields, **who)
    return [each["id"] for each in page["tasks"]], page["totalSize"]


async def test_those_that_a_task_names_see_it_as_its_owner_does(bench: Bench) -> None:
    async with bench.app(bench.agent(say("yes"), say("again"))) as app, desk(app) as client:
        task = await opened(client, "bob", "carol")
        own = (await client.result("SendMessage", sending(message_id="m-2"), **BOB))["task"]
        assert await client.result("GetTask", {"id": task["id"]}, **BOB) == task
        followed = [
            await client.stream("SubscribeToTask", {"id": task["id"]}, Last_Event_ID="0", **who) for who in (ALICE, BOB)
        ]
        assert followed[0] == followed[1]
        assert len(followed[0]) > 3
        assert await listed(client, ALICE) == ([task["id"]], 1)
        assert await listed(client, BOB) == ([own["id"], task["id"]], 2)
        assert await listed(client, BOB, contextId=task["contextId"]) == ([task["id"]], 1)
        assert await listed(client, BOB, status="TASK_STATE_WORKING") == ([], 0)
        assert await listed(client, BOB, pageSize=1) == ([own["id"]], 2)
        assert await listed(client, EVE) == ([], 0)
        for method in ("GetTask", "SubscribeToTask"):
            assert await client.reason(method, {"id": task["id"]}, **EVE) == "TASK_NOT_FOUND"
        await bench.sound(app.task(task["id"]), app.store)


async def test_it_is_so_before_any_worker_has_touched_it(bench: Bench) -> None:
    agent = bench.agent(say("yes"))
    async with bench.app(agent, worker=False) as app, desk(app) as client:
        task = await opened(client, "bob", wait=False)
        assert (await client.result("GetTask", {"id": task["id"]}, **BOB))["id"] == task["id"]
        assert await listed(client, BOB) == ([task["id"]], 1)
        assert await client.reason("GetTask", {"id": task["id"]}, **EVE) == "TASK_NOT_FOUND"
        async with bench.app(agent) as working:
            await ended(working.task(task["id"]))


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "found"


async def test_it_stays_so_when_the_task_continues_as_new(bench: Bench) -> None:
    agent = bench.agent(*[call("look")] * 8, say("done"), tools=[look])
    async with bench.app(agent) as app, desk(app) as client:
        task_id = await bench.start(agent, principal="alice", shared_with=("bob",), history_events_max=40)
        await ended(app.task(task_id))
        assert len(await bench.histories(task_id)) > 1
        assert (await client.result("GetTask", {"id": task_id}, **BOB))["status"]["state"] == "TASK_STATE_COMPLETED"
        await bench.sound(app.task(task_id), app.store)


async def test_they_change_nothing_of_it(bench: Bench) -> None:
    agent = bench.agent(say("yes"), say("again"), after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        task = await opened(client, "bob")
        push = {"taskId": task["id"], "id": "p-1", "url": "https://example.org/hook"}
        created = await client.result("CreateTaskPushNotificationConfig", push, **ALICE)
        refused: dict[str, Json] = {
            "SendMessage": sending("more", message_id="m-2", taskId=task["id"]),
            "CancelTask": {"id": task["id"]},
            "CreateTaskPushNotificationConfig": push,
            "GetTaskPushNotificationConfig": push,
            "ListTaskPushNotificationConfigs": {"taskId": task["id"]},
            "DeleteTaskPushNotificationConfig": push,
        }
        for method, params in refused.items():
            assert await client.reason(method, params, **BOB) == "PERMISSION_DENIED", method
            assert await client.reason(method, params, **EVE) == "TASK_NOT_FOUND", method
        canceled = await client.http.post(f"/tasks/{task['id']}:cancel", json={}, headers={"x-name": "bob"})
        assert canceled.status_code == 403
        assert await client.result("GetTask", {"id": task["id"]}, **ALICE) == task
        assert await client.result("GetTaskPushNotificationConfig", push, **ALICE) == created
        assert await app.store.admission(task["id"], "m-2") is None


WRONG: dict[str, Any] = {
    "no list": "bob",
    "too many": [f"p-{number}" for number in range(door_limits.SHARED_WITH_MAX + 1)],
    "an empty name": [""],
    "no name": [7],
    "a name with spaces around": [" bob"],
    "a name that is too long": ["x" * (limits.PRINCIPAL_CHARS_MAX + 1)],
    "a name with a line break": ["bob\nalice"],
}


@pytest.mark.parametrize("names", WRONG.values(), ids=WRONG)
async def test_what_is_no_list_of_principals_is_refused(bench: Bench, names: Any) -> None:
    async with bench.app(bench.agent(), worker=False) as app, desk(app) as client:
        answer = await client.rpc("SendMessage", sending(metadata={URI: {"sharedWith": names}}), **ALICE)
        (broken,) = [each for each in answer["error"]["data"] if "fieldViolations" in each]
        assert broken["fieldViolations"][0]["field"] == "message.metadata.sharedWith"
        assert await app.store.tasks(10) == ()


async def test_only_a_first_message_of_somebody_shares(bench: Bench) -> None:
    agent = bench.agent(say("yes"), after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        assert await client.reason("SendMessage", shared("bob")) == "INVALID_PARAMS"
        task = await opened(client, "alice", "bob", "bob")
        row = await app.store.task(task["id"])
        assert row is not None
        assert row.header.shared_with == ("bob",)
        late = shared("eve", message_id="m-2", taskId=task["id"])
        assert await client.reason("SendMessage", late, **ALICE) == "INVALID_PARAMS"
        assert await app.store.admission(task["id"], "m-2") is None


async def test_the_same_under_one_key_is_one_task_and_other_names_are_a_conflict(bench: Bench) -> None:
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        keyed = {**ALICE, "Idempotency_Key": "order-1"}
        task = (await client.result("SendMessage", shared("bob"), **keyed))["task"]
        assert (await client.result("SendMessage", shared("bob"), **keyed))["task"]["id"] == task["id"]
        assert await client.reason("SendMessage", shared("eve"), **keyed) == "INVALID_PARAMS"
        assert await client.reason("GetTask", {"id": task["id"]}, **EVE) == "TASK_NOT_FOUND"
