"""A request that is open when its credential ends, ends too; in order, and resumable."""

import asyncio
import json

import httpx
import pytest

from perdure.core.errors import StoreUnavailable
from perdure.testing import say
from tests.a2a.desk import sending
from tests.a2a.doors import door, entry, key_of
from tests.temporal.bench import Bench, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SOON = entry(AUTH="keys", CREDENTIAL_RECHECK_S="0.05")


async def test_a_stream_ends_with_its_key_and_goes_on_with_another(bench: Bench) -> None:
    async with door(bench, bench.agent(say("yes")), SOON, worker=False) as (app, client):
        first, second = await key_of(app, "alice"), await key_of(app, "alice")
        streaming = asyncio.ensure_future(
            client.http.post("/message:stream", json=sending(), headers={"X-API-Key": first})
        )
        await until(lambda: _tasks(app.store))
        await asyncio.wait({streaming}, timeout=0.3)
        assert not streaming.done()  # looked at again, and good
        await app.store.revoke_key(first.split("_")[1], 2)
        answer = await asyncio.wait_for(streaming, 10)
        assert answer.status_code == 200
        events = [line for line in answer.text.splitlines() if line.startswith("data: ")]
        task = json.loads(events[0].removeprefix("data: "))["task"]
        async with bench.app(app.agent):
            again = await client.http.post(
                f"/tasks/{task['id']}:subscribe", headers={"X-API-Key": second, "Last-Event-ID": "0"}
            )
        assert "TASK_STATE_COMPLETED" in again.text


async def test_a_send_that_waits_is_told_why_it_waits_no_longer(bench: Bench) -> None:
    async with door(bench, bench.agent(), SOON, worker=False) as (app, client):
        key = await key_of(app, "alice")
        waiting = asyncio.ensure_future(client.http.post("/message:send", json=sending(), headers={"X-API-Key": key}))
        await until(lambda: _tasks(app.store))
        await app.store.revoke_key(key.split("_")[1], 2)
        answer = await asyncio.wait_for(waiting, 10)
        assert isinstance(answer, httpx.Response)
        assert answer.status_code == 401
        assert len(await app.store.tasks(10)) == 1  # what was accepted stays


async def test_a_store_that_does_not_answer_ends_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential that was good a moment ago is not refused because nobody can be asked."""
    async with door(bench, bench.agent(), SOON, worker=False) as (app, client):
        key, asked = await key_of(app, "alice"), 0
        waiting = asyncio.ensure_future(client.http.post("/message:send", json=sending(), headers={"X-API-Key": key}))
        await until(lambda: _tasks(app.store))

        async def down(key_id: str) -> None:
            nonlocal asked
            asked += 1
            raise StoreUnavailable("the store is down")

        monkeypatch.setattr(app.store, "key", down)

        async def asked_often() -> bool:
            return asked > 3

        await until(asked_often)
        assert not waiting.done()
        refused = await client.http.get("/tasks", headers={"X-API-Key": key})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def _tasks(store: object) -> bool:
    return len(await store.tasks(10)) == 1  # type: ignore[attr-defined]
