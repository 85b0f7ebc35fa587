"""Failures across the activity's edge: classified once on the worker, read back in the workflow.

An activity raises `ApplicationError` whose type is the failure's kind and whose detail is the `Failure`. Timeouts,
cancellations and a supervisor's word come from Temporal itself and get their kind here.
"""

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    TimeoutError,
    TimeoutType,
)

from perdure.core.digests import cut_text, safe_text
from perdure.core.errors import (
    BegunError,
    ConfigurationError,
    Diverged,
    Fenced,
    InvalidInput,
    ModelError,
    StoreUnavailable,
    Unavailable,
)
from perdure.core.failure import Failure, FailureKind
from perdure.core.limits import PROBLEM_BYTES_MAX

FAILURE = "perdure.failure"
"""The type of every `ApplicationError` that carries a `Failure`."""


def as_application_error(failure: Failure) -> ApplicationError:
    """Wrap a failure for Temporal. Never retried by the server: the workflow makes every attempt itself.

    Every failed attempt is an event of the task, so the SDK need not log it with a traceback as well; only a defect
    is worth that.
    """
    defect = failure.kind == "internal"
    return ApplicationError(
        failure.message,
        failure.model_dump(mode="json"),
        type=FAILURE,
        non_retryable=True,
        category=ApplicationErrorCategory.UNSPECIFIED if defect else ApplicationErrorCategory.BENIGN,
    )


def classify(error: Exception, effect: str | None = None) -> Failure:
    """Say what kind of failure an exception in an activity is. `effect` is the tool's class, None in a model call."""
    message = cut_text(safe_text(f"{type(error).__name__}: {error}"), PROBLEM_BYTES_MAX, " [cut]")
    kind: FailureKind
    match error:
        case StoreUnavailable():
            kind = "store"
        case Diverged():
            kind = "diverged"
        case Fenced():
            kind = "fenced"
        case BegunError():
            cause = error.__cause__ or error
            if isinstance(cause, StoreUnavailable):
                # The tool ended and only its record failed: the next attempt asks the ledger, and none is spent.
                return Failure(kind="store", message=f"{cause}", begun=True)
            message = cut_text(safe_text(f"{type(cause).__name__}: {cause}"), PROBLEM_BYTES_MAX, " [cut]")
            asked_s = cause.retry_after_s if isinstance(cause, BegunError) else None
            return Failure(
                kind="in_doubt" if effect == "once" else "tool_raised",
                message=message,
                begun=True,
                retry_after_ms=None if asked_s is None or effect == "once" else int(asked_s * 1000),
            )
        case ModelError():
            after_ms = None if error.retry_after_s is None else int(error.retry_after_s * 1000)
            kind = "model_transient" if error.retryable else "model_permanent"
            elsewhere = not error.retryable and error.elsewhere
            return Failure(kind=kind, message=message, retry_after_ms=after_ms, elsewhere=elsewhere)
        case Unavailable() if effect is not None:
            # What a tool is somewhere else of could not be reached, and nothing was begun.
            kind = "tool_raised"
        case InvalidInput() if not isinstance(error, ConfigurationError):
            # Content that the store refuses will be refused again.
            kind = "diverged"
        case _:
            kind = "internal"
    return Failure(kind=kind, message=message)


def failure_of(error: ActivityError) -> Failure:
    """Read why an attempt failed, in the workflow."""
    cause = error.cause
    match cause:
        case ApplicationError(type="perdure.failure", details=(detail, *_)):
            return Failure.model_validate(detail)
        case TimeoutError(type=TimeoutType.HEARTBEAT):
            return Failure(kind="worker_lost", message="no heartbeat: the worker died, hangs or lost its connection")
        case TimeoutError(type=TimeoutType.START_TO_CLOSE):
            return Failure(kind="timeout", message="it took longer than its timeout")
        case TimeoutError():
            return Failure(kind="worker_lost", message="no worker began it in time")
        case CancelledError():
            return Failure(kind="cancelled", message="told to stop")
        case _:
            return Failure(kind="internal", message=cut_text(f"{cause}", PROBLEM_BYTES_MAX, " [cut]"))
