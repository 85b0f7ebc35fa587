"""What an answer means: done, refused, in doubt, or to be tried again. Pure.

A status is the service's word on what it did, and some say less than they seem to. The table, by the call's class:

    status              read, idempotent         once        why
    ------------------  -----------------------  ----------  --------------------------------------------------------
    2xx                 done                     done        202 too: it was taken, and is the service's from there
    303                 done (read: refused)     done        "see other" is how a finished POST answers
    304                 done                     done        what is there is what was asked for
    300, 301, 302       refused                  in doubt    servers use 302 for "moved" and for "done, go on there"
    307, 308            refused                  refused     by definition nothing was done: ask elsewhere
    408                 again                    in doubt    RFC 9110 means a request that never came whole; gateways
                                                             also say it of a service that did not answer them
    409, 422 that       again                    in doubt    the same key is at work: something between us and the
    speak of the key                                         service has sent the request twice
    425, 429            again                    refused     by definition nothing was done
    other 4xx           refused                  refused     the service looked at it and did not do it
    501, 505            refused                  refused     it knows no such request
    other 5xx           again                    in doubt    it may have failed after the effect
    none                again                    in doubt    the connection was lost, or the time was over
    nothing was sent    again                    refused     the call did not begin at the outside

(A `read` that is redirected within its origin is followed first, by the client. An `idempotent` call is not begun
before somebody answers at its service.)

*Refused* is a `ToolError`: it did not happen, and the model is told why. *Again* is an attempt that failed: the
workflow makes the next one, no earlier than the service asks for. *In doubt* is for the tool's check (P4).

A refusal of a later attempt says nothing about an earlier one. So an `idempotent` call that was tried before is told
with that, and a DELETE that finds nothing to delete is done.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

from perdure.core import limits
from perdure.core.agent import EffectClass

Meaning = Literal["done", "refused", "again", "in_doubt"]

_GOOD: Final = range(200, 300)
_FAILED: Final = range(500, 600)
_SEE_OTHER: Final = 303
_NOT_MODIFIED: Final = 304
_UNCLEAR_REDIRECTS: Final = frozenset((300, 301, 302))
_NOT_NOW: Final = frozenset((425, 429))
_LATE: Final = 408
_OF_THE_KEY: Final = frozenset((409, 422))
_UNKNOWN_REQUESTS: Final = frozenset((501, 505))
_NOT_FOUND: Final = 404
_GONE: Final = frozenset((_NOT_FOUND, 410))

_SPEAKS_OF_THE_KEY: Final = re.compile(rb"idempoten|in[ _-]?progress|being processed|concurrent request", re.IGNORECASE)
"""How services say that a request with this key is at work; services differ in status, type and words."""


def meaning(status: int, effect: EffectClass, method: str, attempt: int, body: bytes = b"") -> Meaning:
    """Return what a status means for a call of that class."""
    once = effect == "once"
    if status in _GOOD or status == _NOT_MODIFIED or (status == _SEE_OTHER and effect != "read"):
        return "done"
    if status == _LATE or (status in _FAILED and status not in _UNKNOWN_REQUESTS):
        return "in_doubt" if once else "again"
    if status in _NOT_NOW:
        return "refused" if once else "again"
    if status in _UNCLEAR_REDIRECTS:
        return "in_doubt" if once else "refused"
    if status in _OF_THE_KEY and effect != "read" and _SPEAKS_OF_THE_KEY.search(body):
        return "in_doubt" if once else "again"
    if status in _GONE and method == "DELETE" and effect == "idempotent" and attempt > 1:
        return "done"
    return "refused"


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the service asks to be left alone, bounded; a date is not read: clocks differ."""
    given = headers.get("retry-after", "").strip()
    if not (given.isascii() and given.isdecimal()):
        return None
    return min(float(given[:9]), limits.RETRY_AFTER_MAX_MS / 1000)


def is_good(status: int) -> bool:
    """Whether a status says that it went well."""
    return status in _GOOD


def is_absent(status: int) -> bool:
    """Whether a status says that there is no such thing; 410 may say that there was."""
    return status == _NOT_FOUND
