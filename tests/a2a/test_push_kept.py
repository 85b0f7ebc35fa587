"""Configurations that come with messages: how many they become, and what a message is told that was taken in."""

import asyncio
from typing import Any

import pytest

from perdure import App
from perdure.a2a.extension import URI
from perdure.core import limits, push_limits
from perdure.core.pushes import PushConfig
from perdure.testing import say
from tests.a2a.desk import Desk, Json, desk
from tests.a2a.pushing import create, open_to_loopback, seals, sending_to, state_is
from tests.a2a.receiver import Receiver
from tests.temporal.bench import Bench, until
from tests.temporal.test_store_failures import held

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

URL = "https://example.org/hook"


def follow_up(task: Json, message_id: str, url: str = URL, **config: Any) -> Json:
    params = sending_to(url, **config)
    params["message"].update(messageId=message_id, taskId=task["id"])
    return params


async def names(app: App, task: Json) -> list[str]:
    return [each.config_id for each in await app.store.pushes.of_task(task["id"])]


async def sent(client: Desk, params: Json) -> Json:
    task: Json = (await client.result("SendMessage", params))["task"]
    return task


async def test_the_same_place_with_each_message_is_one_configuration(bench: Bench) -> None:
    """Without an id; what goes elsewhere, or shows another token, is another one."""
    agent = bench.agent(*[say("yes")] * 9, after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        task = await sent(client, sending_to(URL, token="t-1"))
        first = await names(app, task)
        (before,) = await app.store.pushes.of_task(task["id"])
        for number in (2, 3):
            await sent(client, follow_up(task, f"m-{number}", token="t-1"))
        assert await names(app, task) == first
        (after,) = await app.store.pushes.of_task(task["id"])
        assert after.sealed == before.sealed  # not saved again: what is on its way is its own
        assert (await create(client, task["id"], URL, token="t-1"))["id"] == first[0]
        await sent(client, follow_up(task, "m-4", token="t-2"))
        await sent(client, follow_up(task, "m-5", url=f"{URL}/2", token="t-1"))
        assert len(await names(app, task)) == 3
        await create(client, task["id"], f"{URL}/mine", id="mine")
        await sent(client, follow_up(task, "m-6", url=f"{URL}/mine"))
        assert len(await names(app, task)) == 4


async def test_two_at_once_are_one_too(bench: Bench) -> None:
    agent = bench.agent(*[say("yes")] * 9, after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        task = await client.send()
        await asyncio.gather(*(sent(client, follow_up(task, f"m-{number}")) for number in range(2, 6)))
        (name,) = await names(app, task)
        other = await client.send(message_id="m-9")
        await create(client, other["id"], URL)
        assert await names(app, other) != [name]  # nothing is to be learned from a name


async def test_one_that_was_given_up_goes_on_when_it_comes_again(bench: Bench) -> None:
    agent = bench.agent(say("yes"), say("yes"), after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        task = await sent(client, sending_to(URL))
        (config,) = await app.store.pushes.of_task(task["id"])
        lease = (await app.store.pushes.pulse(config.key_id)).lease
        while lease.holder != "test":
            lease = await app.store.pushes.beat(config.key_id, "test", lease)
        (config,) = await app.store.pushes.of_task(task["id"])
        gave_up = config.model_copy(update={"state": "given_up", "attempts": 9})
        assert await app.store.pushes.settle(config, gave_up, "test")
        await sent(client, follow_up(task, "m-2"))
        (again,) = await app.store.pushes.of_task(task["id"])
    assert (again.config_id, again.state, again.cursor) == (config.config_id, "active", config.cursor)


async def test_one_too_many_is_refused_before_the_message_is_taken_in(bench: Bench) -> None:
    agent = bench.agent(*[say("yes")] * 3, after_answer="input_required")
    async with bench.app(agent) as app, desk(app) as client:
        task = await client.send()
        for number in range(push_limits.CONFIGS_PER_TASK_MAX):
            await create(client, task["id"], f"{URL}/{number}", id=f"p-{number}")
        for config in ({}, {"id": "another"}):
            answer = await client.rpc("SendMessage", follow_up(task, "m-2", url=f"{URL}/more", **config))
            (broken,) = [each for each in answer["error"]["data"] if "fieldViolations" in each]
            assert broken["fieldViolations"][0]["field"] == "configuration.taskPushNotificationConfig.id"
            with pytest.raises(AssertionError, match="error"):
                await client.stream("SendStreamingMessage", follow_up(task, "m-2", url=f"{URL}/more", **config))
        assert await app.store.admission(task["id"], "m-2") is None
        # Those that are there already may come again.
        await sent(client, follow_up(task, "m-3", url=f"{URL}/3"))
        await sent(client, follow_up(task, "m-4", url=f"{URL}/more", id="p-4"))
        assert len(await names(app, task)) == push_limits.CONFIGS_PER_TASK_MAX


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a write that is not taken fail soon: the settings, not the behaviour, are the test's."""
    monkeypatch.setattr(limits, "STORE_WRITE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(push_limits, "KEEP_PAUSE_S", 0.05)


@pytest.mark.usefixtures("impatient")
async def test_a_message_that_was_taken_in_is_not_to_be_sent_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B25: a client without an idempotency key that obeyed a 503 would have two tasks."""
    monkeypatch.setattr(push_limits, "KEEP_WITHIN_S", 0.5)
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        async with held(bench):
            task = await sent(client, sending_to(URL, wait=False))
        assert "create it again by itself" in task["metadata"][URI]["pushNotKept"]
        assert task["metadata"][URI]["generation"] == "0"
        await create(client, task["id"], URL)
        assert len(await app.store.tasks(10)) == 1


@pytest.mark.usefixtures("impatient")
async def test_a_stream_says_so_in_its_task_and_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(push_limits, "KEEP_WITHIN_S", 0.5)
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        async with held(bench):
            following = asyncio.ensure_future(client.stream("SendStreamingMessage", sending_to(URL)))
            await until(lambda: "was not kept" in caplog.text)
        (_, first), *rest = await following
        assert "pushNotKept" in first["task"]["metadata"][URI]
        assert [number for number, _ in rest] == list(range(1, len(rest) + 1))
        assert len(await app.store.tasks(10)) == 1


@pytest.mark.usefixtures("impatient")
async def test_a_store_that_comes_back_meanwhile_has_it(bench: Bench) -> None:
    async with bench.app(bench.agent(say("yes"))) as app, desk(app) as client:
        async with held(bench):
            sending = asyncio.ensure_future(sent(client, sending_to(URL, id="mine", wait=False)))
            await asyncio.wait({sending}, timeout=2 * limits.STORE_WRITE_TIMEOUT_S)
            assert not sending.done()
        task = await sending
        assert "pushNotKept" not in task["metadata"][URI]
        assert await names(app, task) == ["mine"]


@pytest.mark.slow
async def test_one_principals_slow_receivers_hold_up_nobody_elses(bench: Bench, receiver: Receiver) -> None:
    """More of them than there are places, for longer than anybody here waits."""
    async with open_to_loopback(bench).app(bench.agent(*[say("yes")] * 9)) as app, desk(app) as client:
        for task in range(3):
            params = sending_to(receiver.url(f"/slow/{task}"), id="first")
            params["message"]["messageId"] = f"m-{task}"
            alices = (await client.result("SendMessage", params, x_name="alice"))["task"]
            for number in range(push_limits.CONFIGS_PER_TASK_MAX - 1):
                await _from_the_start(app, alices["id"], f"p-{number}")
        await until(lambda: len(_slow(receiver)) >= push_limits.AT_ONCE_PER_PRINCIPAL_MAX)
        params = sending_to(receiver.url("/ok"), id="mine")
        params["message"]["messageId"] = "m-bob"
        async with asyncio.timeout(push_limits.TIMEOUT_S / 2):
            bobs = (await client.result("SendMessage", params, x_name="bob"))["task"]
            await until(lambda: state_is(app, bobs["id"], "mine", "done"))
        assert len(_slow(receiver)) == push_limits.AT_ONCE_PER_PRINCIPAL_MAX


async def _from_the_start(app: App, task_id: str, name: str) -> None:
    """Push a task's events from its first on, to where its first configuration goes."""
    row, first = await app.store.task(task_id), await app.store.pushes.find(task_id, "first")
    assert row is not None
    assert first is not None
    seals_ = seals(app)
    text = seals_.open(first.sealed, task_id, "first")
    config = PushConfig(task_id=task_id, config_id=name, key_id=seals_.key_id, sealed=seals_.seal(text, task_id, name))
    await app.store.pushes.save(config, row.header, 0, 1)


def _slow(receiver: Receiver) -> list[int]:
    return [each.number for task in range(3) for each in receiver.got(f"/slow/{task}")]
