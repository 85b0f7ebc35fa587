"""One Temporal for the session, and one stage for all races."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.client import Client

from tests.races.stage import Race, Stage, raised
from tests.temporal.conftest import bench, server

__all__ = ["bench", "race", "server", "stage"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(server: tuple[str, Client], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with raised(server, tmp_path_factory.mktemp("races")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="session")
async def race(stage: Stage, request: pytest.FixtureRequest) -> AsyncIterator[Race]:
    """The task of the test's own race. What holds for any task is asked when the race is over."""
    race = stage.race(request.function)
    yield race
    await race.over()
