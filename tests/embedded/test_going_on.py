"""What was running goes on when a server next opens the database, whoever died and how."""

from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from perdure.temporal.connection import temporal_client
from perdure.temporal.settings import EmbeddedSettings
from tests.embedded.processes import owner_of
from tests.embedded.workflows import TASK_QUEUE, Greeting, Waiting

pytestmark = pytest.mark.slow  # real servers or workers come and go in each test


async def finished(client: Client) -> Greeting:
    """Release the waiting workflow and return its result."""
    async with Worker(client, task_queue=TASK_QUEUE, workflows=[Waiting]):
        handle = client.get_workflow_handle_for(Waiting.run, "w")
        await handle.signal(Waiting.release)
        return await handle.result()


async def test_a_running_workflow_goes_on_after_an_orderly_stop(database: Path) -> None:
    settings = EmbeddedSettings(database=database)
    async with temporal_client(settings) as client:
        await client.start_workflow(Waiting.run, Greeting(text="hello"), id="w", task_queue=TASK_QUEUE)
    async with temporal_client(settings) as client:
        assert await finished(client) == Greeting(text="hello", times=(1,))


@pytest.mark.slow
async def test_a_running_workflow_goes_on_after_its_owner_was_killed(database: Path) -> None:
    settings = EmbeddedSettings(database=database, own="auto")
    async with owner_of(database) as owner:
        async with temporal_client(settings) as client:
            assert client.service_client.config.target_host == owner.address
            await client.start_workflow(Waiting.run, Greeting(text="hello"), id="w", task_queue=TASK_QUEUE)
            owner.process.kill()
            await owner.process.wait()
        async with temporal_client(settings) as client:
            assert client.service_client.config.target_host != owner.address
            assert await finished(client) == Greeting(text="hello", times=(1,))
