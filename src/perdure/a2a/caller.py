"""Who calls and how: the one place that reads headers.

The SDK gives its handlers a context; what we need of a request is put there as a `Caller`. `Told` goes the other way:
the handler notes in it what the binding must add to the answer (`wire.py`). A binding of another kind (gRPC) makes both
itself and puts them under the same names.

Versions: `A2A-Version` by header, or by query; none means 0.3. What is neither 0.3 nor 1.0 is refused: a client of 1.7
may rely on what we do not know. Patch numbers say nothing.
"""

from dataclasses import dataclass
from typing import Final

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, VERSION_HEADER
from a2a.utils.errors import VersionNotSupportedError
from starlette.requests import Request

from perdure.a2a.errors import invalid
from perdure.core import limits

CALLER: Final = "perdure.caller"
TOLD: Final = "perdure.told"
VERSIONS: Final = (PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0)


@dataclass(frozen=True)
class Caller:
    """Who calls; `principal` is empty where nobody is authenticated.

    `after` is the event number that a stream is to go on from, None where the client has seen nothing.
    """

    principal: str = ""
    idempotency_key: str | None = None
    after: int | None = None


@dataclass
class Told:
    """What the answer must carry: the number of the event that was handed over last, and when to come back.

    `unknown_state` is a status filter that the binding saw and the parser would drop.
    """

    number: int | None = None
    retry_after_s: int | None = None
    unknown_state: str | None = None


def caller_of(context: ServerCallContext) -> Caller:
    """Return who calls."""
    found = context.state.get(CALLER)
    return found if isinstance(found, Caller) else Caller()


def told_of(context: ServerCallContext) -> Told:
    """Return where to note what the answer must carry."""
    told: Told = context.state.setdefault(TOLD, Told())
    return told


class CallerContextBuilder(DefaultServerCallContextBuilder):
    """Builds the context of an HTTP request; raises A2A's errors for headers that say nothing sensible."""

    def build(self, request: Request) -> ServerCallContext:
        """Return the context, with its `Caller` and its `Told`."""
        context = super().build(request)
        context.requested_extensions = get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER))
        context.state["headers"] = {**context.state["headers"], VERSION_HEADER: _version(request)}
        context.state["headers"].pop(VERSION_HEADER.lower(), None)
        context.state[CALLER] = Caller(
            principal=context.user.user_name if context.user.is_authenticated else "",
            idempotency_key=_idempotency_key(request),
            after=_after(request),
        )
        context.state[TOLD] = told_on(request)
        return context


def told_on(request: Request) -> Told:
    """Return the request's `Told`: the binding and the handler share it."""
    if not hasattr(request.state, "perdure_told"):
        request.state.perdure_told = Told()
    told: Told = request.state.perdure_told
    return told


def _version(request: Request) -> str:
    given = request.headers.get(VERSION_HEADER) or request.query_params.get(VERSION_HEADER) or PROTOCOL_VERSION_0_3
    major_minor = ".".join(given.strip().split(".")[:2])
    if major_minor not in VERSIONS:
        raise VersionNotSupportedError(
            message=f"{VERSION_HEADER}: {given!r} is not supported; use {' or '.join(VERSIONS)}",
            data={"requested": given, "supported": ", ".join(VERSIONS)},
        )
    return major_minor


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    return None if key is None else checked_key("Idempotency-Key", key)


def checked_key(field: str, key: str) -> str:
    """Return a usable idempotency key; raises A2A's error for one that is empty or too long."""
    if not 0 < len(key.strip()) <= limits.IDEMPOTENCY_KEY_CHARS_MAX:
        raise invalid(field, f"must have 1 to {limits.IDEMPOTENCY_KEY_CHARS_MAX} characters")
    return key.strip()


def _after(request: Request) -> int | None:
    given = request.headers.get("Last-Event-ID", "").strip()
    if not given:
        return None
    if not (given.isascii() and given.isdecimal()) or len(given) > limits.EVENT_NUMBER_DIGITS_MAX:
        raise invalid("Last-Event-ID", f"{given!r} is no event's number; give the id of the last event that you saw")
    return int(given)
