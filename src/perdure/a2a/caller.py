"""Who calls and how: the one place that reads headers.

The SDK gives its handlers a context; what we need of a request is put there as a `Caller`. `Told` goes the other way:
the handler notes in it what the binding must add to the answer (`wire.py`). A binding of another kind (gRPC) makes both
itself and puts them under the same names.

Versions: `A2A-Version` by header, or by query; none means 0.3. What is neither 0.3 nor 1.0 is refused: a client of 1.7
may rely on what we do not know. Patch numbers say nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, VERSION_HEADER
from a2a.utils.errors import VersionNotSupportedError
from starlette.requests import Request

from perdure.a2a.errors import invalid
from perdure.app.offer import Offer
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

    def __init__(self, versions: Sequence[str] = VERSIONS) -> None:
        super().__init__()
        self._versions = tuple(versions)

    def build(self, request: Request) -> ServerCallContext:
        """Return the context, with its `Caller` and its `Told`."""
        context = super().build(request)
        context.requested_extensions = get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER))
        given = request.headers.get(VERSION_HEADER) or request.query_params.get(VERSION_HEADER)
        context.state["headers"] = {**context.state["headers"], VERSION_HEADER: version_of(given, self._versions)}
        context.state["headers"].pop(VERSION_HEADER.lower(), None)
        context.state[CALLER] = Caller(
            principal=context.user.user_name if context.user.is_authenticated else "",
            idempotency_key=key_of("Idempotency-Key", request.headers.get("Idempotency-Key")),
            after=after_of(request.headers.get("Last-Event-ID")),
        )
        context.state[TOLD] = told_on(request)
        return context


def told_on(request: Request) -> Told:
    """Return the request's `Told`: the binding and the handler share it."""
    if not hasattr(request.state, "perdure_told"):
        request.state.perdure_told = Told()
    told: Told = request.state.perdure_told
    return told


def versions_of(offer: Offer) -> tuple[str, ...]:
    """Return the versions that are served."""
    return VERSIONS if offer.v0_3 else (PROTOCOL_VERSION_1_0,)


def version_of(given: str | None, versions: Sequence[str] = VERSIONS) -> str:
    """Return the version that the client speaks; raises A2A's error for one that is not served."""
    given = given or PROTOCOL_VERSION_0_3
    major_minor = ".".join(given.strip().split(".")[:2])
    if major_minor not in versions:
        raise VersionNotSupportedError(
            message=f"{VERSION_HEADER}: {given!r} is not supported; use {' or '.join(versions)}",
            data={"requested": given, "supported": ", ".join(versions)},
        )
    return major_minor


def key_of(field: str, given: str | None) -> str | None:
    """Return the idempotency key, None where there is none; raises A2A's error for one that is empty or too long."""
    return None if given is None else checked_key(field, given)


def checked_key(field: str, key: str) -> str:
    """Return a usable idempotency key; raises A2A's error for one that is empty or too long."""
    if not 0 < len(key.strip()) <= limits.IDEMPOTENCY_KEY_CHARS_MAX:
        raise invalid(field, f"must have 1 to {limits.IDEMPOTENCY_KEY_CHARS_MAX} characters")
    return key.strip()


def after_of(given: str | None) -> int | None:
    """Return the event number after which a stream is to go on, None for none; raises A2A's error for what is none."""
    given = (given or "").strip()
    if not given:
        return None
    if not (given.isascii() and given.isdecimal()) or len(given) > limits.EVENT_NUMBER_DIGITS_MAX:
        raise invalid("Last-Event-ID", f"{given!r} is no event's number; give the id of the last event that you saw")
    return int(given)
