"""The data, or a skip that says why."""

from pathlib import Path

import pytest

from tests.retail.data import NO_DATA, Data, Task, load_data, load_tasks, retail_folder


@pytest.fixture(scope="session")
def retail() -> Path:
    folder = retail_folder()
    if folder is None:
        pytest.skip(NO_DATA)
    return folder


@pytest.fixture(scope="session")
def data(retail: Path) -> Data:
    return load_data(retail)


@pytest.fixture(scope="session")
def tasks(retail: Path) -> tuple[Task, ...]:
    return load_tasks(retail)
