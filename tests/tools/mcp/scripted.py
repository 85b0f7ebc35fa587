"""A connection to a server that is a list of answers, for tests of what they mean."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from mcp.client.client import Client

from perdure.tools.mcp.connection import Connection, Live


class Scripted:
    """Answers requests in order: a result is returned, an error raised, a function called and awaited."""

    def __init__(self, answers: Sequence[Any], masked: Callable[[str], str] = str) -> None:
        self._answers = list(answers)
        self._masked = masked
        self.sent: list[Any] = []
        self.live = Live(cast(Client, self), asyncio.Event())
        self.live.changed = False

    @property
    def session(self) -> "Scripted":
        return self

    @property
    def connection(self) -> Connection:
        return cast(Connection, _Connected(self.live, self._masked))

    async def send_request(self, request: Any, _kind: Any, **_options: Any) -> Any:
        self.sent.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return await answer() if callable(answer) else answer


class _Connected(Connection):
    """One that is connected already, and stays so."""

    def __init__(self, live: Live, masked: Callable[[str], str]) -> None:
        super().__init__("bank", cast(Any, None), 1.0, masked)
        self._only = live

    async def live(self) -> Live:
        return self._only
