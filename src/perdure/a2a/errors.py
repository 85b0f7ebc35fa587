"""Our errors in A2A's terms.

What the caller did wrong names the field and the fix; what we could not do says when to try again.

An error that A2A has no word for is registered beside the SDK's own, so that every binding says it in its way: HTTP as
503 with Retry-After (`wire.py`), gRPC as UNAVAILABLE, JSON-RPC as an internal error with the reason in its details.
"""

import contextlib
from collections.abc import Iterator
from typing import Final

from a2a.utils import errors as sdk
from google.protobuf.json_format import ParseError

from perdure.core.errors import (
    Diverged,
    InvalidInput,
    MessageConflict,
    PerdureError,
    TaskClosed,
    TaskNotFound,
    Unavailable,
)

RETRY_AFTER_S: Final = 5
"""What a client is asked to wait when nothing answers: a worker's restart takes less."""


class ServiceUnavailableError(sdk.A2AError):
    """Nothing was decided; the same request may succeed later."""

    message = "The service does not answer now; send the same again"


_MAPPING: Final = sdk.ErrorMapping(503, "UNAVAILABLE", "SERVICE_UNAVAILABLE")
sdk.A2A_ERROR_MAPPING[ServiceUnavailableError] = _MAPPING
sdk.A2A_ERROR_REASONS[ServiceUnavailableError] = _MAPPING.reason
sdk.A2A_REASON_TO_ERROR[_MAPPING.reason] = ServiceUnavailableError


def invalid(field: str, problem: str, code: str = InvalidInput.code) -> sdk.InvalidParamsError:
    """Return A2A's error for a parameter; `field` is named as A2A's JSON names it."""
    return sdk.InvalidParamsError(
        message=f"{field}: {problem}", data={"code": code, "errors": [{"field": field, "message": problem}]}
    )


def not_found(task_id: str) -> sdk.TaskNotFoundError:
    """Return the one answer for a task that is not there and for one that is another's."""
    return sdk.TaskNotFoundError(message=f"there is no task {task_id!r}", data={"taskId": task_id})


def as_a2a(error: PerdureError) -> sdk.A2AError:
    """Say in A2A's terms what went wrong."""
    match error:
        case TaskNotFound():
            return sdk.TaskNotFoundError(message=str(error))
        case TaskClosed():
            return sdk.UnsupportedOperationError(message=str(error), data={"code": error.code})
        case MessageConflict():
            return invalid("message.messageId", error.problem, error.code)
        case InvalidInput():
            return invalid(error.field, error.problem, error.code)
        case Unavailable():
            return ServiceUnavailableError(message=str(error), data={"code": error.code})
        case Diverged():
            return sdk.InternalError(message=str(error), data={"code": error.code})
        case _:
            return sdk.InternalError(message="the request could not be served", data={"code": error.code})


@contextlib.contextmanager
def translating() -> Iterator[None]:
    """Turn errors of this package that leave the block into A2A's."""
    try:
        yield
    except PerdureError as error:
        raise as_a2a(error) from error
    except ParseError as error:
        raise invalid("params", str(error)) from error
