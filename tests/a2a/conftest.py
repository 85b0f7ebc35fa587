from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.a2a.house import House
from tests.temporal.conftest import bench, server

__all__ = ["bench", "server"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()
