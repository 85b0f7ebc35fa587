"""Tokens: who has a good one of this issuer comes in; and how an issuer's keys are kept."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest

from perdure.a2a.jwks import KeySet
from perdure.a2a.refusals import PermissionDeniedError, UnauthenticatedError
from perdure.a2a.tokens import TokenAuthenticator
from perdure.app.entry import DEFAULT_ALGORITHMS, EntrySettings
from perdure.core import limits
from perdure.core.errors import Unavailable
from perdure.testing import say
from tests.a2a.desk import Json, reason_of, sending
from tests.a2a.doors import AUDIENCE, ISSUER, Issuer, door, jwt_settings, key_of
from tests.temporal.bench import Bench

HERE = Issuer()
ELSEWHERE = Issuer()
NOW = int(time.time())


@pytest.fixture
def jwks(tmp_path: Path) -> str:
    path = tmp_path / "jwks.json"
    path.write_bytes(HERE.key_set())
    return str(path)


@pytest.mark.parametrize("key_id", ["k-rs", "k-es", "k-ed"])
async def test_a_good_token_names_its_principal(jwks: str, key_id: str) -> None:
    door = TokenAuthenticator(jwt_settings(jwks))
    assert await door.principal(HERE.token(key_id)) == "jwt:alice"
    assert await door.principal(HERE.token(key_id, aud=["other", AUDIENCE])) == "jwt:alice"
    assert await door.principal(HERE.token(key_id, exp=int(time.time()) - 5)) == "jwt:alice"  # clocks differ
    by_mail = TokenAuthenticator(jwt_settings(jwks, claim="email"))
    assert await by_mail.principal(HERE.token(key_id, email="a@b.test")) == "jwt:a@b.test"


def _unsigned(**claims: Any) -> str:
    return jwt.encode({"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 300, **claims}, "", "none")


def _by_public_key() -> str:
    """The old trick: what everybody may read, taken for a secret that both share."""
    row = json.dumps(HERE.row("k-rs"))
    head, body, _ = HERE.token("k-rs").split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "k-rs"}).encode()).decode().rstrip("=")
    sign = hmac.new(row.encode(), f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64.urlsafe_b64encode(sign).decode().rstrip('=')}"


WRONG: dict[str, str] = {
    "expired": HERE.token(exp=NOW - 3600),
    "no expiry": HERE.token(exp=None),
    "an expiry that is none": HERE.token(exp="tomorrow"),
    "not yet": HERE.token(nbf=NOW + 3600),
    "issued in the future": HERE.token(iat=NOW + 3600),
    "another issuer": HERE.token(iss="https://other.test/"),
    "an issuer that begins so": HERE.token(iss=ISSUER + "x"),
    "no issuer": HERE.token(iss=None),
    "another audience": HERE.token(aud="other"),
    "no audience": HERE.token(aud=None),
    "nobody": HERE.token(sub=None),
    "an empty name": HERE.token(sub=" "),
    "a name with a zero byte": HERE.token(sub="a\x00"),
    "a name too long": HERE.token(sub="x" * 300),
    "another's signature": ELSEWHERE.token(),
    "an unknown key": HERE.token(header={"kid": "k-no"}),
    "another key's id": HERE.token("k-es", header={"kid": "k-rs"}),
    "unsigned": _unsigned(),
    "a shared secret": _by_public_key(),
    "a critical header that nobody knows": HERE.token(header={"crit": ["x"], "x": 1}),
    "signed by a secret": jwt.encode({"a": 1}, "s" * 32, "HS256", headers={"kid": "k"}),
    "too long": HERE.token(more="x" * limits.TOKEN_BYTES_MAX),
    "no token": "a.b.c",
    "nothing in it": "..",
    "changed": HERE.token()[:-6] + "AAAAAA",
}


@pytest.mark.parametrize("token", WRONG.values(), ids=WRONG)
async def test_every_other_token_is_refused(jwks: str, token: str) -> None:
    door = TokenAuthenticator(jwt_settings(jwks))
    with pytest.raises(UnauthenticatedError) as refused:
        await door.principal(token)
    told = refused.value.headers["WWW-Authenticate"]
    assert told.startswith('Bearer realm="perdure", error="invalid_token"')
    assert token not in refused.value.message + told or len(token) < 8


async def test_only_allowed_algorithms_count_and_a_key_is_for_one(jwks: str) -> None:
    door = TokenAuthenticator(jwt_settings(jwks, algorithms=("ES256",)))
    assert await door.principal(HERE.token("k-es")) == "jwt:alice"
    with pytest.raises(UnauthenticatedError):
        await door.principal(HERE.token("k-rs"))


async def test_a_scope_that_is_asked_for_must_be_there(jwks: str) -> None:
    door = TokenAuthenticator(jwt_settings(jwks, scope="agent.use"))
    for good in ({"scope": "a agent.use b"}, {"scp": ["agent.use"]}):
        assert await door.principal(HERE.token(**good)) == "jwt:alice"
    for bad in ({}, {"scope": "agent.user"}, {"scp": ["x"]}, {"scope": 7}):
        with pytest.raises(PermissionDeniedError) as refused:
            await door.principal(HERE.token(**bad))
        assert 'error="insufficient_scope", scope="agent.use"' in refused.value.headers["WWW-Authenticate"]


# --- an issuer's keys ---------------------------------------------------------------------------------------------


class Keys:
    """An issuer's server of keys."""

    def __init__(self) -> None:
        self.body = HERE.key_set("k-es")
        self.status = 200
        self.asked = 0
        self.location = ""


@contextlib.contextmanager
def _serving(keys: Keys) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.asked += 1
            self.send_response(keys.status)
            if keys.location:
                self.send_header("Location", keys.location)
            self.send_header("Content-Length", str(len(keys.body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(keys.body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/jwks"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Clock:
    """A clock that stands until it is moved."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


async def test_keys_are_fetched_once_and_again_for_a_new_one_but_not_for_every_unknown_one() -> None:
    keys, clock = Keys(), Clock()
    with _serving(keys) as url:
        found = KeySet(url, DEFAULT_ALGORITHMS, clock)
        many = await asyncio.gather(*(found.find("k-es", "ES256") for _ in range(20)))
        assert (len(set(map(id, many))), keys.asked) == (1, 1)
        assert await found.find("k-rs", "RS256") is None
        assert keys.asked == 1  # it was asked a moment ago
        keys.body = HERE.key_set()
        clock.now_s += limits.JWKS_AGAIN_S
        assert await found.find("k-rs", "RS256") is not None
        assert keys.asked == 2
        for n in range(50):
            assert await found.find(f"k-{n}", "ES256") is None
        assert keys.asked == 2
        clock.now_s += limits.JWKS_FRESH_S
        keys.body = HERE.key_set("k-rs")
        assert await found.find("k-es", "ES256") is None  # taken back by its issuer
        assert keys.asked == 3


BROKEN: dict[str, Json] = {
    "an error": {"status": 500},
    "no JSON": {"body": b"<html>"},
    "no key set": {"body": b'{"keys": 7}'},
    "an empty one": {"body": b'{"keys": []}'},
    "a huge one": {"body": b'{"keys": [' + b" " * limits.JWKS_BYTES_MAX + b"]}"},
    "a way elsewhere": {"status": 302, "location": "http://127.0.0.1:9/"},
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_an_issuer_that_does_not_answer_closes_no_door_for_an_hour(broken: Json) -> None:
    keys, clock = Keys(), Clock()
    with _serving(keys) as url:
        found = KeySet(url, DEFAULT_ALGORITHMS, clock)
        assert await found.find("k-es", "ES256") is not None
        for name, value in broken.items():
            setattr(keys, name, value)
        clock.now_s += limits.JWKS_FRESH_S
        assert await found.find("k-es", "ES256") is not None
        assert keys.asked == 2
        clock.now_s += limits.JWKS_STALE_S
        with pytest.raises(Unavailable, match="cannot be had now"):
            await found.find("k-es", "ES256")
        never = KeySet(url, DEFAULT_ALGORITHMS, clock)
        with pytest.raises(Unavailable):
            await never.find("k-es", "ES256")


async def test_of_a_key_set_what_can_be_used_is(tmp_path: Path) -> None:
    bare = {name: value for name, value in HERE.row("k-rs").items() if name not in {"alg", "use", "kid"}}
    rows: list[object] = [
        7,
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k-oct", "alg": "HS256"},
        {"kty": "EC", "crv": "P-999", "kid": "k-odd"},
        {**HERE.row("k-es"), "use": "enc", "kid": "k-enc"},
        bare,
    ]
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": rows}))
    found = KeySet(str(path), DEFAULT_ALGORITHMS)
    assert await found.find("k-oct", "HS256") is None
    assert await found.find("k-enc", "ES256") is None
    # A token without a key id is checked with the only key there is, by an algorithm that is allowed.
    for algorithm in ("RS256", "PS256"):
        assert await found.find(None, algorithm) is not None
    assert await found.find(None, "RS512") is None


# --- at the door --------------------------------------------------------------------------------------------------


@pytest.mark.asyncio(loop_scope="session")
async def test_tokens_and_keys_open_one_door_and_are_never_each_other(bench: Bench, jwks: str) -> None:
    both = EntrySettings(keys=True, jwt=jwt_settings(jwks))
    async with door(bench, bench.agent(say("yes"), say("yes")), both) as (app, client):
        card = (await client.http.get("/.well-known/agent-card.json")).json()
        assert [list(each["schemes"]) for each in card["securityRequirements"]] == [["apiKey"], ["bearer"]]
        bearer = card["securitySchemes"]["bearer"]
        assert bearer["httpAuthSecurityScheme"] == {"scheme": "Bearer", "bearerFormat": "JWT"}
        assert (bearer["type"], card["security"][1]) == ("http", {"bearer": ["principal"]})  # for clients of 0.3
        shown = {"Authorization": f"Bearer {HERE.token()}"}
        task = (await client.result("SendMessage", sending(), **shown))["task"]
        namesake, same = await key_of(app, "alice"), await key_of(app, "jwt:alice")
        assert await client.reason("GetTask", {"id": task["id"]}, X_API_Key=namesake) == "TASK_NOT_FOUND"
        assert (await client.result("GetTask", {"id": task["id"]}, X_API_Key=same))["id"] == task["id"]
        refused = await client.http.get("/tasks")
        assert refused.headers["WWW-Authenticate"].count("realm") == 2


@pytest.mark.asyncio(loop_scope="session")
async def test_what_cannot_be_told_now_is_no_refusal(bench: Bench, tmp_path: Path) -> None:
    locked = EntrySettings(jwt=jwt_settings(str(tmp_path / "none.json")))
    async with door(bench, bench.agent(), locked, worker=False) as (_, client):
        answer = await client.http.get("/tasks", headers={"Authorization": f"Bearer {HERE.token()}"})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert reason_of(answer.json()["error"]["details"]) == "SERVICE_UNAVAILABLE"
