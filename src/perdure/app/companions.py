"""What goes on beside an app for as long as it is open: started by who serves it, ended before its store closes."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Companions:
    """Tasks of this event loop. One that ends by an error is said in the log; the others go on."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._made: dict[type, object] = {}

    def once(self, kind: type[T], make: Callable[[], T | None]) -> T | None:
        """Return the app's one of this kind, made by whoever asks first; None where there can be none."""
        found = self._made.get(kind)
        if isinstance(found, kind):
            return found
        made = make()
        if made is not None:
            self._made[kind] = made
        return made

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start something; it is cancelled, and waited for, when the app closes."""
        running = asyncio.create_task(work, name=name)
        self._running.add(running)
        running.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel all that runs and wait until it has ended."""
        running = tuple(self._running)
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)

    def _ended(self, running: "asyncio.Task[None]") -> None:
        self._running.discard(running)
        error = None if running.cancelled() else running.exception()
        if error is not None:
            _log.error("%s has ended by a defect", running.get_name(), exc_info=error)
