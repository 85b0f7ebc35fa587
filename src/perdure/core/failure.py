"""Why an attempt failed: the one classification that the retry policy decides by."""

from typing import Literal

from pydantic import Field

from perdure.core.content import Frozen

FailureKind = Literal[
    "model_transient",  # provider: 429, 5xx, connection; spends an attempt
    "model_permanent",  # provider: bad request, authentication, quota exhausted; no retry
    "tool_raised",  # a tool raised something else than ToolError; spends an attempt
    "in_doubt",  # a `once` tool ended without a result after `begun`; the next attempt resolves it
    "timeout",  # start-to-close; spends an attempt
    "worker_lost",  # heartbeat missed: probably a death, not proved; spends none
    "worker_died",  # proved by a supervisor; spends none, counts under R12
    "shutdown",  # the worker was asked to end; spends none
    "cancelled",  # the attempt was told to stop and did
    "fenced",  # refused before it began: a stop or a newer attempt stands in the store
    "store",  # the store did not answer; spends none
    "diverged",  # store and workflow disagree; a person must look
    "internal",  # a defect or a worker without this tool or agent; spends an attempt
]

DIED_WITH_SUPERVISOR = "its worker died with its supervisor"
"""The message of a `worker_lost` that was told to Temporal: no timeout was waited for."""


class Failure(Frozen):
    """One failed attempt, as recorded in the log.

    `retry_after_ms` is the provider's floor. `alone` is meaningful for `worker_died`: no other task had an attempt
    in that worker, so that the death can be held against this one (R12); `worker` names the dead worker, unique per
    boot, so that one death counts once however many attempts it cut. `begun` says that the ledger shows, or may show,
    a begun effect. `elsewhere` is meaningful for `model_permanent`: the provider refused whoever asked it (the key, the
    account, a model that it has no more), not the request, so that another model may answer.
    """

    kind: FailureKind
    message: str
    retry_after_ms: int | None = None
    alone: bool = False
    worker: str = ""
    begun: bool = False
    elsewhere: bool = Field(default=False, exclude_if=lambda given: not given)
