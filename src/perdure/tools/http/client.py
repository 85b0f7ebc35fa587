"""One request, and what is known after it: an answer, nothing sent, or lost.

The difference between the last two is what a `once` call lives by. A request counts as sent from the moment at which
its first byte could have left; before that (no such name, nobody at the port, an address that may not be reached) the
call has not begun at the outside. A `once` request has a connection of its own: one that was kept may be closed by the
other side at the very moment at which it is used, and nobody could say whether the request was read.

Redirects are followed for reads alone, within the same origin, a few times: elsewhere the operator's headers are
nobody's business, and another method would be another effect.
"""

import asyncio
import ssl
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpcore

from perdure.core import http_limits
from perdure.core.agent import EffectClass
from perdure.core.errors import InvalidInput, Unavailable
from perdure.tools.addresses import Address, Network, refuse_inside
from perdure.tools.http.requests import Request
from perdure.tools.outside import Outside

_MOVED: Final = frozenset((301, 302, 303, 307, 308))
_OPEN: Final = range(500, 600)
_READING: Final = frozenset(("GET", "HEAD"))
_PORTS: Final = {"http": 80, "https": 443}
_FIX: Final = "give its address as base_url, or name its network in networks"

_LOST = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    OSError,
)


class NotSent(Exception):
    """Nothing left this process. `final` says that another try would end the same."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class Lost(Exception):
    """The request may have arrived, and no whole answer came."""


@dataclass(frozen=True)
class Answer:
    """What the service said. `headers` by their small names; `whole` is False where the body was cut."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True


class Origin(NamedTuple):
    """Who answers: scheme, host and port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Return the origin of a URL; raises `ValueError` for what is none."""
        if not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError("holds a space or a character beyond ASCII; escape it, names as punycode")
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
            raise ValueError("must begin with https:// or http://, name a host, and hold no user")
        return cls(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme])

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


class Client:
    """Sends requests to the origins that the operator gave, and to what is public.

    Args:
        given: Origins whose addresses may be anything: the operator's own word.
        networks: Networks that are not public and may be reached all the same.
    """

    def __init__(self, given: Iterable[Origin], networks: Iterable[Network] = ()) -> None:
        self._given = {(origin.host, origin.port) for origin in given}
        self._networks = tuple(networks)
        self._tls = ssl.create_default_context()
        self._network = Outside(self._check, http_limits.CONNECT_TIMEOUT_S)
        self._kept = self._pool(kept=http_limits.CONNECTIONS_MAX)
        self._fresh = self._pool(kept=0)

    def _pool(self, kept: int) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            ssl_context=self._tls,
            max_connections=http_limits.CONNECTIONS_MAX,
            max_keepalive_connections=kept,
            keepalive_expiry=http_limits.KEEPALIVE_S,
            network_backend=self._network,
        )

    def _check(self, host: str, port: int, addresses: Iterable[Address]) -> None:
        if (host, port) not in self._given:
            refuse_inside(f"{host}:{port}", list(addresses), self._networks, _FIX)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._kept.aclose()
        await self._fresh.aclose()

    async def reach(self, url: str, within_s: float) -> None:
        """Find out whether anybody answers there, where no connection is kept that says so.

        Raises `Unavailable` where nobody does, and `InvalidInput` for what may not be connected to.
        """
        origin = Origin.of(url)
        there = httpcore.URL(url).origin
        if any(each.can_handle_request(there) and not each.has_expired() for each in self._kept.connections):
            return
        try:
            async with asyncio.timeout(within_s):
                stream = await self._network.connect_tcp(origin.host, origin.port)
                try:
                    if origin.scheme == "https":
                        stream = await stream.start_tls(self._tls, origin.host)
                finally:
                    await stream.aclose()
        except TimeoutError as error:
            raise Unavailable(f"not connected within {within_s:g} s") from error
        except _LOST as error:
            raise Unavailable(str(error) or type(error).__name__) from error

    async def send(
        self, request: Request, within_s: float, effect: EffectClass, bytes_max: int = http_limits.ANSWER_BYTES_MAX
    ) -> Answer:
        """Send a request once and return the answer; a read is followed where it leads within its origin.

        Raises:
            NotSent: Nothing left this process.
            Lost: It did, and no whole answer came within the time. Where the status of a call that may change something
                is known, what came of the answer is returned instead: only its text is lost, not the outcome.

        A stop ends it likewise where that says what became of the effect: with what came of the answer, or for a `once`
        call with `NotSent`. (Another attempt at any other call is better than its end.)
        """
        progress = _Progress(bytes_max, keeps=effect != "read")
        try:
            async with asyncio.timeout(within_s):
                return await self._followed(request, progress, effect)
        except TimeoutError as error:
            if progress.known is not None:
                return progress.known
            told = f"no whole answer within {within_s:g} s"
            raise (Lost(told) if progress.sent else NotSent(f"not connected within {within_s:g} s")) from error
        except asyncio.CancelledError as error:
            if progress.known is not None:
                return progress.known
            if effect == "once" and not progress.sent:
                raise NotSent("told to stop before it was connected", final=True) from error
            raise

    async def _followed(self, request: Request, progress: "_Progress", effect: EffectClass) -> Answer:
        answer = await self._answered(request, progress, effect)
        for _ in range(http_limits.REDIRECTS_MAX):
            asks = effect == "read" and request.method in _READING
            if not asks or answer.status not in _MOVED or "location" not in answer.headers:
                break
            target = urljoin(request.url, answer.headers["location"])
            if _origin(target) != Origin.of(request.url):
                break
            request = replace(request, url=target.partition("#")[0])
            answer = await self._answered(request, progress, effect)
        return answer

    async def _answered(self, request: Request, progress: "_Progress", effect: EffectClass) -> Answer:
        pool = self._fresh if effect == "once" else self._kept
        headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
        if request.body or request.method not in _READING:
            headers.append((b"Content-Length", str(len(request.body)).encode()))
        try:
            async with pool.stream(
                request.method, request.url, headers=headers, content=request.body or None, extensions=progress.watching
            ) as response:
                return await _read(response, progress)
        except (InvalidInput, httpcore.LocalProtocolError, httpcore.UnsupportedProtocol) as error:
            raise NotSent(str(error), final=True) from error
        except (Unavailable, *_LOST) as error:
            if progress.known is not None:
                return progress.known
            told = str(error) or type(error).__name__
            raise (Lost if progress.sent else NotSent)(told) from error


class _Progress:
    """How far a request came: whether its first byte could have left, and what is known of its answer.

    `known` stays None where another attempt does no harm, or where the status leaves the outcome open anyway.
    """

    def __init__(self, bytes_max: int, *, keeps: bool) -> None:
        self.bytes_max = bytes_max
        self._keeps = keeps
        self.sent = False
        self._heard: tuple[int, Mapping[str, str], bytearray] | None = None
        self.watching = {"trace": self._step}

    async def _step(self, step: str, info: dict[str, Any]) -> None:
        """Take note of a step of httpcore's."""
        del info
        self.sent = self.sent or step.endswith("send_request_headers.started")

    def heard(self, status: int, headers: Mapping[str, str], body: bytearray) -> None:
        """Take note of an answer whose `body` is about to come."""
        self._heard = (status, headers, body)

    @property
    def known(self) -> Answer | None:
        """What came of an answer so far, where that says what became of the effect."""
        if self._heard is None or not self._keeps or self._heard[0] in _OPEN:
            return None
        status, headers, body = self._heard
        return Answer(status, headers, bytes(body), whole=False)


async def _read(response: httpcore.Response, progress: _Progress) -> Answer:
    """Read an answer's body up to its bound."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    body = bytearray()
    progress.heard(response.status, headers, body)
    async for piece in response.aiter_stream():
        body += piece
        if len(body) > progress.bytes_max:
            return Answer(response.status, headers, bytes(body[: progress.bytes_max]), whole=False)
    return _unpacked(Answer(response.status, headers, bytes(body)), progress.bytes_max)


def _unpacked(answer: Answer, bytes_max: int) -> Answer:
    """Unpack a body that came compressed although none was asked for, within the same bound; else it stays as it is."""
    if answer.headers.get("content-encoding", "").lower() not in {"gzip", "x-gzip", "deflate"}:
        return answer
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # either of the two, by its own header
    try:
        body = unpacking.decompress(answer.body, bytes_max)
    except zlib.error:
        return answer
    return replace(answer, body=body, whole=unpacking.eof)


def _origin(url: str) -> Origin | None:
    try:
        return Origin.of(url)
    except ValueError:
        return None
