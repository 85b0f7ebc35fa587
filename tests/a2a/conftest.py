from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.a2a.house import House
from tests.a2a.receiver import Receiver
from tests.a2a.specified import ask, served
from tests.temporal.conftest import bench, server

__all__ = ["ask", "bench", "served", "server"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(tmp_path)
    yield receiver
    receiver.close()
