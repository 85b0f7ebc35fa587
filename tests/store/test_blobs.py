"""Blobs: named by their digest, kept once."""

import asyncio
import hashlib

import pytest

from perdure.core import limits
from perdure.core.errors import InvalidInput
from perdure.store import SqlStore


async def test_bytes_come_back_by_their_digest(store: SqlStore) -> None:
    data = bytes(range(256)) * 1024
    digests = await asyncio.gather(*(store.put_blob(data, "image/png") for _ in range(5)))
    assert set(digests) == {hashlib.sha256(data).hexdigest()}
    assert await store.get_blob(digests[0]) == data
    assert await store.get_blob(await store.put_blob(b"", "text/plain")) == b""


async def test_a_missing_blob_and_one_too_large_are_told(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyError):
        await store.get_blob("0" * 64)
    monkeypatch.setattr(limits, "BLOB_BYTES_MAX", 10)
    with pytest.raises(InvalidInput, match="11 bytes, a blob at most 10"):
        await store.put_blob(b"x" * 11, "text/plain")
