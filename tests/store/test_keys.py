"""API keys: kept once, revoked once, and never with their secret."""

import pytest

from perdure.core.access import ApiKey
from perdure.core.errors import InvalidInput
from perdure.store import SqlStore

ALICE = ApiKey(key_id="k1", principal="alice", secret_digest="d" * 64, created_at_ms=100)
BOB = ApiKey(key_id="k0", principal="bob", secret_digest="e" * 64, created_at_ms=200)


async def test_a_key_is_kept_and_listed(store: SqlStore) -> None:
    await store.add_key(BOB)
    await store.add_key(ALICE)
    assert await store.key("k1") == ALICE
    assert await store.key("k2") is None
    assert await store.keys() == (ALICE, BOB)
    with pytest.raises(InvalidInput, match="taken"):
        await store.add_key(BOB.model_copy(update={"principal": "mallory"}))
    assert await store.key("k0") == BOB


async def test_a_key_is_revoked_for_good_and_only_that_one(store: SqlStore) -> None:
    await store.add_key(ALICE)
    await store.add_key(BOB)
    revoked = ALICE.model_copy(update={"revoked_at_ms": 300})
    assert await store.revoke_key("k1", 300) == revoked
    assert await store.revoke_key("k1", 400) == revoked  # the first time stands
    assert await store.keys() == (revoked, BOB)
    assert await store.revoke_key("k2", 300) is None


async def test_what_is_no_key_of_a_database_is_refused(store: SqlStore) -> None:
    with pytest.raises(InvalidInput, match="key_id"):
        await store.key("k\x00")
    with pytest.raises(InvalidInput, match="principal"):
        await store.add_key(ALICE.model_copy(update={"principal": "a\x00"}))
