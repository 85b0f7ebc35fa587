"""The porter: who calls, and how much of them there may be; the same for every binding.

Nothing here knows a protocol. The gate asks for HTTP, the interceptor for gRPC, each with a porter of its own: a bound
is one of a binding and a process. Refused: counting in the store. It would cost a write for every request, to protect
the store from requests.
"""

import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from perdure.a2a.guesses import Guesses
from perdure.a2a.identity import Authenticator, Credential, shown
from perdure.a2a.rates import NoPlaceError, Places, Rate
from perdure.a2a.refusals import OverloadedError, RefusedError, TooManyError, UnauthenticatedError
from perdure.app.entry import EntryLimits
from perdure.core import limits

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rules:
    """What a porter goes by. Without authenticators nobody is asked who they are."""

    authenticators: Sequence[Authenticator] = ()
    bounds: EntryLimits = field(default_factory=EntryLimits)
    now_s: Callable[[], float] = time.monotonic


class Porter:
    """Knows callers and counts them."""

    def __init__(self, rules: Rules) -> None:
        bounds = rules.bounds
        burst = bounds.requests_per_s * limits.REQUESTS_BURST_S
        self.rules = rules
        self._rate = Rate(bounds.requests_per_s, burst, limits.PRINCIPALS_REMEMBERED_MAX)
        self._guesses = Guesses()
        self._told = Rate(limits.REFUSALS_TOLD_PER_S, limits.REFUSALS_TOLD_BURST, 1)
        self._everybody = Places(bounds.requests_max, bounds.requests_max)
        self._requests = Places(bounds.requests_max, bounds.requests_per_principal_max)
        self._streams = Places(bounds.streams_max, bounds.streams_per_principal_max)

    # --- who ----------------------------------------------------------------------------------------------------

    async def caller(self, headers: Headers, peer: str) -> tuple[Credential, str]:
        """Return what the caller showed and the principal that it is.

        Raises `UnauthenticatedError` with challenges, `PermissionDeniedError`, `TooManyError` where too many from that
        address were refused, and `Unavailable` where it cannot be told now.
        """
        try:
            credential = shown(headers, self.rules.authenticators)
            return credential, await self._principal(credential, peer)
        except RefusedError as error:
            if isinstance(error, UnauthenticatedError):
                error.headers.setdefault("WWW-Authenticate", self._challenges)
            if not self._told.take("", self.rules.now_s()):
                logger.warning("a caller at %s was refused: %s", peer, error.message)
            raise

    async def _principal(self, credential: Credential, peer: str) -> str:
        wait_s = self._guesses.wait_s(credential.secret, peer, self.rules.now_s())
        if wait_s > 0:
            raise TooManyError(
                "too many credentials that came from your address are none; wait and send the same again",
                {"Retry-After": str(math.ceil(wait_s))},
            )
        try:
            name = await credential.principal()
        except RefusedError:
            self._guesses.failed(credential.secret, peer, self.rules.now_s())
            raise
        self._guesses.succeeded(credential.secret)
        return name

    @property
    def _challenges(self) -> str:
        return ", ".join(each.challenge for each in self.rules.authenticators)

    # --- how much -----------------------------------------------------------------------------------------------

    def refuse_too_often(self, name: str) -> None:
        """Count a request of somebody; raises `TooManyError`. Nobody is not counted: there is no one to be fair to."""
        wait_s = self._rate.take(name, self.rules.now_s()) if name else 0.0
        if wait_s > 0:
            pace = f"{self.rules.bounds.requests_per_s:g}"
            raise TooManyError(
                f"more than {pace} requests a second; wait and send the same again",
                {"Retry-After": str(math.ceil(wait_s))},
            )

    def some_request(self, held: contextlib.ExitStack) -> None:
        """Take a place for a request before it is known whose; raises `OverloadedError`."""
        _take(held, self._everybody, "", "requests")

    def own_request(self, held: contextlib.ExitStack, name: str) -> None:
        """Take a place for a request of somebody; raises `TooManyError`."""
        _take(held, self._requests, name, "requests")

    def stream(self, held: contextlib.ExitStack, name: str) -> None:
        """Take a place for a stream of somebody; raises `TooManyError` or `OverloadedError`."""
        _take(held, self._streams, name, "streams")


def _take(held: contextlib.ExitStack, places: Places, name: str, what: str) -> None:
    told = {"Retry-After": str(limits.OVERLOAD_RETRY_AFTER_S)}
    try:
        held.enter_context(places.taken(name))
    except NoPlaceError as full:
        if full.in_all:
            raise OverloadedError(f"the server has {places.in_all} {what} open; send the same later", told) from None
        raise TooManyError(f"you have {places.per_name} {what} open; end one and send the same again", told) from None
