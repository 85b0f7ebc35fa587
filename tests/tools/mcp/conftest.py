"""A shop in a folder of the test's own, and the session's Temporal for tests of whole tasks."""

from pathlib import Path

import pytest

from tests.temporal.conftest import bench, server
from tests.tools.mcp.shop import Shop

__all__ = ["bench", "server"]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for a task: each start of a server is a second of processor time, on a machine that others use."""
    monkeypatch.setattr("tests.temporal.bench.WAIT_S", 90.0)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    folder = tmp_path / "shop"
    folder.mkdir()
    return Shop(folder)
