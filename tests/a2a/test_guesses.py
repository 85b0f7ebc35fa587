"""Credentials that are none are counted by the address that they come from, and shut nobody else out."""

import pytest

from perdure.a2a.guesses import Guesses, place_of
from perdure.a2a.keys import KeyAuthenticator
from perdure.a2a.rates import Rate
from perdure.core import door_limits
from tests.a2a.desk import Desk, reason_of
from tests.a2a.doors import door, entry, key_of
from tests.temporal.bench import Bench, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

KEYS = entry(AUTH="keys")


def unknown(number: int) -> str:
    return f"perdure_{number:012x}_{'0' * 64}"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_limits, "AUTH_FAILURES_BURST", 5.0)
    monkeypatch.setattr(door_limits, "AUTH_FAILURES_PER_S", 0.5)


async def code(client: Desk, key: str) -> int:
    return (await client.http.get("/tasks/t-none", headers={"X-API-Key": key})).status_code


@pytest.mark.usefixtures("few")
async def test_unknown_keys_are_refused_unseen_after_a_while(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is not asked for them any more; the pace that remains lets in again who waits."""
    looked_at: list[str] = []
    principal = KeyAuthenticator.principal

    async def noted(self: KeyAuthenticator, secret: str) -> str:
        looked_at.append(secret)
        return await principal(self, secret)

    monkeypatch.setattr(KeyAuthenticator, "principal", noted)
    async with door(bench, bench.agent(), KEYS, worker=False) as (app, client):
        codes = [await code(client, unknown(number)) for number in range(30)]
        assert codes[:5] == [401] * 5
        assert codes.count(401) == len(looked_at) < 30
        refused = await client.http.get("/tasks/t-none", headers={"X-API-Key": unknown(99)})
        assert (refused.status_code, refused.headers["Retry-After"] in {"1", "2"}) == (429, True)
        assert reason_of(refused.json()["error"]["details"]) == "TOO_MANY_REQUESTS"
        late = await key_of(app, "bob")

        async def let_in() -> bool:
            return await code(client, late) == 404

        await until(let_in)


@pytest.mark.usefixtures("few")
async def test_who_was_in_before_is_not_shut_out_by_a_neighbour(bench: Bench) -> None:
    """Nor is a key that is revoked meanwhile taken for one that was good."""
    async with door(bench, bench.agent(), KEYS, worker=False) as (app, client):
        alice, bob = await key_of(app, "alice"), await key_of(app, "bob")
        assert (await code(client, alice), await code(client, bob)) == (404, 404)
        for number in range(20):
            await code(client, unknown(number))
        assert await code(client, unknown(99)) == 429
        assert (await code(client, alice), await code(client, bob)) == (404, 404)
        await app.store.revoke_key(bob.split("_")[1], 2)
        assert await code(client, bob) == 401
        assert await code(client, bob) == 429


@pytest.mark.usefixtures("few")
async def test_who_shows_nothing_costs_nothing_and_is_challenged_each_time(bench: Bench) -> None:
    async with door(bench, bench.agent(), KEYS, worker=False) as (_, client):
        answers = {(await client.http.get("/tasks")).status_code for _ in range(30)}
        assert answers == {401}


async def test_what_was_under_way_together_is_owed() -> None:
    rate = Rate(per_s=1, burst=2, names_max=10)
    for _ in range(10):
        rate.owe("a", 0.0)
    assert rate.wait_s("a", 0.0) == pytest.approx(9)
    assert rate.wait_s("a", 9.0) == 0
    assert rate.wait_s("b", 0.0) == 0
    assert rate.take("a", 8.0) > 0


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_limits, "PEERS_REMEMBERED_MAX", 3)
    monkeypatch.setattr(door_limits, "CREDENTIALS_REMEMBERED_MAX", 3)
    guesses = Guesses()
    for number in range(100):
        guesses.failed(f"bad {number}", f"10.0.0.{number}", 0.0)
        guesses.succeeded(f"good {number}")
    assert (len(guesses._failed._buckets), len(guesses._good)) == (3, 3)
    assert not [secret for secret in guesses._good if b"good" in secret]


@pytest.mark.parametrize(
    ("peer", "place"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("an unknown address", "an unknown address"),
    ],
)
async def test_what_of_an_address_is_counted(peer: str, place: str) -> None:
    assert place_of(peer) == place
