"""The workflow sandbox: on, with a written pass-through list.

Temporal's sandbox imports a workflow's modules anew for every workflow instance, so that nothing leaks between them,
and makes clocks, randomness and I/O raise. Modules on the pass-through list are shared instead and *not watched*,
which is why each needs a reason. Workers and the replayer use the same runner.
"""

import dataclasses
from typing import Any

from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

PASSED_THROUGH: dict[str, str] = {
    "perdure.core": "pure by import contract, lint and a tidy test; importing it anew costs 300 ms a replay",
    "perdure.temporal.contracts": "payload models only; a second copy of a class would not be the converter's class",
    "perdure.temporal.failures": "classification only; it matches on exception classes that the SDK raises",
    "pydantic": "compiled schemas; a second copy would not recognise the models of the first",
    "pydantic_core": "a C extension that can be loaded once",
    "annotated_types": "values inside pydantic's schemas",
    "typing_inspection": "used by pydantic at schema time",
}
"""Module to reason. No user module is here, and none is imported by a workflow: agents live with the activities."""


class _Contextless(WorkflowInstance):
    """A sandboxed workflow whose payloads have no context of their own.

    The SDK asks the sandbox for the context of every payload, six times each, by compiling and running code in it: a
    fifth of what a turn cost. Contexts are for codecs, for external storage and for converters that want one, and the
    one door's converter is none of these (a test compares).
    """

    def __init__(self, sandboxed: WorkflowInstance) -> None:
        self._sandboxed = sandboxed

    # Activations and completions are the SDK's own messages, which it does not export as public types.
    def activate(self, act: Any) -> Any:
        return self._sandboxed.activate(act)

    def get_info(self) -> Info:
        return self._sandboxed.get_info()

    def get_thread_id(self) -> int | None:
        return self._sandboxed.get_thread_id()

    def get_serialization_context(self, command_info: object) -> None:
        return None

    def get_external_store_context(self, command_info: object) -> StorageDriverStoreContext:
        return StorageDriverStoreContext(target=None)


@dataclasses.dataclass(frozen=True)
class _Runner(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Contextless(super().create_instance(det))


def workflow_runner(*, pass_core_through: bool = True) -> SandboxedWorkflowRunner:
    """Return the one runner. Tests turn `pass_core_through` off to let the sandbox watch the core as well."""
    modules = [name for name in PASSED_THROUGH if pass_core_through or not name.startswith("perdure.")]
    return _Runner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*modules))
