"""The executor's tests run against the real store, in a file of their own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure.store import open_store
from tests.tools.bench import Bench


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store/store.db"


@pytest.fixture
async def bench(store_url: str) -> AsyncIterator[Bench]:
    store = await open_store(store_url)
    yield Bench(store)
    await store.close()
