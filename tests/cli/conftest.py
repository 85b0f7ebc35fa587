from pathlib import Path

import pytest

from tests.cli.desk import Desk
from tests.temporal.conftest import bench, server

__all__ = ["bench", "server"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
