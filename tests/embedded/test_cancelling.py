"""A cancellation reaches a running activity at once, not with a heartbeat that is throttled to 24 s."""

import asyncio

import pytest
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError
from temporalio.worker import Worker

from perdure.temporal.connection import temporal_client
from perdure.temporal.settings import MemorySettings
from tests.embedded.workflows import TASK_QUEUE, Endless, endless

pytestmark = pytest.mark.slow  # real servers or workers come and go in each test


async def started(handle: WorkflowHandle[Endless, None]) -> None:
    """Wait until a worker has the activity."""
    async with asyncio.timeout(15):
        while True:
            pending = (await handle.describe()).raw_description.pending_activities
            if any(each.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED for each in pending):
                return


async def test_a_running_activity_hears_of_its_cancellation_at_once() -> None:
    async with (
        temporal_client(MemorySettings()) as client,
        Worker(client, task_queue=TASK_QUEUE, workflows=[Endless], activities=[endless]),
    ):
        handle = await client.start_workflow(Endless.run, id="e", task_queue=TASK_QUEUE)
        await started(handle)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            async with asyncio.timeout(8):  # 50 ms on a quiet machine; 20 s without the server's worker commands
                await handle.result()
        assert isinstance(caught.value.cause, CancelledError)
