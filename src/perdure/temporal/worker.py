"""Workers: what executes workflow tasks and activities of one agent's queue.

Store writes have a queue and slots of their own, so that running tools never delay a stop or an acknowledgement.
"""

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from perdure.core import limits
from perdure.temporal.activities import TaskActivities
from perdure.temporal.sandbox import workflow_runner
from perdure.temporal.workflow import TaskWorkflow
from perdure.temporal.writer import store_queue


@contextlib.asynccontextmanager
async def running_worker(
    client: Client, task_queue: str, activities: TaskActivities, identity: str, drain_s: float = limits.DRAIN_S
) -> AsyncIterator[asyncio.Event]:
    """Work on the queue while the context is open. The event that it gives is set when the worker failed.

    On leaving it takes nothing new and lets what has begun end for up to `drain_s` seconds; only then are activities
    cancelled. `identity` must be unique per process start: failures are attributed by it.
    """
    _expect_late_cancellations()
    failed = asyncio.Event()

    async def on_fatal_error(_: BaseException) -> None:
        failed.set()

    worker = Worker(
        client,
        task_queue=task_queue,
        identity=identity,
        workflows=[TaskWorkflow],
        activities=activities.calls(),
        workflow_runner=workflow_runner(),
        max_concurrent_workflow_tasks=limits.WORKFLOW_TASKS_AT_ONCE_MAX,
        max_concurrent_activities=limits.CALLS_AT_ONCE_MAX,
        max_cached_workflows=limits.CACHED_WORKFLOWS_MAX,
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=limits.STICKY_TIMEOUT_S),
        max_heartbeat_throttle_interval=timedelta(seconds=limits.HEARTBEAT_THROTTLE_S),
        default_heartbeat_throttle_interval=timedelta(seconds=limits.HEARTBEAT_THROTTLE_S),
        graceful_shutdown_timeout=timedelta(seconds=drain_s),
        on_fatal_error=on_fatal_error,
    )
    writer = Worker(
        client,
        task_queue=store_queue(task_queue),
        identity=identity,
        activities=activities.writes(),
        max_concurrent_activities=limits.WRITES_AT_ONCE_MAX,
        graceful_shutdown_timeout=timedelta(seconds=drain_s),
        on_fatal_error=on_fatal_error,
    )
    async with writer, worker:
        yield failed


def _expect_late_cancellations() -> None:
    """Let a cancellation that comes just after its activity ended pass in silence.

    The SDK warns of it. Where warnings are errors, as in many a user's tests, that warning ends the whole worker.
    """
    warnings.filterwarnings("ignore", message="Cannot find activity to cancel", category=UserWarning)
