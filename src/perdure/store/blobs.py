"""Blobs: bytes named by their SHA-256, kept once however often they are stored."""

import hashlib

from sqlalchemy import Connection, bindparam, select

from perdure.core import limits
from perdure.core.errors import InvalidInput
from perdure.store.bodies import identifier
from perdure.store.inserting import insert_missing
from perdure.store.schema import blobs

_DATA = select(blobs.c.data).where(blobs.c.digest == bindparam("of_digest"))


def put_blob(connection: Connection, data: bytes, media_type: str) -> str:
    """Store the bytes unless they are there; return their digest."""
    identifier("media_type", media_type)
    if len(data) > limits.BLOB_BYTES_MAX:
        raise InvalidInput(
            "data", f"has {len(data)} bytes, a blob at most {limits.BLOB_BYTES_MAX}; store it elsewhere, by URL"
        )
    digest = hashlib.sha256(data).hexdigest()
    row = {"digest": digest, "media_type": media_type, "size_bytes": len(data), "data": data}
    insert_missing(connection, blobs, [row])
    return digest


def get_blob(connection: Connection, digest: str) -> bytes:
    """Return the bytes; raises `KeyError` when there are none."""
    data: bytes | None = connection.execute(_DATA, {"of_digest": digest}).scalar_one_or_none()
    if data is None:
        raise KeyError(digest)
    return data
