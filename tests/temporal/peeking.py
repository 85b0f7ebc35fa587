"""Workflows that look at their own sandbox. Alone in a module, because a sandbox imports the whole of it."""

import sys

from temporalio import workflow

import perdure.temporal.workflow  # noqa: F401 - what every task imports


@workflow.defn(sandboxed=True)
class Peeking:
    """Says what its sandbox has imported for itself."""

    @workflow.run
    async def run(self) -> list[str]:
        return sorted(sys.modules)


@workflow.defn(sandboxed=True)
class Clocking:
    """Reads a clock, which the sandbox refuses."""

    @workflow.run
    async def run(self) -> float:
        import time

        return time.time()
