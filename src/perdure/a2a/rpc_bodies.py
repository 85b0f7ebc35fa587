"""A gRPC message: read when its caller has come in, and looked over before protobuf's parser makes objects of it.

What an object costs is not what its bytes do: two bytes of an empty field are a hundred in memory. So the fields are
counted as they stand on the wire, by the bounds that HTTP's bodies have. Without the message's descriptor the wire does
not say what is a text and what is a message within; with it one pass tells, which never goes back.
"""

import asyncio
import functools
from typing import Any, Final

from a2a.utils.errors import A2AError
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from perdure.a2a.refusals import MalformedError, TooSlowError
from perdure.core import door_limits, limits

_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}
_WRAPPER: Final = "google.protobuf.Value"
"""What stands around each value of JSON is no container of it."""


async def read_message(context: Any, deserialize: Any) -> Any:
    """Return the message of a call, parsed by `deserialize`, a message class's `FromString`.

    Raises `TooSlowError`, and `MalformedError` for one that is none. One that is larger than the server takes has been
    refused by gRPC itself.
    """
    try:
        async with asyncio.timeout(limits.REQUEST_BODY_S):
            body = await context.read()
    except TimeoutError:
        raise TooSlowError(f"the message did not come within {limits.REQUEST_BODY_S:g} s; send it again") from None
    if not isinstance(body, bytes):
        raise MalformedError("message: did not come; send one")
    check_wire(body, deserialize.__self__.DESCRIPTOR)
    try:
        return deserialize(body)
    except DecodeError as error:
        raise MalformedError(f"message: is none of this method's ({error})") from error


def check_wire(body: bytes, kind: Descriptor) -> None:
    """Raise `MalformedError` for a message that is too deep, of too many values, or cut off."""
    at, values = 0, 0
    within: list[tuple[int, Descriptor, int]] = [(len(body), kind, 1)]  # where it ends, what it is, how deep
    while within:
        end, kind, depth = within[-1]
        if at == end:
            within.pop()
            continue
        tag, at = _varint(body, at, end)
        values += 1
        if values > limits.JSON_VALUES_MAX:
            raise MalformedError(f"message: has more than {limits.JSON_VALUES_MAX} values; send them as a file")
        form = tag & 7
        if form == _VARINT:
            _, at = _varint(body, at, end)
        elif form == _BYTES:
            size, at = _varint(body, at, end)
            inner = _messages_in(kind).get(tag >> 3)
            if inner is None or at + size > end:
                at += size
            else:
                deeper = depth + (0 if _is_no_container(inner) else 1)
                if deeper > limits.JSON_DEPTH_MAX:
                    raise MalformedError(f"message: is nested deeper than {limits.JSON_DEPTH_MAX} levels")
                within.append((at + size, inner, deeper))
        elif form in _FIXED:
            at += _FIXED[form]
        else:
            raise _cut_off()  # groups are of another protobuf than A2A's
        if at > end:
            raise _cut_off()


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number that stands there, and where the next thing does."""
    value = 0
    for place in range(at, min(end, at + door_limits.VARINT_BYTES_MAX)):
        byte = body[place]
        value |= (byte & 0x7F) << (7 * (place - at))
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return value, place + 1
    raise _cut_off()


@functools.cache
def _messages_in(kind: Descriptor) -> dict[int, Descriptor]:
    return {field.number: field.message_type for field in kind.fields if field.message_type is not None}


@functools.cache
def _is_no_container(kind: Descriptor) -> bool:
    return kind.full_name == _WRAPPER or kind.GetOptions().map_entry


def _cut_off() -> A2AError:
    return MalformedError("message: is cut off, or no protobuf of this method's")
