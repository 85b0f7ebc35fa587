from pathlib import Path

import pytest

from tests.outage.acting import PLACE
from tests.outage.data_folder import DataFolder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    monkeypatch.setenv(PLACE, str(tmp_path))
    return DataFolder(tmp_path)
