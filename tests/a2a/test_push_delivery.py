"""What comes of a notification that is refused, late, redirected or not wanted any more; and whose turn it is."""

import asyncio

import pytest
from a2a.types.a2a_pb2 import TaskPushNotificationConfig

from perdure import App
from perdure.a2a.caller import Caller
from perdure.a2a.extension import URI
from perdure.a2a.push_configs import PushConfigs
from perdure.app.offer import Offer
from perdure.core import push_limits
from perdure.core.agent import RetryPolicy
from perdure.testing import say
from tests.a2a.desk import Desk, Json, desk
from tests.a2a.pushing import create, delivering, open_to_loopback, sending_to, state_is
from tests.a2a.receiver import Receiver
from tests.temporal.bench import Bench, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SILENT = Offer().without(["push"])
FAST = RetryPolicy(attempts_max=4, first_ms=10, factor=1.0)


def number_of(task: Json) -> int:
    return int(task["metadata"][URI]["generation"])


async def kept(pushes: PushConfigs, task_id: str, url: str, name: str) -> None:
    await pushes.create(TaskPushNotificationConfig(task_id=task_id, url=url, id=name), Caller())


async def follow_up(client: Desk, task_id: str, name: str = "m-2") -> int:
    """Send a message to a task; return the number that its log then reaches."""
    return number_of(await client.send("more", message_id=name, taskId=task_id))


async def test_only_what_happens_after_its_creation_is_delivered(bench: Bench, receiver: Receiver) -> None:
    """3.1.7; a configuration that is replaced goes on where it was."""
    agent = bench.agent(*[say("yes")] * 3, after_answer="input_required")
    async with open_to_loopback(bench).app(agent) as app, desk(app) as client:
        task = await client.send()
        await create(client, task["id"], receiver.url("/ok"), id="mine")
        reached = await follow_up(client, task["id"])
        wanted = list(range(number_of(task) + 1, reached + 1))
        await until(lambda: receiver.numbers("/ok") == wanted)
        await create(client, task["id"], receiver.url("/ok/again"), id="mine")
        last = await follow_up(client, task["id"], "m-3")
        await until(lambda: receiver.numbers("/ok/again") == list(range(reached + 1, last + 1)))
    assert receiver.numbers("/ok") == wanted


async def test_what_is_refused_is_sent_again_until_it_is_taken(bench: Bench, receiver: Receiver) -> None:
    async with open_to_loopback(bench).app(bench.agent(say("yes"))) as app, desk(app) as client:
        task = (await client.result("SendMessage", sending_to(receiver.url("/fail/2"), id="mine")))["task"]
        await until(lambda: state_is(app, task["id"], "mine", "done"))
    got = receiver.got("/fail/2")
    assert [each.status for each in got] == [500, 500, *[204] * number_of(task)]
    assert [each.number for each in got] == [1, 1, *range(1, number_of(task) + 1)]
    assert len({each.headers["Idempotency-Key"] for each in got[:3]}) == 1


async def test_a_receiver_that_is_slow_for_ever_holds_up_nobody(bench: Bench, receiver: Receiver) -> None:
    """Its own configuration waits; the others of its task and the task do not, nor does deleting it."""
    async with open_to_loopback(bench).app(bench.agent(say("yes"))) as app, desk(app) as client:
        task = await client.send(wait=False)
        await create(client, task["id"], receiver.url("/slow"), id="slow")
        sent = sending_to(receiver.url("/ok"), id="mine")
        sent["message"]["messageId"] = "m-2"
        other = (await client.result("SendMessage", sent))["task"]
        await until(lambda: state_is(app, other["id"], "mine", "done"))
        async with asyncio.timeout(push_limits.TIMEOUT_S / 2):
            await client.result("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "slow"})
    assert len(receiver.got("/slow")) <= 1


async def test_nothing_is_sent_after_a_configuration_is_deleted(bench: Bench, receiver: Receiver) -> None:
    """3.1.10; what is on its way when it is deleted is cut off."""
    receiver.held.touch()
    async with open_to_loopback(bench).app(bench.agent(say("yes"))) as app, desk(app) as client:
        sent = sending_to(receiver.url("/held"), id="gone")
        task = (await client.result("SendMessage", sent))["task"]
        await until(lambda: receiver.numbers("/held") == [1])
        await client.result("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "gone"})
        receiver.held.unlink()
        sent = sending_to(receiver.url("/ok"), id="mine")
        other = (await client.result("SendMessage", {**sent, "message": {**sent["message"], "messageId": "m-2"}}))[
            "task"
        ]
        await until(lambda: state_is(app, other["id"], "mine", "done"))
    assert receiver.numbers("/held") == [1]


async def test_a_redirect_is_not_followed(bench: Bench, receiver: Receiver) -> None:
    agent = bench.agent(say("yes"))
    async with open_to_loopback(bench).app(agent) as app, desk(app, SILENT) as client:
        task = await client.send()
        async with delivering(app, "one", FAST, push_limits.LEASE_S) as pushes:
            await given_up(app, pushes, task["id"], receiver.url("/away"))
    assert [each.status for each in receiver.got("/away")] == [307] * FAST.attempts_max
    assert receiver.got("/reached") == []


async def given_up(app: App, pushes: PushConfigs, task_id: str, url: str) -> None:
    """Deliver a task from its first event on to a receiver that takes none."""
    found = await app.store.task(task_id)
    assert found is not None
    await kept(pushes, task_id, url, "mine")
    (config,) = await app.store.pushes.of_task(task_id)
    await app.store.pushes.delete(task_id, "mine", 1)
    await app.store.pushes.save(config, found.header, 0, 1)
    await until(lambda: state_is(app, task_id, "mine", "given_up"))


async def test_one_that_fails_for_too_long_is_given_up_and_said_to_be(
    bench: Bench, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says where and why, and nothing secret. Creating it again goes on with what was not taken."""
    agent = bench.agent(say("yes"))
    async with open_to_loopback(bench).app(agent) as app, desk(app, SILENT) as client:
        task = await client.send()
        async with delivering(app, "one", FAST, push_limits.LEASE_S) as pushes:
            await given_up(app, pushes, task["id"], receiver.url("/fail/6?hidden"))
            assert len(receiver.got("/fail/6?hidden")) == FAST.attempts_max
            await kept(pushes, task["id"], receiver.url("/ok"), "mine")
            await until(lambda: state_is(app, task["id"], "mine", "done"))
    assert receiver.numbers("/ok") == list(range(1, number_of(task) + 1))
    said = [record.getMessage() for record in caplog.records if "push mine" in record.getMessage()]
    assert len(said) == 2
    assert f"event 1 failed {FAST.attempts_max} times, given up: answered 500" in said[1]
    assert f"http://127.0.0.1:{receiver.port}:" in said[1]
    assert "hidden" not in caplog.text


async def test_a_receiver_that_is_gone_is_given_up_at_once(bench: Bench, receiver: Receiver) -> None:
    agent = bench.agent(say("yes"))
    async with open_to_loopback(bench).app(agent) as app, desk(app, SILENT) as client:
        task = await client.send()
        async with delivering(app, "one", FAST, push_limits.LEASE_S) as pushes:
            await given_up(app, pushes, task["id"], receiver.url("/gone"))
    assert receiver.numbers("/gone") == [1]


async def test_a_name_that_leads_inside_is_refused_when_it_is_looked_up(
    bench: Bench, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """A resolver's short form of 127.0.0.1 is no address by itself: only what it leads to tells."""
    async with bench.app(bench.agent(say("yes"))) as app, desk(app, SILENT) as client:
        task = await client.send()
        async with delivering(app, "one", FAST, push_limits.LEASE_S) as pushes:
            await given_up(app, pushes, task["id"], f"http://127.1:{receiver.port}/ok")
    assert receiver.got("/ok") == []
    assert "leads to 127.0.0.1, which is not public" in caplog.text


async def test_of_two_deliverers_one_delivers_and_the_other_goes_on(bench: Bench, receiver: Receiver) -> None:
    """In order, each event once: who has the turn holds it, and gives it up when it ends."""
    agent = bench.agent(*[say("yes")] * 4, after_answer="input_required")
    async with open_to_loopback(bench).app(agent) as app, desk(app, SILENT) as client:
        task = await client.send()
        async with delivering(app, "two", FAST, push_limits.LEASE_S) as second:
            async with delivering(app, "one", FAST, push_limits.LEASE_S) as first:
                await kept(first, task["id"], receiver.url("/ok"), "mine")
                reached = await follow_up(client, task["id"])
                await until(lambda: receiver.numbers("/ok")[-1:] == [reached])
            last = await follow_up(client, task["id"], "m-3")
            await until(lambda: receiver.numbers("/ok")[-1:] == [last])
            assert second is not first
    assert receiver.numbers("/ok") == list(range(number_of(task) + 1, last + 1))


async def test_a_deliverer_whose_turn_was_taken_sends_nothing_more(bench: Bench, receiver: Receiver) -> None:
    """Noticed before the next notification, and what it wanted to write down is refused."""
    receiver.held.touch()
    agent = bench.agent(say("yes"))
    async with open_to_loopback(bench).app(agent) as app, desk(app, SILENT) as client:
        task = await client.send()
        found = await app.store.task(task["id"])
        assert found is not None
        async with delivering(app, "one", FAST, push_limits.LEASE_S) as pushes:
            await kept(pushes, task["id"], receiver.url("/held"), "mine")
            (config,) = await app.store.pushes.of_task(task["id"])
            await app.store.pushes.delete(task["id"], "mine", 1)
            await app.store.pushes.save(config, found.header, 0, 1)
            await until(lambda: receiver.numbers("/held") == [1])
            await _taken_over(app, config.key_id)
            receiver.held.unlink()
            await until(lambda: not pushes._deliverer._under_way)
            (after,) = await app.store.pushes.of_task(task["id"])
    assert (after.cursor, after.attempts) == (0, 0)
    assert receiver.numbers("/held") == [1]


async def _taken_over(app: App, key_id: str) -> None:
    holder = ""
    while holder != "thief":
        lease = (await app.store.pushes.pulse(key_id)).lease
        holder = (await app.store.pushes.beat(key_id, "thief", lease)).holder
