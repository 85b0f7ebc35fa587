"""Limits of the front door: each is refused in A2A's form, before anything of the request has happened."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from perdure.a2a.bodies import check_shape
from perdure.a2a.refusals import MalformedError
from perdure.core import limits
from perdure.testing import say
from tests.a2a.desk import Desk, Json, reason_of, sending
from tests.a2a.doors import door, entry, key_of
from tests.temporal.bench import Bench, until

pytestmark = pytest.mark.asyncio(loop_scope="session")


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _data(text: str) -> bytes:
    """A message whose data part is this JSON."""
    whole = json.dumps(sending(parts=[{"data": "HERE"}]))
    return whole.replace('"HERE"', text).encode()


DEEP = limits.JSON_DEPTH_MAX
MANY = limits.JSON_VALUES_MAX

MALFORMED: dict[str, bytes] = {
    "too deep": _data(_nested(DEEP)),
    "much too deep": _data(_nested(200_000)),
    "deep without an end": b'{"message": ' + b"[" * 100_000,
    "deep objects": _data('{"a":' * DEEP + "1" + "}" * DEEP),
    "too many numbers": _data("[" + "1," * MANY + "1]"),
    "too many lists": _data("[" + "[]," * MANY + "1]"),
    "two bytes a character": json.dumps(sending()).encode("utf-16"),
    "two bytes, unmarked": json.dumps(sending()).encode("utf-16-le"),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
async def test_a_body_that_would_cost_more_than_it_says_is_not_parsed(bench: Bench, body: bytes) -> None:
    async with door(bench, bench.agent(), entry(), worker=False) as (app, client):
        answer = await client.http.post("/message:send", content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("body: ")
        assert reason_of(answer.json()["error"]["details"]) == "INVALID_REQUEST"
        by_rpc = (await client.http.post("/", content=body)).json()["error"]
        assert (by_rpc["code"], reason_of(by_rpc["data"])) == (-32600, "INVALID_REQUEST")
        assert await app.store.tasks(10) == ()


FINE: dict[str, str] = {
    "deep": _nested(DEEP - 8),
    "brackets in a text": json.dumps("[{" * 5_000),
    "commas in a text": json.dumps("," * (MANY + 1)),
    "quotes in a text": json.dumps('"[' * 5_000),
    "backslashes in a text": json.dumps("\\[" * 5_000 + "\\"),
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
async def test_a_body_that_only_looks_so_is_taken(bench: Bench, text: str) -> None:
    async with door(bench, bench.agent(), entry(), worker=False) as (_, client):
        answer = await client.http.post(
            "/message:send", content=_data(text).replace(b'Immediately": false', b'Immediately": true')
        )
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "body",
    [b'"' + b'\\"' * 4_000_000, b'"' + b"\\" * 8_000_001, b'"a' * 4_000_000, b"x" * 12_000_000, b'{"a":' * 60 + b'"'],
    ids=["quotes", "backslashes", "open texts", "nothing", "cut"],
)
async def test_looking_over_a_body_takes_as_long_as_it_is(body: bytes) -> None:
    """An expression that went back over a text would need hours for these."""
    async with asyncio.timeout(20):
        with contextlib.suppress(MalformedError):
            await asyncio.to_thread(check_shape, body)


async def test_a_body_that_is_too_large_is_refused_and_said_so(bench: Bench) -> None:
    async with door(bench, bench.agent(), entry(REQUEST_BYTES_MAX="2000"), worker=False) as (app, client):
        large = json.dumps(sending("x" * 3_000)).encode()

        async def in_pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(large), 500):
                yield large[start : start + 500]

        for content in (large, in_pieces()):
            answer = await client.http.post("/message:send", content=content)
            assert answer.status_code == 413
            assert reason_of(answer.json()["error"]["details"]) == "REQUEST_TOO_LARGE"
            assert "2000 bytes" in answer.json()["error"]["message"]
        assert (await client.http.post("/message:send", json=sending(wait=False))).status_code == 200
        assert len(await app.store.tasks(10)) == 1


async def test_a_number_that_nobody_can_read_is_the_clients_fault(bench: Bench) -> None:
    async with door(bench, bench.agent(), entry(), worker=False) as (_, client):
        body = b'{"jsonrpc": "2.0", "id": 7, "method": "GetTask", "params": {"historyLength": ' + b"9" * 5_000 + b"}}"
        assert (await client.http.post("/", content=body)).json()["error"]["code"] == -32600


async def test_too_many_parts_are_refused(bench: Bench) -> None:
    async with door(bench, bench.agent(), entry(), worker=False) as (app, client):
        many = sending(parts=[{"text": "x"}] * (limits.MESSAGE_PARTS_MAX + 1))
        assert await client.reason("SendMessage", many) == "INVALID_PARAMS"
        assert await app.store.tasks(10) == ()


async def test_one_principal_that_asks_too_often_waits_and_nobody_else(bench: Bench) -> None:
    async with door(bench, bench.agent(), entry(AUTH="keys", REQUESTS_PER_S="2"), worker=False) as (app, client):
        alice, bob = {"X-API-Key": await key_of(app, "alice")}, {"X-API-Key": await key_of(app, "bob")}
        answers = [await client.http.get("/tasks/t-none", headers=alice) for _ in range(20)]
        codes = [each.status_code for each in answers]
        assert codes[:4] == [404] * 4
        refused = answers[codes.index(429)]
        assert refused.headers["Retry-After"] == "1"
        assert reason_of(refused.json()["error"]["details"]) == "TOO_MANY_REQUESTS"
        assert (await client.http.get("/tasks/t-none", headers=bob)).status_code == 404
        assert (await client.http.get("/.well-known/agent-card.json")).status_code == 200

        async def let_in_again() -> bool:
            return (await client.http.get("/tasks/t-none", headers=alice)).status_code == 404

        await until(let_in_again)


async def test_nobody_is_not_counted_as_somebody(bench: Bench) -> None:
    async with door(bench, bench.agent(), entry(REQUESTS_PER_S="0.001"), worker=False) as (_, client):
        codes = {(await client.http.get("/tasks/t-none")).status_code for _ in range(20)}
        assert codes == {404}


# --- places -------------------------------------------------------------------------------------------------------


class Held:
    """A stream that is open, as a task of this loop that can be left."""

    def __init__(self, client: Desk, path: str, body: Json, headers: Json) -> None:
        self._task = asyncio.ensure_future(client.http.post(path, json=body, headers=headers))

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


RPC_STREAM = {"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": sending()}
OLD = {"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
OLD_PROTO = {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": "hi"}]}
STREAMS: dict[str, tuple[str, Json, str]] = {
    "HTTP+JSON": ("/message:stream", sending(), "1.0"),
    "JSON-RPC": ("/", RPC_STREAM, "1.0"),
    "JSON-RPC 0.3": ("/", {**RPC_STREAM, "method": "message/stream", "params": {"message": OLD}}, "0.3"),
    "HTTP+JSON 0.3": ("/v1/message:stream", {"message": OLD_PROTO}, "0.3"),
}


@pytest.mark.parametrize(("path", "body", "version"), STREAMS.values(), ids=STREAMS)
async def test_streams_have_places_of_each_and_of_all(bench: Bench, path: str, body: Json, version: str) -> None:
    rules = entry(AUTH="keys", STREAMS_PER_PRINCIPAL_MAX="1", STREAMS_MAX="2")
    async with door(bench, bench.agent(), rules, worker=False) as (app, client):
        names = ("alice", "bob", "carol")
        keys = {name: {"X-API-Key": await key_of(app, name), "A2A-Version": version} for name in names}
        held = [Held(client, path, body, keys[name]) for name in ("alice", "bob")]
        await until(lambda: _tasks(app, 2))  # no worker: they are open until they are left
        full = await client.http.post(path, json=body, headers=keys["carol"])
        assert _refused(full) == (503, "1", "SERVICE_UNAVAILABLE")
        await held.pop().leave()
        own = await client.http.post(path, json=body, headers=keys["alice"])
        assert _refused(own) == (429, "1", "TOO_MANY_REQUESTS")
        assert len(await app.store.tasks(10)) == 2  # nothing of what was refused has happened
        for each in held:
            await each.leave()
        again = Held(client, path, body, keys["carol"])
        await until(lambda: _tasks(app, 3))
        await again.leave()


def _refused(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, answer.headers["Retry-After"], reason_of(error.get("details") or error["data"])


async def _tasks(app: Any, count: int) -> bool:
    return len(await app.store.tasks(10)) == count


async def test_requests_have_places_too_and_give_them_back(bench: Bench) -> None:
    rules = entry(AUTH="keys", REQUESTS_PER_PRINCIPAL_MAX="1", REQUESTS_MAX="3")
    async with door(bench, bench.agent(say("yes")), rules, worker=False) as (app, client):
        keys = {name: {"X-API-Key": await key_of(app, name)} for name in ("alice", "bob", "carol", "dan")}
        held = [Held(client, "/message:send", sending(), keys[name]) for name in ("alice", "bob")]
        await until(lambda: _tasks(app, 2))
        assert (await client.http.get("/tasks", headers=keys["alice"])).status_code == 429
        assert (await client.http.get("/tasks", headers=keys["carol"])).status_code == 200
        held.append(Held(client, "/message:send", sending(), keys["carol"]))
        await until(lambda: _tasks(app, 3))
        for path in ("/tasks", "/.well-known/agent-card.json"):
            full = await client.http.get(path, headers=keys["dan"])
            assert (full.status_code, full.headers["Retry-After"]) == (503, "1")
        for each in held:
            await each.leave()
        assert (await client.http.get("/tasks", headers=keys["dan"])).status_code == 200


async def test_a_body_that_does_not_come_is_not_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_BODY_S", 0.05)

    async def never_whole() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    async with door(bench, bench.agent(), entry(), worker=False) as (_, client):
        answer = await client.http.post("/message:send", content=never_whole())
    assert answer.status_code == 408
