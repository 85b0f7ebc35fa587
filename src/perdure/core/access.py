"""Who may come in: API keys as they are kept."""

from typing import Protocol

from perdure.core.content import Frozen


class ApiKey(Frozen):
    """An API key as it is kept: without its secret, of which only the digest is known."""

    key_id: str
    principal: str
    secret_digest: str
    created_at_ms: int
    revoked_at_ms: int | None = None


class KeyStore(Protocol):
    """What keeps keys."""

    async def add_key(self, key: ApiKey) -> None:
        """Keep a new key; raises `InvalidInput` where its id is taken."""
        ...

    async def key(self, key_id: str) -> ApiKey | None:
        """Return the key, revoked or not, or None."""
        ...

    async def keys(self) -> tuple[ApiKey, ...]:
        """Return all keys, the oldest first."""
        ...

    async def revoke_key(self, key_id: str, at_ms: int) -> ApiKey | None:
        """Revoke the key, for good, and return it; the first time stands. None where there is none."""
        ...
