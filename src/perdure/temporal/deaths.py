"""A worker's death, told to Temporal, which cannot see one and would wait for a timeout (design section 5.3, P10).

Whoever calls this has *proof*: the worker's process was reaped. From that alone follows all that is done here:

- An attempt whose last worker is the dead one can never answer, so it is failed in its name, by id and run id. What is
  no longer pending was completed first: `NOT_FOUND` is a success, the completion won.
- A workflow whose cache died with the worker is taken off that worker's sticky queue, or its next workflow task waits
  there until that times out.

Which tasks are looked at: those that the worker had in hand, as it noted itself (`InHand`), at once; then every running
one of the queue, because the server may have handed an attempt to a connection that nobody read any more. The list of
running ones lags behind, so they are gone through twice.

A workflow task that was open in the worker cannot be failed from outside; its timeout is short for that reason.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, PendingActivityState
from temporalio.api.failure.v1 import Failure as FailureProto
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    GetWorkflowExecutionHistoryReverseRequest,
    ResetStickyTaskQueueRequest,
    RespondActivityTaskFailedByIdRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from perdure.core import fleet_limits
from perdure.core.errors import Unavailable
from perdure.core.failure import DIED_WITH_SUPERVISOR, Failure
from perdure.temporal.failures import as_application_error

DeathKind = Literal["worker_died", "worker_lost", "shutdown"]


@dataclass(frozen=True)
class Death:
    """A reaped worker. `identity` is unique per process start.

    `kind` is "shutdown" for one that had been asked to end, or that ended by its own decision, and "worker_lost" for
    one that died with its supervisor: nobody's crash (R12).
    `held` are the tasks that had attempts in it as it noted itself; None when that is not known.
    """

    identity: str
    kind: DeathKind = "worker_died"
    held: frozenset[str] | None = None

    @property
    def alone(self) -> str | None:
        """The task that the death can be held against: the only one that had attempts in the worker."""
        return next(iter(self.held)) if self.held is not None and len(self.held) == 1 else None


@dataclass
class Reported:
    """What a report did: attempts failed, attempts whose completion had won, workflows taken off a sticky queue."""

    failed: int = 0
    completed_first: int = 0
    reset: set[str] = field(default_factory=set)
    tasks: set[str] = field(default_factory=set)


class DeathReport:
    """Reports deaths over one client. `at_once` is what recovery waits for, `sweep` finds what that missed."""

    def __init__(self, client: Client, task_queue: str, *deaths: Death) -> None:
        self.reported = Reported()
        self._client = client
        self._task_queue = task_queue
        self._deaths = {death.identity: death for death in deaths}
        self._slots = asyncio.Semaphore(fleet_limits.DEATH_REQUESTS_AT_ONCE_MAX)

    async def at_once(self) -> Reported:
        """Fail the attempts of the tasks that the workers had in hand; without their notes, of all running ones.

        Raises:
            Unavailable: Temporal does not answer. The heartbeat timeout remains.
        """
        held: set[str] = set()
        for death in self._deaths.values():
            if death.held is None:
                return await self.go_through()
            held |= death.held
        await self._tell(sorted(held))
        return self.reported

    async def sweep(self) -> Reported:
        """Go through all running tasks, and again a little later; raises as `at_once` does."""
        await self.go_through()
        await asyncio.sleep(fleet_limits.DEATH_SWEEP_AFTER_S)
        return await self.go_through()

    async def go_through(self) -> Reported:
        """Go through all running tasks once; raises as `at_once` does."""
        try:
            tasks = [task async for task in self._running()]
        except RPCError as error:
            raise _unavailable(error) from error
        await self._tell(tasks)
        return self.reported

    async def _tell(self, tasks: Iterable[str]) -> None:
        telling = [asyncio.create_task(self._tell_one(task_id)) for task_id in tasks]
        try:
            for each in telling:
                await each
        except RPCError as error:
            raise _unavailable(error) from error
        finally:
            for each in telling:
                each.cancel()
            await asyncio.gather(*telling, return_exceptions=True)

    async def _tell_one(self, task_id: str) -> None:
        async with self._slots:
            try:
                run_id, dead = await self._dead_attempts(task_id)
                if task_id not in self.reported.reset and (dead or await self._is_cached_there(task_id, run_id)):
                    # Before the failures: each makes a workflow task, which would go to the sticky queue.
                    await self._reset_sticky(task_id, run_id)
                for attempt in dead:
                    await self._fail(task_id, run_id, attempt)
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
                # Ended, or forgotten: nothing of it can be pending.

    async def _dead_attempts(self, task_id: str) -> tuple[str, list[PendingActivityInfo]]:
        request = DescribeWorkflowExecutionRequest(
            namespace=self._client.namespace, execution=WorkflowExecution(workflow_id=task_id)
        )
        described = await self._client.workflow_service.describe_workflow_execution(request, timeout=_WITHIN)
        started = (PendingActivityState.PENDING_ACTIVITY_STATE_STARTED, _CANCEL_REQUESTED)
        dead = [
            attempt
            for attempt in described.pending_activities
            if attempt.last_worker_identity in self._deaths and attempt.state in started
        ]
        return described.workflow_execution_info.execution.run_id, dead

    async def _fail(self, task_id: str, run_id: str, attempt: PendingActivityInfo) -> None:
        self.reported.tasks.add(task_id)
        request = RespondActivityTaskFailedByIdRequest(
            namespace=self._client.namespace,
            workflow_id=task_id,
            run_id=run_id,
            activity_id=attempt.activity_id,
            identity=self._client.identity,
            failure=await self._failure(task_id, self._deaths[attempt.last_worker_identity]),
        )
        try:
            await self._client.workflow_service.respond_activity_task_failed_by_id(request, timeout=_WITHIN)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            self.reported.completed_first += 1
        else:
            self.reported.failed += 1

    async def _failure(self, task_id: str, death: Death) -> FailureProto:
        alone = death.kind == "worker_died" and death.alone == task_id
        text = _TEXTS[death.kind]
        failure = Failure(kind=death.kind, message=text, worker=death.identity, alone=alone)
        encoded = FailureProto()
        await self._client.data_converter.encode_failure(as_application_error(failure), encoded)
        return encoded

    # --- sticky queues ------------------------------------------------------------------------------------------

    async def _is_cached_there(self, task_id: str, run_id: str) -> bool:
        """Whether a dead worker took the workflow's latest workflow task, so that the next one would go to it."""
        request = GetWorkflowExecutionHistoryReverseRequest(
            namespace=self._client.namespace,
            execution=WorkflowExecution(workflow_id=task_id, run_id=run_id),
            maximum_page_size=fleet_limits.DEATH_HISTORY_EVENTS_MAX,
        )
        page = await self._client.workflow_service.get_workflow_execution_history_reverse(request, timeout=_WITHIN)
        for event in page.history.events:
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                return event.workflow_task_completed_event_attributes.identity in self._deaths
        return True  # not in what was read: a reset that was not needed costs a replay

    async def _reset_sticky(self, task_id: str, run_id: str) -> None:
        request = ResetStickyTaskQueueRequest(
            namespace=self._client.namespace, execution=WorkflowExecution(workflow_id=task_id, run_id=run_id)
        )
        await self._client.workflow_service.reset_sticky_task_queue(request, timeout=_WITHIN)
        self.reported.reset.add(task_id)

    async def _running(self) -> AsyncIterator[str]:
        query = f"TaskQueue = '{self._task_queue}' AND ExecutionStatus = 'Running'"
        async for workflow in self._client.list_workflows(query, rpc_timeout=_WITHIN):
            yield workflow.id


_TEXTS: dict[DeathKind, str] = {
    "worker_died": "its worker died",
    "worker_lost": DIED_WITH_SUPERVISOR,
    "shutdown": "its worker ended",
}
_WITHIN = timedelta(seconds=fleet_limits.DEATH_REQUEST_TIMEOUT_S)
_CANCEL_REQUESTED = PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED


def _unavailable(error: RPCError) -> Unavailable:
    return Unavailable(f"Temporal does not answer ({error.status.name.lower()}): {error.message}")
