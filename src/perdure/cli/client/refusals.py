"""What can go wrong between this client and a server, sorted by what may be done next.

- `Lost`: nobody answered, or the answer was cut off. `reached` says whether the request may have been taken in: then
  only what is safe to repeat is sent again.
- `Refusal`: the server said no, and says it again next time.
- `NotA2A`: what came is no A2A.
"""

import contextlib
from collections.abc import Iterator
from typing import Final

import httpx
from a2a.client.errors import A2AClientError
from a2a.utils.errors import A2AError, InternalError, InvalidAgentResponseError, TaskNotFoundError
from google.protobuf.json_format import ParseError
from pydantic import ValidationError

from perdure.a2a.errors import ServiceUnavailableError
from perdure.core.errors import ConfigurationError, InvalidInput, MessageConflict, PerdureError, Unavailable

UNDECIDED: Final = frozenset({httpx.codes.TOO_MANY_REQUESTS})
"""Statuses by which a server, or what stands before it, says that it did nothing."""

GATEWAY: Final = frozenset({httpx.codes.BAD_GATEWAY, httpx.codes.GATEWAY_TIMEOUT, httpx.codes.SERVICE_UNAVAILABLE})
"""Statuses that a proxy also gives when it lost what it had handed on: nobody knows what became of it."""

UNKNOWN_CALLER: Final = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})
UNAVAILABLE_CODES: Final = frozenset({"unavailable", "store_unavailable"})
"""How a server of this package says 503 inside of a JSON-RPC error."""


class Lost(Unavailable):
    """Nobody answered. `retry_after_s` is the server's own wish."""

    def __init__(self, why: str, *, reached: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.reached = reached
        self.retry_after_s = retry_after_s


class Refusal(InvalidInput):
    """The server refuses; `error` is A2A's."""

    code = "refused"

    def __init__(self, error: A2AError) -> None:
        super().__init__(*_named(error))
        self.error = error

    @property
    def unknown_task(self) -> bool:
        """Whether the server knows no such task."""
        return isinstance(self.error, TaskNotFoundError)


class NotA2A(PerdureError):
    """A server answered in a way that no client of A2A understands."""

    code = "not_a2a"


@contextlib.contextmanager
def sorted_errors() -> Iterator[None]:
    """Turn what the SDK's client raises into the errors of this file."""
    try:
        yield
    except A2AError as error:
        raise _of_a2a(error) from error
    except httpx.TransportError as error:
        raise _of_transport(error) from error
    except (ParseError, ValidationError) as error:
        raise NotA2A(f"the server's answer is not A2A: {error}") from error


def _of_a2a(error: A2AError) -> PerdureError:
    cause = error.__cause__
    if isinstance(cause, httpx.HTTPStatusError):
        found = _of_status(cause.response)
        if found is not None:
            return found
        why = _why(cause.response)
        if why and cause.response.is_client_error and isinstance(error, A2AClientError):
            return InvalidInput("refused", f"HTTP {cause.response.status_code}{why}")
    if isinstance(cause, httpx.TransportError):
        return _of_transport(cause)
    code = (error.data or {}).get("code")
    if isinstance(error, ServiceUnavailableError) or code in UNAVAILABLE_CODES:
        return Lost(str(error), reached=False)
    if isinstance(error, InternalError | InvalidAgentResponseError):
        return PerdureError(f"the server failed: {error}")
    if isinstance(error, A2AClientError) and isinstance(cause, httpx.HTTPStatusError):
        return NotA2A(f"the server answers HTTP {cause.response.status_code} at {cause.request.url}")
    if isinstance(error, A2AClientError):
        return NotA2A(f"the server's answer is not A2A: {error}")
    return Refusal(error)


def _of_status(response: httpx.Response) -> PerdureError | None:
    status = response.status_code
    if status in UNDECIDED:
        return Lost(f"HTTP {status}", reached=False, retry_after_s=_retry_after_s(response))
    if status in GATEWAY:
        return Lost(f"HTTP {status}", reached=True, retry_after_s=_retry_after_s(response))
    if status in UNKNOWN_CALLER:
        return ConfigurationError(
            "PERDURE_TOKEN", f"HTTP {status}{_why(response)}; set a token that {response.url} takes"
        )
    return None


def _why(response: httpx.Response) -> str:
    """Return what the body says of its error, where it says it in the form of JSON-RPC or of HTTP+JSON."""
    try:
        said = response.json()
    except ValueError:
        return ""
    error = said.get("error") if isinstance(said, dict) else None
    return f": {error['message']}" if isinstance(error, dict) and isinstance(error.get("message"), str) else ""


def _named(error: A2AError) -> tuple[str, str]:
    """Return what is wrong in the words of this command line: its argument or option, and the fix."""
    if isinstance(error, TaskNotFoundError):
        return "TASK", f"{error}; `perdure tasks URL` lists those that this server knows"
    if (error.data or {}).get("code") == MessageConflict.code:
        return "--key", "was used before with another message; use another key, or none"
    return "refused", str(error)


def _retry_after_s(response: httpx.Response) -> float:
    """Return what a Retry-After in seconds asks for; a date is left to the backoff."""
    given = response.headers.get("Retry-After", "").strip()
    return float(given) if given.isascii() and given.isdecimal() else 0.0


def _of_transport(error: httpx.TransportError) -> Lost:
    never = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    if isinstance(error, httpx.TimeoutException):
        why = "nothing came in time"
    else:
        why = "it cannot be reached" if never else "the connection broke"
    return Lost(f"{why} ({type(error).__name__})", reached=not never)
