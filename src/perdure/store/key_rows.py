"""API keys: who may come in. What is kept of a secret is its digest; whoever reads the store cannot use it as a key."""

from sqlalchemy import Connection, bindparam, select, update

from perdure.core.access import ApiKey
from perdure.core.errors import InvalidInput
from perdure.store.bodies import identifier
from perdure.store.inserting import insert_missing
from perdure.store.schema import api_keys

_KEY = select(api_keys).where(api_keys.c.key_id == bindparam("of_key"))
_ALL = select(api_keys).order_by(api_keys.c.created_at_ms, api_keys.c.key_id)
_REVOKE = update(api_keys).where(api_keys.c.key_id == bindparam("of_key"), api_keys.c.revoked_at_ms.is_(None))


def add_key(connection: Connection, key: ApiKey) -> None:
    """Insert the key; raises `InvalidInput` where its id stands."""
    for field in ("key_id", "principal"):
        identifier(field, getattr(key, field))
    if insert_missing(connection, api_keys, [key.model_dump()]) == 0:
        raise InvalidInput("key_id", f"{key.key_id!r} is taken; make another key")


def read_key(connection: Connection, key_id: str) -> ApiKey | None:
    """Return the key, or None."""
    row = connection.execute(_KEY, {"of_key": key_id}).mappings().one_or_none()
    return None if row is None else ApiKey.model_validate(dict(row))


def read_keys(connection: Connection) -> tuple[ApiKey, ...]:
    """Return all keys, the oldest first."""
    return tuple(ApiKey.model_validate(dict(row)) for row in connection.execute(_ALL).mappings())


def revoke_key(connection: Connection, key_id: str, at_ms: int) -> ApiKey | None:
    """Note when the key ended, unless that is noted; return it as it then is."""
    connection.execute(_REVOKE, {"of_key": key_id, "revoked_at_ms": at_ms})
    return read_key(connection, key_id)
