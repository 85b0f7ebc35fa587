"""Apps with a locked door in this process, the keys and tokens for it, and clients of it."""

import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from perdure import App
from perdure.a2a.keys import new_key
from perdure.app.entry import EntrySettings, JwtSettings, entry_from_environment
from perdure.app.offer import Offer
from tests.a2a.desk import URL, Desk, Json
from tests.temporal.bench import Bench

ISSUER = "https://issuer.test/"
AUDIENCE = "perdure-test"

ALGORITHMS: dict[str, Any] = {
    "RS256": jwt.algorithms.RSAAlgorithm,
    "PS256": jwt.algorithms.RSAAlgorithm,
    "ES256": jwt.algorithms.ECAlgorithm,
    "EdDSA": jwt.algorithms.OKPAlgorithm,
}


class Issuer:
    """Signs tokens, and has the key set that proves it."""

    def __init__(self) -> None:
        self.private: dict[str, Any] = {
            "k-rs": rsa.generate_private_key(public_exponent=65537, key_size=2048),
            "k-es": ec.generate_private_key(ec.SECP256R1()),
            "k-ed": ed25519.Ed25519PrivateKey.generate(),
        }
        self.algorithms = {"k-rs": "RS256", "k-es": "ES256", "k-ed": "EdDSA"}

    def row(self, key_id: str) -> Json:
        algorithm = self.algorithms[key_id]
        public = ALGORITHMS[algorithm].to_jwk(self.private[key_id].public_key(), as_dict=True)
        return {**public, "kid": key_id, "use": "sig", "alg": algorithm}

    def key_set(self, *key_ids: str) -> bytes:
        return json.dumps({"keys": [self.row(key_id) for key_id in key_ids or self.private]}).encode()

    def token(self, key_id: str = "k-es", header: Json | None = None, **claims: Any) -> str:
        now = int(time.time())
        body = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 300, **claims}
        body = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(
            body, self.private[key_id], algorithm=self.algorithms[key_id], headers={"kid": key_id, **(header or {})}
        )


def jwt_settings(jwks: str, **fields: Any) -> JwtSettings:
    return JwtSettings(jwks=jwks, issuer=ISSUER, audience=AUDIENCE, **fields)


async def key_of(app: App, principal: str) -> str:
    made = new_key(principal, 1)
    await app.store.add_key(made.kept)
    return made.text


@contextlib.asynccontextmanager
async def door(
    bench: Bench, agent: Any, entry: EntrySettings, *, worker: bool = True, offer: Offer | None = None
) -> AsyncIterator[tuple[App, Desk]]:
    """Open an app whose door is locked so, and a client that shows nothing by itself."""
    bench.settings = replace(bench.settings, entry=entry)
    async with bench.app(agent, worker=worker) as app:
        transport = httpx.ASGITransport(app.asgi(URL, offer=offer))
        headers = {"A2A-Version": "1.0"}
        async with httpx.AsyncClient(transport=transport, base_url=URL, headers=headers, timeout=30) as http:
            yield app, Desk(http)


def entry(**variables: str) -> EntrySettings:
    return entry_from_environment({f"PERDURE_{name}": value for name, value in variables.items()})
