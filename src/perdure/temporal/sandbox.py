"""The workflow sandbox: on, with a written pass-through list.

Temporal's sandbox imports a workflow's modules anew for every workflow instance, so that nothing leaks between them,
and makes clocks, randomness and I/O raise. Modules on the pass-through list are shared instead and *not watched*,
which is why each needs a reason. Workers and the replayer use the same runner.
"""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

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


def workflow_runner(*, pass_core_through: bool = True) -> SandboxedWorkflowRunner:
    """Return the one runner. Tests turn `pass_core_through` off to let the sandbox watch the core as well."""
    modules = [name for name in PASSED_THROUGH if pass_core_through or not name.startswith("perdure.")]
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*modules))
