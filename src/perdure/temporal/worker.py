"""Workers: what executes workflow tasks and activities of one agent's queue.

Store writes have a queue and slots of their own, so that running tools never delay a stop or an acknowledgement. So do
attempts of tasks under suspicion (R12): one at a time, and under a supervisor in processes that do nothing else.
"""

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Literal

from temporalio.client import Client
from temporalio.worker import Interceptor, Worker

from perdure.core import limits
from perdure.temporal.activities import TaskActivities
from perdure.temporal.flights import quarantine_queue
from perdure.temporal.sandbox import workflow_runner
from perdure.temporal.workflow import TaskWorkflow
from perdure.temporal.writer import store_queue

WorkerPart = Literal["all", "calls", "quarantine"]
"""What a process works on: everything, everything but quarantined attempts, or those alone.

One that is not supervised works on everything: there nobody proves a death, but a task that comes from where somebody
did must go on.
"""


@contextlib.asynccontextmanager
async def running_worker(
    client: Client,
    task_queue: str,
    activities: TaskActivities,
    identity: str,
    drain_s: float = limits.DRAIN_S,
    *,
    part: WorkerPart = "all",
    interceptors: Sequence[Interceptor] = (),
) -> AsyncIterator[asyncio.Event]:
    """Work on the queue while the context is open. The event that it gives is set when the worker failed.

    On leaving it takes nothing new and lets what has begun end for up to `drain_s` seconds; only then are activities
    cancelled. `identity` must be unique per process start: failures are attributed by it.
    """
    _expect_late_cancellations()
    failed = asyncio.Event()

    async def on_fatal_error(_: BaseException) -> None:
        failed.set()

    drain = timedelta(seconds=drain_s)
    throttle = timedelta(seconds=limits.HEARTBEAT_THROTTLE_S)
    workers: list[Worker] = []
    writer: Worker | None = None
    if part != "quarantine":
        writer = Worker(
            client,
            task_queue=store_queue(task_queue),
            identity=identity,
            activities=activities.writes(),
            interceptors=interceptors,
            max_concurrent_activities=limits.WRITES_AT_ONCE_MAX,
            graceful_shutdown_timeout=drain,
            on_fatal_error=on_fatal_error,
        )
        workers.append(writer)
        workers.append(
            Worker(
                client,
                task_queue=task_queue,
                identity=identity,
                workflows=[TaskWorkflow],
                activities=activities.calls(),
                interceptors=interceptors,
                workflow_runner=workflow_runner(),
                max_concurrent_workflow_tasks=limits.WORKFLOW_TASKS_AT_ONCE_MAX,
                max_concurrent_activities=limits.CALLS_AT_ONCE_MAX,
                max_cached_workflows=limits.CACHED_WORKFLOWS_MAX,
                sticky_queue_schedule_to_start_timeout=timedelta(seconds=limits.STICKY_TIMEOUT_S),
                max_heartbeat_throttle_interval=throttle,
                default_heartbeat_throttle_interval=throttle,
                graceful_shutdown_timeout=drain,
                on_fatal_error=on_fatal_error,
            )
        )
    if part != "calls":
        workers.append(
            Worker(
                client,
                task_queue=quarantine_queue(task_queue),
                identity=identity,
                activities=activities.calls(),
                interceptors=interceptors,
                max_concurrent_activities=limits.QUARANTINED_AT_ONCE_MAX,
                max_heartbeat_throttle_interval=throttle,
                default_heartbeat_throttle_interval=throttle,
                graceful_shutdown_timeout=drain,
                on_fatal_error=on_fatal_error,
            )
        )
    async with contextlib.AsyncExitStack() as stack:
        for worker in workers:
            await stack.enter_async_context(worker)
        try:
            yield failed
        finally:
            # All drain at once, but the writer: what ends within the drain may still be written.
            await asyncio.gather(*(worker.shutdown() for worker in workers if worker is not writer))


def _expect_late_cancellations() -> None:
    """Let a cancellation that comes just after its activity ended pass in silence.

    The SDK warns of it. Where warnings are errors, as in many a user's tests, that warning ends the whole worker.
    """
    warnings.filterwarnings("ignore", message="Cannot find activity to cancel", category=UserWarning)
