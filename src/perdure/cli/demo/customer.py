"""The customer of the demo: who complains, follows what becomes of it, and answers.

By default the customer stands in the director's process and reads the store. With `--a2a` it is a client of a server in
a process of its own, and knows of the task what that server tells (`front_door.py`).
"""

from collections.abc import AsyncIterator
from typing import Protocol

from perdure.app.app import App
from perdure.app.events import TaskEvent


class Customer(Protocol):
    """What the director needs of one."""

    async def complain(self, text: str) -> str:
        """Send the first message; return the task's id."""
        ...

    def events(self) -> AsyncIterator[TaskEvent]:
        """Yield the task's events from the first on, each once, until its terminal state."""
        ...

    async def answer(self, help_id: str, text: str) -> None:
        """Answer a question."""
        ...

    async def told(self) -> str:
        """Return the final answer as it reached this customer."""
        ...


class Beside:
    """A customer in the process of the app."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._task_id = ""

    async def complain(self, text: str) -> str:
        """Start the task."""
        self._task_id = (await self._app.send(text)).id
        return self._task_id

    def events(self) -> AsyncIterator[TaskEvent]:
        """Follow the store's log."""
        return self._app.task(self._task_id).events()

    async def answer(self, help_id: str, text: str) -> None:
        """Answer through the task's workflow."""
        await self._app.task(self._task_id).answer(help_id, text)

    async def told(self) -> str:
        """Return the answer, from the store."""
        return await self._app.task(self._task_id).result()
