"""The first SIGINT or SIGTERM ends a command in order; the second ends it at once."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from perdure.cli.output import note

T = TypeVar("T")


class Interrupted(Exception):
    """A signal ended the work, in order; `number` is the signal's."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(f"interrupted by {number.name}")
        self.number = number


async def until_signal(work: Coroutine[Any, Any, T], on_signal: Callable[[signal.Signals], None]) -> T:
    """Return what `work` returns; a signal cancels it, and when it has cleaned up `Interrupted` is raised.

    `on_signal` is called at once, before the cleaning up.
    """
    task = asyncio.ensure_future(work)
    came: list[signal.Signals] = []

    def take(number: signal.Signals) -> None:
        if came:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        came.append(number)
        on_signal(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, take, number)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            return await task
        if came:
            raise Interrupted(came[0])
        raise asyncio.CancelledError
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def say_ending(number: signal.Signals) -> None:
    """Tell whoever sent a signal that what was started is being ended."""
    note(f"{number.name}: what was started is ended (again to end at once)")


async def first_of(work: Coroutine[Any, Any, T], watch: Coroutine[Any, Any, None]) -> T:
    """Return what `work` returns, unless `watch` raises first; the other one is cancelled and waited for."""
    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(watch)
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if watching.done() and not working.done():
            watching.result()
        return await working
    finally:
        for each in (working, watching):
            each.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)
