"""One embedded Temporal for the whole session; a store and an outside per test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from perdure.temporal.connection import temporal_client
from perdure.temporal.embedded import EmbeddedTemporal
from perdure.temporal.settings import RemoteSettings
from tests.temporal.bench import Bench


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server() -> AsyncIterator[tuple[str, Client]]:
    async with (
        await EmbeddedTemporal.start(None) as running,
        temporal_client(RemoteSettings(address=running.address, tls=False)) as client,
    ):
        yield running.address, client


@pytest.fixture
def bench(server: tuple[str, Client], tmp_path: Path) -> Bench:
    address, client = server
    return Bench(address, tmp_path, client)


@pytest.fixture
def client(bench: Bench) -> Client:
    return bench.client
