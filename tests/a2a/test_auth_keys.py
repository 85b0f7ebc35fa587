"""API keys: who has one comes in, as whom it names; everybody else is told what to show, and nothing else."""

import pytest

from perdure import tool
from perdure.a2a.keys import new_key
from perdure.core.errors import InvalidInput
from perdure.core.ports import ToolPort
from perdure.testing import say
from tests.a2a.desk import Json, reason_of, sending
from tests.a2a.doors import door, entry, key_of
from tests.temporal.bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEYS = entry(AUTH="keys")
ZERO = "0" * 64


async def test_a_key_opens_and_its_principal_owns_the_task(bench: Bench) -> None:
    async with door(bench, bench.agent(say("yes")), KEYS) as (app, client):
        alice, again = await key_of(app, "alice"), await key_of(app, "alice")
        task = (await client.result("SendMessage", sending(), X_API_Key=alice))["task"]
        row = await app.store.task(task["id"])
        assert row is not None
        assert row.header.principal == "alice"
        # Another key of the same principal, shown in the other place, sees the same.
        assert (await client.result("GetTask", {"id": task["id"]}, Authorization=f"Bearer {again}"))["id"] == task["id"]


WRONG: dict[str, list[tuple[str, str]]] = {
    "nothing": [],
    "an empty key": [("X-API-Key", "")],
    "no key": [("X-API-Key", "hello")],
    "an unknown id": [("X-API-Key", f"perdure_000000000000_{ZERO}")],
    "a known id with another secret": [("X-API-Key", f"perdure_{{id}}_{ZERO}")],
    "a key cut short": [("X-API-Key", "{key:.70}")],
    "a key with more": [("X-API-Key", "{key}0")],
    "a key in capitals": [("X-API-Key", "{KEY}")],
    "a revoked key": [("X-API-Key", "{revoked}")],
    "a key as a password": [("Authorization", "Basic {key}")],
    "two keys": [("X-API-Key", "{key}"), ("X-API-Key", "{key}")],
    "two authorizations": [("Authorization", "Bearer {key}"), ("Authorization", "Bearer {key}")],
    "bytes": [("X-API-Key", "perdure_\xff\xfe")],
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
async def test_whoever_shows_no_good_key_is_refused(
    bench: Bench, headers: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """7.4: a challenge, in the form of the binding, that shows nothing of what was sent."""
    async with door(bench, bench.agent(), KEYS, worker=False) as (app, client):
        key, revoked = await key_of(app, "alice"), await key_of(app, "alice")
        await app.store.revoke_key(revoked.split("_")[1], 2)
        words = {"id": key.split("_")[1], "key": key, "KEY": key.upper(), "revoked": revoked}
        given = [(name.encode(), value.format(**words).encode("latin-1")) for name, value in headers]
        by_http = await client.http.post("/message:send", json=sending(), headers=given)
        by_rpc = await client.http.post("/", json={"jsonrpc": "2.0", "id": 7, "method": "ListTasks"}, headers=given)
        for answer in (by_http, by_rpc):
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == 'ApiKey realm="perdure", header="X-API-Key"'
            assert answer.headers["Cache-Control"] == "no-store"
            assert ZERO not in answer.text
            assert key.split("_")[2][:40] not in answer.text
        error = by_http.json()["error"]
        assert (error["code"], error["status"]) == (401, "UNAUTHENTICATED")
        assert reason_of(error["details"]) == reason_of(by_rpc.json()["error"]["data"]) == "UNAUTHENTICATED"
        assert by_rpc.json()["error"]["code"] == -32061
        assert await app.store.tasks(10) == ()
    assert key.split("_")[2][:40] not in caplog.text
    assert ZERO not in caplog.text


async def test_every_key_that_is_none_is_refused_in_the_same_words(bench: Bench) -> None:
    """Nobody learns from a refusal which ids there are, or that a key was good once."""
    async with door(bench, bench.agent(), KEYS, worker=False) as (app, client):
        key, revoked = await key_of(app, "alice"), await key_of(app, "alice")
        await app.store.revoke_key(revoked.split("_")[1], 2)
        answers = [
            (await client.http.get("/tasks", headers={"X-API-Key": each})).text
            for each in (
                revoked,
                key[:-1] + ("0" if key[-1] != "0" else "1"),
                f"perdure_{'0' * 12}_{ZERO}",
                "perdure_x",
            )
        ]
    assert len(set(answers)) == 1


async def test_only_what_is_public_is_there_for_everybody(bench: Bench) -> None:
    async with door(bench, bench.agent(), KEYS, worker=False) as (_, client):
        assert (await client.http.get("/.well-known/agent-card.json")).status_code == 200
        for method, path in (
            ("GET", "/tasks"), ("GET", "/tasks/t-1"), ("POST", "/tasks/t-1:cancel"), ("POST", "/tasks/t-1:subscribe"),
            ("GET", "/extendedAgentCard"), ("GET", "/nothing"), ("DELETE", "/"), ("OPTIONS", "/message:send"),
            ("GET", "/.well-known/../tasks"), ("GET", "//tasks"), ("GET", "/v1/card"), ("POST", "/v1/message:send"),
        ):  # fmt: skip
            assert (await client.http.request(method, path)).status_code == 401, (method, path)


async def test_a_revoked_key_is_refused_from_the_next_request_on(bench: Bench) -> None:
    async with door(bench, bench.agent(), KEYS, worker=False) as (app, client):
        key = {"X-API-Key": await key_of(app, "alice")}
        assert (await client.http.get("/tasks", headers=key)).status_code == 200
        await app.store.revoke_key(key["X-API-Key"].split("_")[1], 2)
        assert (await client.http.get("/tasks", headers=key)).status_code == 401


async def test_the_card_says_what_to_show_and_the_extended_one_more(bench: Bench) -> None:
    """3.1.11, 13.3: only for those who came in; with it the public card's flag."""
    async with door(bench, bench.agent(tools=[_tool()]), KEYS, worker=False) as (app, client):
        card: Json = (await client.http.get("/.well-known/agent-card.json")).json()
        assert card["securitySchemes"]["apiKey"]["apiKeySecurityScheme"]["name"] == "X-API-Key"
        assert card["securityRequirements"] == [{"schemes": {"apiKey": {"list": ["principal"]}}}]
        assert card["capabilities"]["extendedAgentCard"] is True
        assert [each["name"] for each in card["skills"]] == [app.agent.id]
        refused = await client.http.get("/extendedAgentCard")
        assert refused.status_code == 401
        key = await key_of(app, "alice")
        extended = await client.result("GetExtendedAgentCard", {}, X_API_Key=key)
        assert [(each["name"], each["tags"]) for each in extended["skills"]][1:] == [("look", ["tool", "read"])]
        assert "Look it up" in extended["skills"][1]["description"]


async def test_without_authentication_there_is_no_extended_card(bench: Bench) -> None:
    async with door(bench, bench.agent(), entry(), worker=False) as (_, client):
        card: Json = (await client.http.get("/.well-known/agent-card.json")).json()
        assert card["capabilities"].get("extendedAgentCard", False) is False
        assert "securitySchemes" not in card
        assert await client.reason("GetExtendedAgentCard", {}) == "UNSUPPORTED_OPERATION"


def _tool() -> ToolPort:
    @tool(effect="read")
    async def look(order_id: str) -> str:
        """Look it up."""
        return order_id

    return look


OTHERS = {
    "a page by its name": {"Host": "evil.test", "Origin": "http://evil.test"},
    "a page that reads": {"Host": "evil.test:8000"},
    "a page by our address": {"Origin": "http://evil.test"},
    "a page in a frame": {"Origin": "null"},
    "a name that begins like ours": {"Host": "localhost.evil.test"},
    "a host that is none": {"Host": "[::1"},
}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS)
async def test_a_page_of_another_site_does_not_come_in_without_authentication(bench: Bench, headers: Json) -> None:
    async with door(bench, bench.agent(), entry(), worker=False) as (app, client):
        for answer in (
            await client.http.post("/message:send", json=sending(), headers=headers),
            await client.http.get("/tasks", headers=headers),
            await client.http.get("/.well-known/agent-card.json", headers=headers),
        ):
            assert answer.status_code == 403
            assert reason_of(answer.json()["error"]["details"]) == "PERMISSION_DENIED"
        assert await app.store.tasks(10) == ()
        for own in ({}, {"Host": "127.0.0.1:8000"}, {"Host": "localhost"}, {"Origin": "http://localhost:3000"}):
            assert (await client.http.get("/tasks", headers=own)).status_code == 200, own


@pytest.mark.parametrize("name", ["", " ", "a\x00", "a\n", " a", "\ud800", "x" * 257])
async def test_a_principal_is_a_plain_name(name: str) -> None:
    with pytest.raises(InvalidInput, match="principal"):
        new_key(name, 1)


async def test_keys_are_not_alike_and_what_is_kept_has_no_secret() -> None:
    made = [new_key("alice", 1) for _ in range(100)]
    assert len({each.text for each in made}) == len({each.kept.key_id for each in made}) == 100
    assert all(each.text.split("_")[2] not in str(each.kept) for each in made)
