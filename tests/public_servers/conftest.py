"""One Temporal for the session."""

from tests.temporal.conftest import bench, server

__all__ = ["bench", "server"]
