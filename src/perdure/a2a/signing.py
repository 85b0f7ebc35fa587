"""The card's signature (A2A 8.4): that the card is this operator's, for whoever has the key from somewhere else.

The private key comes from the environment or from a file that it names, as PEM or JWK; from its kind follows the
algorithm. The key's id is its thumbprint (RFC 7638) unless the JWK has one. The public half is served at
/.well-known/jwks.json, and the signature says so (`jku`): that proves no more than TLS does, but it lets a client keep
the key that it saw first.

The SDK's verifier leaves out every value that is empty, the specification keeps those of required fields. So a card
that is signed has no empty value, and both come to the same bytes.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from a2a.types.a2a_pb2 import AgentCard
from a2a.utils.signing import create_agent_card_signer
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError
from jwt.utils import base64url_encode
from pydantic import SecretStr

from perdure.app.entry import ALGORITHMS
from perdure.core.errors import ConfigurationError

JWKS_PATH: Final = "/.well-known/jwks.json"
VARIABLE: Final = "PERDURE_CARD_KEY"
PUBLIC: Final = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
"""The members of a public key, which are also what its thumbprint is of."""


class CardKey:
    """A private key that signs cards."""

    def __init__(self, given: SecretStr) -> None:
        """Read the key; raises `ConfigurationError` that shows nothing of it."""
        row = _row(given.get_secret_value())
        key = _loaded(row)
        members = {name: row[name] for name in PUBLIC[row["kty"]]}
        thumbprint = base64url_encode(
            sha256(json.dumps(members, separators=(",", ":"), sort_keys=True).encode()).digest()
        )
        self._key = key
        self._key_id = str(row.get("kid") or thumbprint.decode())
        self.public = {**members, "kid": self._key_id, "alg": key.algorithm_name, "use": "sig"}
        """The public half, as a JWK."""

    def signed(self, card: AgentCard, url: str) -> AgentCard:
        """Sign the card of a server that is reached at `url`, and return it."""
        sign: Callable[[AgentCard], AgentCard] = create_agent_card_signer(
            self._key,
            {
                "alg": self._key.algorithm_name,
                "typ": "JOSE",
                "kid": self._key_id,
                "jku": url.rstrip("/") + JWKS_PATH,
            },
        )
        return sign(card)


def _row(text: str) -> dict[str, Any]:
    """Return the private key as a JWK, whatever form it comes in."""
    text = text.strip()
    if not text.startswith(("{", "-----BEGIN")):
        try:
            text = Path(text).read_text().strip()
        except (OSError, ValueError):
            raise _problem("is neither PEM nor JWK nor the path of a file that can be read") from None
    try:
        row = json.loads(text) if text.startswith("{") else _from_pem(text.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _problem("holds no private key that can be read; give PEM without a password, or a JWK") from None
    if not isinstance(row, dict) or not {*PUBLIC.get(str(row.get("kty")), ("kty",)), "d"} <= row.keys():
        raise _problem("holds no private key of kind RSA, EC or OKP")
    return row


def _from_pem(pem: bytes) -> dict[str, Any]:
    key = load_pem_private_key(pem, password=None)
    if isinstance(key, RSAPrivateKey):
        return RSAAlgorithm.to_jwk(key, as_dict=True)
    if isinstance(key, EllipticCurvePrivateKey):
        return ECAlgorithm.to_jwk(key, as_dict=True)
    if isinstance(key, Ed25519PrivateKey):
        return OKPAlgorithm.to_jwk(key, as_dict=True)
    raise TypeError("another kind of key")


def _loaded(row: dict[str, Any]) -> PyJWK:
    try:
        key = PyJWK.from_dict(row)
    except PyJWTError:
        raise _problem("holds a key of a kind or for an algorithm that is not known") from None
    if key.algorithm_name not in ALGORITHMS:
        raise _problem(f"must be for one of {', '.join(ALGORITHMS)}")
    return key


def _problem(text: str) -> ConfigurationError:
    return ConfigurationError(VARIABLE, text)
