"""A handle on one task: send, follow, answer, stop, result."""

from collections.abc import AsyncIterator

from perdure.app.events import TaskEvent
from perdure.app.messages import new_message
from perdure.core.content import Lane, ModelEntry, UserEntry
from perdure.core.errors import OutcomeUnknown, RunFailed, TaskClosed, TaskNotFound
from perdure.core.ports import Store, TaskRow
from perdure.core.state import TERMINAL
from perdure.temporal.contracts import InboxItem, Monitor
from perdure.temporal.tasks import TaskClient


class Task:
    """One task. Holds nothing but its id: any process may have a handle on it at any time."""

    def __init__(self, task_id: str, store: Store, client: TaskClient) -> None:
        self.id = task_id
        self._store = store
        self._client = client

    async def send(self, text: str, *, message_id: str | None = None, lane: Lane | None = None) -> int:
        """Send a further message; return its number. Durable when this returns (P1).

        `lane` None lets it join an open run at its next turn (`steer`), or open one. The same `message_id` again
        changes nothing and returns the same number.

        Raises:
            TaskClosed: The task is terminal.
            MessageConflict: The id was used with other content.
            Unavailable: No worker answered; a resend under the same id tells.
            Diverged: The store and the task disagree; the message is kept, and acted on when they agree again.
        """
        row = await self._store.task(self.id)
        if row is not None and row.state in TERMINAL:
            raise TaskClosed(self.id, row.state)
        message = await new_message(self._store, text, message_id)
        receipt = await self._client.send(self.id, InboxItem(message=message, lane=lane))
        return receipt.number or 0

    async def events(self, after: int = 0) -> AsyncIterator[TaskEvent]:
        """Yield the events after that number, then what follows, until the task's terminal state (P6)."""
        async for stored in self._store.tail(self.id, after):
            yield TaskEvent.of(stored)

    async def answer(self, help_id: str, text: str) -> None:
        """Answer a help request. Raises `InvalidInput` when it is not open (any more)."""
        await self._client.answer(self.id, help_id, text)

    async def stop(self) -> bool:
        """Stop the run; when this returns no model or tool call of it begins (P9). False when nothing ran."""
        return (await self._client.stop(self.id)).recorded

    async def cancel(self) -> None:
        """Cancel the task for good."""
        await self._client.cancel(self.id)

    async def monitor(self) -> Monitor:
        """Return what the task has under way; needs a live worker."""
        return await self._client.monitor(self.id)

    async def row(self) -> TaskRow:
        """Return the task as the store lists it; raises `TaskNotFound`."""
        row = await self._store.task(self.id)
        if row is None:
            raise TaskNotFound(self.id)
        return row

    async def result(self) -> str:
        """Wait until the task rests, and return the answer's text.

        It rests when it is terminal, or when its latest run ended and nothing waits; a question to a person is
        waited through.

        Raises:
            RunFailed: The latest run ended without an answer; names the reason. Where it failed because nobody can
                tell what became of a call (`in_doubt="fail"`), its `__cause__` is an `OutcomeUnknown` with the key.
        """
        answer = ""
        unknown: OutcomeUnknown | None = None
        async for event in self.events():
            for entry in event.entries:
                if isinstance(entry, ModelEntry):
                    answer = entry.reply.text
                elif isinstance(entry, UserEntry):
                    answer = ""
            if event.kind == "run.started":
                unknown = None
            elif event.kind == "tool.in_doubt":
                unknown = OutcomeUnknown(str(event.data["key"]), str(event.data["reason"]))
            if event.kind == "task.status" and await self._rests(event):
                state, reason = str(event.data["state"]), str(event.data.get("reason", ""))
                if state == "completed" or reason == "answered":
                    return answer
                failed = RunFailed(self.id, state, reason, str(event.data.get("message", "")))
                raise failed from (unknown if reason == "tool" else None)
        raise TaskNotFound(self.id)

    async def _rests(self, event: TaskEvent) -> bool:
        state = str(event.data["state"])
        if state in TERMINAL:
            return True
        if state != "input_required" or event.data.get("reason") == "help":
            return False
        # An older end that a later message went on from is not the result.
        return (await self.row()).last_number <= event.number
