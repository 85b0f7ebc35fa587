"""One Temporal for the session; a store and a world per test."""

from tests.temporal.conftest import bench, server

__all__ = ["bench", "server"]
