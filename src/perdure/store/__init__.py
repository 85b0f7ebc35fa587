"""The store: what outlives a workflow, in SQLite or PostgreSQL, behind the `Store` port of the core.

A database's schema is brought up to date when it is opened. A write that returned is on disk; a write that was
refused left nothing; a write that is repeated changes nothing.
"""

from perdure.store.opening import open_store
from perdure.store.sql_store import SqlStore

__all__ = ["SqlStore", "open_store"]
