"""Replay a recorded history and compare what Temporal's replayer does not: the arguments of every activity (P11).

A runner wraps each workflow instance and, after every activation, compares the activities that it scheduled with the
recorded ones of the same id. The replayer's own task queue differs by design and is not compared.
"""

from collections.abc import Sequence
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, WorkflowInstance, WorkflowRunner
from temporalio.worker._workflow_instance import WorkflowInstanceDetails

from perdure.temporal.connection import DATA_CONVERTER
from perdure.temporal.sandbox import workflow_runner
from perdure.temporal.sdk_runtime import sdk_runtime
from perdure.temporal.workflow import TaskWorkflow


class Difference(AssertionError):
    """A replay that decided otherwise than the history records."""


class _Comparing(WorkflowInstance):
    def __init__(self, inner: WorkflowInstance, recorded: dict[str, Any], found: list[str]) -> None:
        self._inner = inner
        self._recorded = recorded
        self._found = found

    def activate(self, act: Any) -> Any:
        completion = self._inner.activate(act)
        for command in completion.successful.commands:
            if command.HasField("schedule_activity"):
                self._compare(command.schedule_activity)
        return completion

    def _compare(self, made: Any) -> None:
        recorded = self._recorded.pop(made.activity_id, None)
        if recorded is None:
            return  # past the history's end: scheduled by the last activation, not recorded yet
        pairs = {
            "type": (made.activity_type, recorded.activity_type.name),
            "arguments": ([p.data for p in made.arguments], [p.data for p in recorded.input.payloads]),
            "start_to_close": (made.start_to_close_timeout, recorded.start_to_close_timeout),
            # The server records a heartbeat timeout that is longer than the whole attempt as the attempt's own.
            "heartbeat": (_shorter(made.heartbeat_timeout, made.start_to_close_timeout), recorded.heartbeat_timeout),
            "attempts": (made.retry_policy.maximum_attempts, recorded.retry_policy.maximum_attempts),
        }
        for what, (now, then) in pairs.items():
            if now != then:
                self._found.append(f"activity {made.activity_id}, {what}: {now!r} instead of {then!r}")

    def get_serialization_context(self, command_info: Any) -> Any:
        return self._inner.get_serialization_context(command_info)

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._inner.get_external_store_context(command_info)

    def get_info(self) -> Any:
        return self._inner.get_info()


class _ComparingRunner(WorkflowRunner):
    def __init__(self, inner: WorkflowRunner, recorded: dict[str, Any], found: list[str]) -> None:
        self._inner = inner
        self._recorded = recorded
        self._found = found

    def prepare_workflow(self, defn: Any) -> None:
        self._inner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Comparing(self._inner.create_instance(det), self._recorded, self._found)


def _shorter(first: Any, second: Any) -> Any:
    return min(first, second, key=lambda duration: duration.ToNanoseconds())


async def replay(history: WorkflowHistory, *, pass_core_through: bool = True) -> None:
    """Raise `Difference`, or what Temporal's replayer raises, when the history is not what would be done now.

    One without a workflow task yet holds nothing that was decided, and the SDK's replayer waits for ever on it: a run
    that follows another within a second has none for the rest of it.
    """
    if len(history.events) == 1:
        return
    recorded = {
        event.activity_task_scheduled_event_attributes.activity_id: event.activity_task_scheduled_event_attributes
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    }
    found: list[str] = []
    runner = _ComparingRunner(workflow_runner(pass_core_through=pass_core_through), recorded, found)
    replayer = Replayer(
        workflows=[TaskWorkflow], workflow_runner=runner, data_converter=DATA_CONVERTER, runtime=sdk_runtime()
    )
    await replayer.replay_workflow(history)
    if found:
        raise Difference("\n".join(found))
    if recorded:
        raise Difference(f"recorded, but not scheduled again: activities {sorted(recorded)}")


async def replay_all(histories: Sequence[WorkflowHistory], *, pass_core_through: bool = True) -> None:
    for history in histories:
        await replay(history, pass_core_through=pass_core_through)
