"""A request's body: read whole, within bounds, and looked over before anything parses it.

A parser makes objects of some hundred bytes for each value and goes a level down for each bracket, so a small body can
cost a gigabyte or the stack. One pass of a regular expression over the bytes counts both; it takes strings whole, never
goes back, and stops at the bound.
"""

import asyncio
import contextlib
import re
from typing import Final

from a2a.utils.errors import A2AError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from perdure.a2a.refusals import MalformedError, TooLargeError, TooSlowError
from perdure.core import limits

# A string without an end ends with the body: so each byte is looked at once, whatever is sent.
TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)
TOKENS_PER_VALUE: Final = 4
"""A name, a text, a comma and a bracket: what is more of them than that is no JSON, and need not be read to its end."""


async def read_body(headers: Headers, receive: Receive, bytes_max: int) -> bytes:
    """Return the body.

    Raises `TooLargeError`, after the rest was read and dropped for a while, since a sender that is cut off in the
    middle reads no answer; `TooSlowError`; `ClientDisconnect`.
    """
    parts: list[bytes] = []
    size = 0
    declared = headers.get("Content-Length", "")
    if declared.isdecimal() and int(declared) > bytes_max:
        await _drain(receive, bytes_max)
        raise _too_large(bytes_max)
    try:
        async with asyncio.timeout(limits.REQUEST_BODY_S):
            more = True
            while more:
                part, more = await _next(receive)
                parts.append(part)
                size += len(part)
                if size > bytes_max:
                    break
    except TimeoutError:
        raise TooSlowError(f"the body did not come within {limits.REQUEST_BODY_S:g} s; send it again") from None
    if size > bytes_max:
        parts.clear()
        await _drain(receive, bytes_max)
        raise _too_large(bytes_max)
    return b"".join(parts)


def check_shape(body: bytes) -> None:
    """Raise `MalformedError` for a body that is too deep, of too many values, or not in UTF-8.

    JSON may come in UTF-16 as far as Python's parser goes, where this count would see other brackets than it.
    """
    if b"\x00" in body:
        raise MalformedError("body: holds a zero byte; send JSON in UTF-8")
    depth, values = 0, 1
    for seen, token in enumerate(TOKEN.finditer(body)):
        match body[token.start()]:
            case 0x5B | 0x7B:  # [ {
                depth += 1
                values += 1
            case 0x5D | 0x7D:  # ] }
                depth -= 1
            case 0x2C:  # ,
                values += 1
            case _:
                pass
        if depth > limits.JSON_DEPTH_MAX:
            raise MalformedError(f"body: is nested deeper than {limits.JSON_DEPTH_MAX} levels; send it flatter")
        if values > limits.JSON_VALUES_MAX or seen > TOKENS_PER_VALUE * limits.JSON_VALUES_MAX:
            raise MalformedError(f"body: has more than {limits.JSON_VALUES_MAX} values; send them as a file")


async def _next(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


async def _drain(receive: Receive, bytes_max: int) -> None:
    """Drop what still comes, for a while and up to as much again."""
    dropped, more = 0, True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limits.REQUEST_DRAIN_S):
            while more and dropped <= bytes_max:
                part, more = await _next(receive)
                dropped += len(part)


def _too_large(bytes_max: int) -> A2AError:
    return TooLargeError(f"body: has more than {bytes_max} bytes; send files by URL, or several messages")
