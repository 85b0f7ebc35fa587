"""The card's signature: anybody who has the public key can tell, by the SDK's verifier and by the specification."""

import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from google.protobuf.json_format import ParseDict
from pydantic import SecretStr

from perdure.a2a.signing import CardKey
from perdure.app.entry import EntrySettings
from perdure.app.offer import Offer
from perdure.core.errors import ConfigurationError
from tests.a2a.desk import URL, Json
from tests.a2a.doors import door, key_of
from tests.temporal.bench import Bench

KEYS: dict[str, Any] = {
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def pem(key: Any, encryption: Any = None) -> str:
    text: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
    return text.decode()


def _verify(card: Json, key_set: Json) -> Json:
    """Verify as a client does; return the protected header."""
    (public,) = key_set["keys"]
    assert "d" not in public
    create_signature_verifier(lambda kid, jku: jwt.PyJWK(public), [public["alg"]])(
        ParseDict(card, AgentCard(), ignore_unknown_fields=True)
    )
    protected = card["signatures"][0]["protected"]
    header: Json = json.loads(base64.urlsafe_b64decode(protected + "=" * (-len(protected) % 4)))
    assert header == {"alg": public["alg"], "typ": "JOSE", "kid": public["kid"], "jku": f"{URL}/.well-known/jwks.json"}
    return header


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("algorithm", KEYS)
async def test_both_cards_are_signed_and_a_changed_one_is_not(bench: Bench, algorithm: str) -> None:
    locked = EntrySettings(keys=True, card_key=SecretStr(pem(KEYS[algorithm])))
    async with door(bench, bench.agent(), locked, worker=False) as (app, client):
        card: Json = (await client.http.get("/.well-known/agent-card.json")).json()
        key_set: Json = (await client.http.get("/.well-known/jwks.json")).json()
        assert _verify(card, key_set)["alg"] == algorithm
        key = await key_of(app, "alice")
        extended = await client.result("GetExtendedAgentCard", {}, X_API_Key=key)
        _verify(extended, key_set)
    changes: list[Json] = [{"name": "mallory"}, {"securityRequirements": []}, {"description": ""}]
    for changed in changes:
        with pytest.raises(InvalidSignaturesError):
            _verify({**card, **changed}, key_set)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_bytes_that_are_signed_are_the_specifications(bench: Bench) -> None:
    """8.4.1: what was received, without signatures, in canonical form; no value in it is empty, so none is left out.

    Without 0.3 the card is served as it was signed; with it, fields for 0.3 are added, which are not of 1.0's card.
    """
    key = KEYS["ES256"]
    locked = EntrySettings(keys=True, card_key=SecretStr(pem(key)))
    async with door(bench, bench.agent(), locked, worker=False, offer=Offer(v0_3=False)) as (_, client):
        card: Json = (await client.http.get("/.well-known/agent-card.json")).json()
    (signature,) = card.pop("signatures")
    assert not [value for value in _values(card) if value in ("", [], {}, None)]
    canonical = json.dumps(card, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    body = base64.urlsafe_b64encode(canonical).decode().rstrip("=")
    jwt.api_jws.decode(f"{signature['protected']}.{body}.{signature['signature']}", key.public_key(), ["ES256"])


def _values(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(each for one in inner for each in _values(one))]


def test_a_key_comes_as_text_or_as_a_file_and_has_one_id(tmp_path: Path) -> None:
    text = pem(KEYS["ES256"])
    path = tmp_path / "card.pem"
    path.write_text(text)
    row = jwt.algorithms.ECAlgorithm.to_jwk(KEYS["ES256"], as_dict=True)
    ids = {CardKey(SecretStr(each)).public["kid"] for each in (text, str(path), json.dumps(row))}
    assert len(ids) == 1
    assert len(ids.pop()) == 43
    assert CardKey(SecretStr(json.dumps({**row, "kid": "mine"}))).public["kid"] == "mine"


BAD: dict[str, str] = {
    "no key": "secret-words",
    "no such file": "/nowhere/card.pem",
    "a broken file": "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----",
    "one with a password": pem(KEYS["ES256"], BestAvailableEncryption(b"secret")),
    "for another use": pem(x25519.X25519PrivateKey.generate()),
    "a public one": json.dumps(jwt.algorithms.ECAlgorithm.to_jwk(KEYS["ES256"].public_key(), as_dict=True)),
    "a shared secret": json.dumps({"kty": "oct", "k": "c2VjcmV0", "d": "x"}),
    "a list": "{}",
    "a foreign algorithm": json.dumps(
        {**jwt.algorithms.ECAlgorithm.to_jwk(KEYS["ES256"], as_dict=True), "alg": "HS256"}
    ),
    "half a key": json.dumps({"kty": "EC", "crv": "P-256", "x": "secret", "y": "secret", "d": "secret"}),
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_cannot_sign_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ConfigurationError, match="PERDURE_CARD_KEY") as refused:
        CardKey(SecretStr(text))
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
