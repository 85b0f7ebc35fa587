"""API keys: made at random, shown once, and known afterwards by a digest alone.

    perdure_<id>_<secret>

The id finds the key's row; the secret's 256 random bits are what it proves. So a plain SHA-256 is enough: there is
nothing to guess that a slow hash would have to protect. The row is read for every request, a read by primary key:
a revoked key is refused by the next one, on every server. The form is our own, so that scanners for leaked secrets can
know it.
"""

import hashlib
import hmac
import re
import secrets
from typing import Final, NamedTuple

from a2a.types.a2a_pb2 import APIKeySecurityScheme, SecurityScheme

from perdure.a2a.identity import KEY_HEADER
from perdure.a2a.refusals import UnauthenticatedError
from perdure.core import limits
from perdure.core.access import ApiKey, KeyStore
from perdure.core.digests import safe_text
from perdure.core.errors import InvalidInput

PREFIX: Final = "perdure_"
FORM: Final = re.compile(r"perdure_([0-9a-f]{12})_([0-9a-f]{64})")
UNKNOWN: Final = "the API key is not known here, or was revoked; ask the operator for one"


class NewKey(NamedTuple):
    """A key that was just made: what is kept of it, and what its owner is given, once."""

    kept: ApiKey
    text: str


def new_key(principal: str, at_ms: int) -> NewKey:
    """Make a key for a principal; raises `InvalidInput` for a name that can be none."""
    if not 0 < len(principal.strip()) <= limits.PRINCIPAL_CHARS_MAX or not _is_plain(principal):
        raise InvalidInput(
            "principal", f"must have 1 to {limits.PRINCIPAL_CHARS_MAX} printable characters, none around them"
        )
    key_id, secret = secrets.token_hex(6), secrets.token_hex(32)
    kept = ApiKey(key_id=key_id, principal=principal, secret_digest=_digest(secret), created_at_ms=at_ms)
    return NewKey(kept, f"{PREFIX}{key_id}_{secret}")


class KeyAuthenticator:
    """Takes API keys that the store knows."""

    name = "apiKey"
    roles = ("principal",)
    challenge = f'ApiKey realm="perdure", header="{KEY_HEADER}"'

    def __init__(self, store: KeyStore) -> None:
        self._store = store

    @property
    def scheme(self) -> SecurityScheme:
        """What the card says of it."""
        return SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name=KEY_HEADER))

    def knows(self, secret: str) -> bool:
        """Whether it looks like a key."""
        return secret.startswith(PREFIX)

    async def principal(self, secret: str) -> str:
        """Return whose key it is; raises as `Authenticator.principal` says, the same for every key that is none."""
        form = FORM.fullmatch(secret)
        kept = None if form is None else await self._store.key(form[1])
        # Compared in any case, and in constant time: how long it takes says nothing about which ids there are.
        matches = hmac.compare_digest(
            _digest("" if form is None else form[2]), "" if kept is None else kept.secret_digest
        )
        if kept is None or not matches or kept.revoked_at_ms is not None:
            raise UnauthenticatedError(UNKNOWN)
        return kept.principal


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _is_plain(name: str) -> bool:
    return safe_text(name) == name and name.isprintable() and name.strip() == name
