from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.client.visitor import House, Plain, Visitor


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


@pytest.fixture
def visitor(house: House) -> Visitor:
    return Visitor(house.folder / "visitor", house.url)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Plain]:
    plain = Plain(tmp_path)
    yield plain
    plain.close()


@pytest.fixture
def guest(plain: Plain) -> Visitor:
    return Visitor(plain.folder / "guest", plain.url)
