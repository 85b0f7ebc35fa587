"""How long to go on while a server does not answer, and how long to wait between tries."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure.cli.client.refusals import Lost
from perdure.cli.output import note
from perdure.core import client_limits
from perdure.core.errors import Unavailable

T = TypeVar("T")


class Patience:
    """Waits longer from try to try; ends when nobody answered for `patience_s`.

    An answer starts the clock anew; only progress starts the waits anew. A server that answers and breaks off each
    time is thus not asked in a tight loop, and not given up either.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._tries = 0
        self._since_s: float | None = None

    @property
    def tries(self) -> int:
        """Tries since there was progress."""
        return self._tries

    def answered(self) -> None:
        """The server answered."""
        self._since_s = None

    def progressed(self) -> None:
        """Something new came."""
        self._since_s, self._tries = None, 0

    async def wait(self, why: str, floor_s: float = 0.0) -> None:
        """Wait before the next try; `floor_s` is the least that the server asks for.

        Raises `Unavailable` when patience is at its end.
        """
        now_s = time.monotonic()
        self._since_s = now_s if self._since_s is None else self._since_s
        full_s = min(client_limits.BACKOFF_FIRST_S * 2.0 ** min(self._tries, 30), client_limits.BACKOFF_MAX_S)
        # Jitter keeps all clients of one server from coming back at the same moment.
        delay_s = max(floor_s, full_s * (0.5 + 0.5 * random.random()))  # noqa: S311 - not for secrets
        if now_s + delay_s - self._since_s > self._patience_s:
            raise Unavailable(f"the server does not answer for {self._patience_s:.0f} s: {why}")
        self._tries += 1
        await asyncio.sleep(delay_s)


async def patiently(patience: Patience, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the answer to what may be asked again and again."""
    while True:
        try:
            return await ask()
        except Lost as lost:
            if patience.tries == 0:
                note(f"{lost}; trying again")
            await patience.wait(str(lost), lost.retry_after_s)
