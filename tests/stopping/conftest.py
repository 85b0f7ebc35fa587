"""The session's Temporal, and a place per test."""

from tests.temporal.conftest import bench, client, server

__all__ = ["bench", "client", "server"]
