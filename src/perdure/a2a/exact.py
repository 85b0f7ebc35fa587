"""Whole numbers on their way through protobuf, whose numbers are all of double precision.

A Struct cannot hold 1234567890123456789: it becomes 1234567890123456768, and nobody sees that it did. So what the
server shows writes such a number as a string of its digits, beside the exact JSON; and what a client gives to be run
is refused where it may have been another number before it came here. Text is exact all the way.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

EXACT_MAX: Final = 2**53 - 1
"""The greatest whole number of which each smaller one has a double of its own, and no other one shares its own."""


def shown(value: JsonValue) -> JsonValue:
    """Return a value as a Struct can show it: what it would falsify is written as a string of its digits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT_MAX:
        return str(value)
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return value


def doubtful(value: JsonValue, place: str) -> Iterator[str]:
    """Yield the places of whole numbers in what came through a Struct that may not be those that were sent."""
    if isinstance(value, float) and value.is_integer() and abs(value) > EXACT_MAX:
        yield place
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from doubtful(item, f"{place}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from doubtful(item, f"{place}.{name}")
