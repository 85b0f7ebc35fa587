"""The operations on push configurations, and what is delivered for one. Sections are A2A's."""

import pytest

from perdure.a2a.extension import URI
from perdure.core import push_limits
from perdure.testing import say
from tests.a2a.desk import Json, desk
from tests.a2a.pushing import create, open_to_loopback, sending_to, state_is
from tests.a2a.receiver import Receiver
from tests.temporal.bench import Bench, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

URL = "https://example.org/hook?key=hidden-1"
FULL: Json = {
    "id": "mine",
    "url": URL,
    "token": "hidden-2",
    "authentication": {"scheme": "Bearer", "credentials": "hidden-3"},
}


async def test_a_configuration_is_kept_sealed_and_returned_as_it_was_given(bench: Bench) -> None:
    """3.1.7 to 3.1.10; one of the same id is replaced, deleting again changes nothing."""
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        task_id = (await client.send())["id"]
        created = await create(client, task_id, **FULL)
        assert created == {**FULL, "taskId": task_id}
        named = {"taskId": task_id, "id": "mine"}
        assert await client.result("GetTaskPushNotificationConfig", named) == created
        fresh = await create(client, task_id, URL)
        assert fresh["id"] not in ("", "mine")
        listed = await client.result("ListTaskPushNotificationConfigs", {"taskId": task_id})
        assert sorted(each["id"] for each in listed["configs"]) == sorted([fresh["id"], "mine"])
        first = await client.result("ListTaskPushNotificationConfigs", {"taskId": task_id, "pageSize": 1})
        token = {"taskId": task_id, "pageSize": 1, "pageToken": first["nextPageToken"]}
        second = await client.result("ListTaskPushNotificationConfigs", token)
        assert first["configs"] + second["configs"] == listed["configs"]
        assert not second.get("nextPageToken")
        moved = await create(client, task_id, "https://example.org/other", id="mine")
        place = f"/tasks/{task_id}/pushNotificationConfigs/mine"
        assert (await client.http.get(place)).json() == moved
        for _ in range(2):
            assert (await client.http.delete(place)).status_code == 200
        assert (await client.http.get(place)).status_code == 404
        stored = b"".join(path.read_bytes() for path in bench.home.glob("store.db*") if path.is_file())
        assert b"mine" in stored
        assert b"hidden" not in stored
        assert b"example.org" not in stored
    assert (bench.home / "secrets.key").stat().st_mode & 0o077 == 0


async def test_clients_of_0_3_keep_configurations_too(bench: Bench) -> None:
    """In their words; the same configuration."""
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        task_id = (await client.send())["id"]
        old = {"A2A_Version": "0.3"}
        given: Json = {"id": "mine", "url": URL, "token": "hidden-2"}
        params = {"taskId": task_id, "pushNotificationConfig": given}
        set_ = await client.result("tasks/pushNotificationConfig/set", params, **old)
        assert (set_["taskId"], set_["pushNotificationConfig"]) == (task_id, given)
        named = {"id": task_id, "pushNotificationConfigId": "mine"}
        assert await client.result("tasks/pushNotificationConfig/get", named, **old) == set_
        listed = await client.rpc("tasks/pushNotificationConfig/list", {"id": task_id}, **old)
        assert listed["result"] == [set_]
        assert "error" not in await client.rpc("tasks/pushNotificationConfig/delete", named, **old)
        assert await app.store.pushes.of_task(task_id) == ()


REFUSED: list[tuple[str, Json, str]] = [
    ("Create", {"taskId": "t-none", "url": URL}, "TASK_NOT_FOUND"),
    ("Get", {"taskId": "t-none", "id": "mine"}, "TASK_NOT_FOUND"),
    ("Get", {"id": "none"}, "TASK_NOT_FOUND"),
    ("Get", {"id": "x" * 500}, "TASK_NOT_FOUND"),
    ("List", {"taskId": "t-none"}, "TASK_NOT_FOUND"),
    ("List", {"pageSize": -1}, "INVALID_PARAMS"),
    ("List", {"pageToken": "\x01"}, "INVALID_PARAMS"),
    ("Delete", {"taskId": "t-none", "id": "mine"}, "TASK_NOT_FOUND"),
    ("Create", {}, "INVALID_PARAMS"),
    ("Create", {"taskId": "", "url": URL}, "INVALID_PARAMS"),
    ("Create", {"url": "file:///etc/passwd"}, "INVALID_PARAMS"),
    ("Create", {"url": "https://user:password@example.org/"}, "INVALID_PARAMS"),
    ("Create", {"url": "https://example.org/\r\nX: y"}, "INVALID_PARAMS"),
    ("Create", {"url": "http://169.254.169.254/latest"}, "INVALID_PARAMS"),
    ("Create", {"url": "http://localhost:8000/"}, "INVALID_PARAMS"),
    ("Create", {"url": URL, "id": "a\nb"}, "INVALID_PARAMS"),
    ("Create", {"url": URL, "token": "a\r\nX: y"}, "INVALID_PARAMS"),
    ("Create", {"url": URL, "token": "x" * (push_limits.SECRET_CHARS_MAX + 1)}, "INVALID_PARAMS"),
    ("Create", {"url": URL, "authentication": {"scheme": "two words"}}, "INVALID_PARAMS"),
    ("Create", {"url": URL, "authentication": {"scheme": "Bearer", "credentials": "ü"}}, "INVALID_PARAMS"),
]


async def test_the_four_operations_refuse_what_is_wrong_and_keep_nothing_of_it(bench: Bench) -> None:
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        task_id = (await client.send())["id"]
        for what, params, reason in REFUSED:
            method = f"{what}TaskPushNotificationConfig{'s' if what == 'List' else ''}"
            assert await client.reason(method, {"taskId": task_id, **params}) == reason, (what, params)
        assert await app.store.pushes.of_task(task_id) == ()
        for number in range(push_limits.CONFIGS_PER_TASK_MAX):
            await create(client, task_id, URL, id=f"p-{number}")
        more = {"taskId": task_id, "url": f"{URL}-2"}
        assert await client.reason("CreateTaskPushNotificationConfig", more) == "INVALID_PARAMS"
        await create(client, task_id, URL, id="p-0")


async def test_a_configuration_of_somebody_elses_task_is_not_there(bench: Bench) -> None:
    """13.1: not even that the task exists is told."""
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        task = (await client.result("SendMessage", sending_to(URL, id="mine"), x_name="ann"))["task"]
        named: Json = {"taskId": task["id"], "id": "mine", "url": URL}
        for what in ("Create", "Get", "Delete"):
            reason = await client.reason(f"{what}TaskPushNotificationConfig", named, x_name="bob")
            assert reason == "TASK_NOT_FOUND"
        listing = {"taskId": task["id"]}
        assert await client.reason("ListTaskPushNotificationConfigs", listing, x_name="bob") == "TASK_NOT_FOUND"
        assert await client.result("GetTaskPushNotificationConfig", named, x_name="ann")


async def test_a_send_that_is_refused_keeps_no_configuration(bench: Bench) -> None:
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        assert await client.reason("SendMessage", sending_to("http://10.0.0.1/")) == "INVALID_PARAMS"
        assert (await client.result("ListTasks", {}))["tasks"] == []
        task = await client.send()
        late = sending_to(URL)
        late["message"].update(messageId="m-2", taskId=task["id"])
        assert await client.reason("SendMessage", late) == "UNSUPPORTED_OPERATION"
        assert await app.store.pushes.of_task(task["id"]) == ()


@pytest.mark.slow
async def test_p6_every_event_is_delivered_in_order_with_what_the_client_gave(bench: Bench, receiver: Receiver) -> None:
    """4.3.3: StreamResponses, token and credentials in their headers; the event's number names the delivery."""
    async with open_to_loopback(bench).app(bench.agent(say("yes"))) as app, desk(app) as client:
        given: Json = {"id": "mine", "token": "t-1", "authentication": {"scheme": "Bearer", "credentials": "c-1"}}
        task = (await client.result("SendMessage", sending_to(receiver.url("/ok"), **given)))["task"]
        last = int(task["metadata"][URI]["generation"])
        await until(lambda: len(receiver.got("/ok")) >= last)
        streamed = await client.stream("SubscribeToTask", {"id": task["id"]}, Last_Event_ID="0")
        await until(lambda: state_is(app, task["id"], "mine", "done"))
    got = receiver.got("/ok")
    assert [each.number for each in got] == list(range(1, last + 1))
    assert [each.body for each in got] == [response for _, response in streamed[1:]]
    assert got[-1].state == "COMPLETED"
    headers = got[0].headers
    assert headers["Content-Type"] == "application/a2a+json"
    assert (headers["X-A2A-Notification-Token"], headers["Authorization"]) == ("t-1", "Bearer c-1")
    assert [each.headers["Idempotency-Key"] for each in got[:2]] == [f"{task['id']}/mine/{n}" for n in (1, 2)]
