"""One notification, one POST: what is sent, to where, and what came of it.

The payload is the update as a stream would carry it (A2A 4.3.3). The headers carry what the client gave for it: its
token, its credentials; and the delivery's own id, the same for every try, so that a receiver can tell a repetition.

The name is looked up within the attempt, checked, and connected to as it was checked; no redirect is followed, no
proxy of this process's environment is asked: either would lead elsewhere. An attempt is bounded as a whole, so that a
receiver that is slow for ever costs TIMEOUT_S and no more.
"""

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import httpcore

from perdure.a2a.push_addresses import Network, refuse_inside
from perdure.core import limits, push_limits
from perdure.core.errors import InvalidInput, Unavailable
from perdure.tools.outside import Outside

CONTENT_TYPE: Final = "application/a2a+json"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - a header's name
GONE: Final = 410
"""What a receiver says that wants no more, ever."""

_TAKEN: Final = range(200, 300)
_FAILURES = (
    Unavailable,
    OSError,
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)
"""What keeps a notification from its receiver; anything else is a defect of ours."""


@dataclass(frozen=True)
class Target:
    """Where a configuration's notifications go, and what goes with them."""

    url: str
    token: str = ""
    scheme: str = ""
    credentials: str = ""

    def headers(self, delivery_id: str) -> list[tuple[str, str]]:
        """Return a notification's headers."""
        headers = [("Content-Type", CONTENT_TYPE), ("A2A-Version", "1.0"), ("Idempotency-Key", delivery_id)]
        if self.token:
            headers.append((TOKEN_HEADER, self.token))
        if self.scheme and self.credentials:
            headers.append(("Authorization", f"{self.scheme} {self.credentials}"))
        return headers


class Outcome(NamedTuple):
    """What an attempt came to. `problem` is empty where the receiver took it; it never shows what is secret."""

    problem: str = ""
    retry_after_ms: int | None = None
    gone: bool = False


class Poster:
    """Sends notifications; keeps connections to those who take several."""

    def __init__(self, allowed: Sequence[Network], timeout_s: float = push_limits.TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=push_limits.AT_ONCE_MAX,
            max_keepalive_connections=push_limits.AT_ONCE_MAX,
            keepalive_expiry=push_limits.TIMEOUT_S,
            network_backend=Outside(
                lambda host, port, addresses: refuse_inside("url", addresses, allowed), push_limits.CONNECT_TIMEOUT_S
            ),
        )

    async def post(self, target: Target, body: bytes, delivery_id: str) -> Outcome:
        """Send it once and return what came of it; raises nothing but cancellation."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._posted(target, body, delivery_id)
        except TimeoutError:
            return Outcome(f"no answer within {self._timeout_s:g} s")
        except InvalidInput as refused:
            return Outcome(refused.problem)
        except _FAILURES as failed:
            return Outcome(str(failed) or type(failed).__name__)

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def _posted(self, target: Target, body: bytes, delivery_id: str) -> Outcome:
        headers = [(name.encode(), value.encode()) for name, value in target.headers(delivery_id)]
        headers.append((b"Content-Length", str(len(body)).encode()))
        async with self._pool.stream("POST", target.url, headers=headers, content=body) as answer:
            size = 0
            async for piece in answer.aiter_stream():
                size += len(piece)
                if size > push_limits.ANSWER_BYTES_MAX:
                    break
        if answer.status in _TAKEN:
            return Outcome()
        return Outcome(f"answered {answer.status}", _retry_after_ms(answer.headers), gone=answer.status == GONE)


def _retry_after_ms(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return how long the receiver asks to be left alone, bounded: it is no reason to give up."""
    given = {name.lower(): value for name, value in headers}.get(b"retry-after", b"").strip()
    if not given.isdigit():
        return None
    return min(int(given[:9]) * 1000, limits.RETRY_AFTER_MAX_MS)
