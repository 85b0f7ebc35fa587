import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.filing import Folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    made = Folder(tmp_path)
    yield made
    made.forget()
