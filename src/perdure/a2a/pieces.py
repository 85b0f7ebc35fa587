"""Handing an answer over: piece by piece, as fast as its client takes it, and not for ever.

A server puts what it is given into the connection's buffer and says that it is done. A client that never reads would
then have its whole answer kept in that buffer for as long as it stays, with nobody waiting for it, and could ask for
the next one. So an answer is given in pieces, and while the buffer is full the next piece is waited with, within the
request's place at the gate. A client that takes nothing for STREAM_STALL_S is cut, and so is one that is not through
with an answer after ANSWER_S; a stream, which has no end of its own, may be followed as long as its reader reads.
"""

import asyncio
from collections.abc import Iterator

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from perdure.core import door_limits, limits


class StalledError(Exception):
    """The client took nothing of its answer for too long. What is left of the answer is not sent."""


class InPieces(Response):
    """A response that is handed over in pieces; `within_s` bounds the whole of it, None where it has no end."""

    def __init__(self, whole: Response, within_s: float | None) -> None:
        self._whole = whole
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; raises `StalledError`."""
        giving = asyncio.Lock()  # a stream's ping must not come between the pieces of an event

        async def give(message: Message) -> None:
            async with giving:
                for piece in _pieces(message):
                    try:
                        async with asyncio.timeout(limits.STREAM_STALL_S):
                            await send(piece)
                    except TimeoutError:
                        raise StalledError(f"took nothing for {limits.STREAM_STALL_S:g} s") from None

        within = asyncio.timeout(self._within_s)
        try:
            async with within:
                await self._whole(scope, receive, give)
        except TimeoutError:
            if not within.expired():
                raise
            raise StalledError(f"was not through with it after {self._within_s:g} s") from None


def _pieces(message: Message) -> Iterator[Message]:
    body, size = message.get("body", b""), door_limits.ANSWER_PIECE_BYTES
    if message["type"] != "http.response.body" or len(body) <= size:
        yield message
        return
    for start in range(0, len(body), size):
        more = message.get("more_body", False) or start + size < len(body)
        yield {"type": "http.response.body", "body": body[start : start + size], "more_body": more}
