"""The data, or a skip that says why."""

from pathlib import Path

import pytest

from tests.retail.data import NO_DATA, Data, Task, load_data, load_tasks, retail_folder
from tests.retail.judge import Direct, direct


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


@pytest.fixture(scope="session")
def expected(tasks: tuple[Task, ...], data: Data, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Direct]:
    """What direct execution of each conversation comes to, by its number."""
    folder = tmp_path_factory.mktemp("direct")
    return {task.id: direct(task, data, folder / f"{task.id}.db") for task in tasks}
