"""A handle on one task: send, push ahead, take back, follow, answer, stop, result."""

from collections.abc import AsyncIterator, Mapping

from pydantic import JsonValue

from perdure.app.events import TaskEvent
from perdure.app.inboxes import Inboxes
from perdure.app.messages import new_message
from perdure.core import limits
from perdure.core.content import Lane, ModelEntry
from perdure.core.digests import canonical
from perdure.core.errors import OutcomeUnknown, RunFailed, TaskClosed, TaskNotFound
from perdure.core.inbox import Inbox, inbox_at_start, inbox_of
from perdure.core.ports import Store, TaskRow
from perdure.core.state import TERMINAL, TaskState
from perdure.temporal.contracts import InboxItem, Monitor, TaskStart
from perdure.temporal.tasks import TaskClient


class Task:
    """One task. Holds nothing but its id: any process may have a handle on it at any time."""

    def __init__(self, task_id: str, store: Store, client: TaskClient, inboxes: Inboxes | None = None) -> None:
        """Make a handle; `inboxes` are those of this process, which send what waits as one batch."""
        self.id = task_id
        self._store = store
        self._client = client
        self._inboxes = inboxes or Inboxes(client)

    async def send(self, text: str, *, message_id: str | None = None, lane: Lane | None = None) -> int:
        """Send a further message; return its number. Durable when this returns (P1).

        `lane` "steer" lets it join the run at its next turn, "queue" lets it wait until what came before is answered.
        None is `steer` while a run is open, else `queue`. The same `message_id` again changes nothing and returns the
        same number.

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
        receipt = await self._inboxes.send(self.id, InboxItem(message=message, lane=lane))
        return receipt.number or 0

    async def steer(self, message_id: str) -> int:
        """Push a message that waits ahead: it joins the run at its next turn, or opens one. Return the move's number.

        It works on a parked message, and on one that is in that lane already (R5).

        Raises:
            MessageNotWaiting: It was acted on or taken back, or never came.
            TaskClosed: The task is terminal.
            Unavailable: No worker answered; asking again does no harm.
        """
        return (await self._inboxes.steer(self.id, message_id)).number

    async def withdraw(self, message_id: str) -> int:
        """Take back a message that waits (R6): it is never acted on. Return the number of that event.

        Raises:
            MessageNotWaiting: It was acted on or taken back already, or never came.
            TaskClosed: The task is terminal; its last event lists what it did not act on.
            Unavailable: No worker answered; it may have been taken back all the same.
        """
        return (await self._inboxes.withdraw(self.id, message_id)).number

    async def inbox(self) -> Inbox:
        """Return what waits, each with its lane and numbers: what may run, and what is parked (R2).

        It is read from the store, needs no worker, and holds what was acknowledged before: of a task that no worker has
        taken up yet, the message that it was started with. Raises `TaskNotFound`.
        """
        row = await self._store.task(self.id)
        if row is None or row.last_number == 0:
            start, _ = await self._started()
            return inbox_at_start(message.message_id for message in start.messages)
        inbox = Inbox() if row.snapshot is None else inbox_of(TaskState.model_validate(row.snapshot))
        while page := await self._store.events_after(self.id, inbox.number, limits.EVENTS_PER_PAGE_MAX):
            for stored in page:
                inbox = inbox.after(stored.event)
        return inbox

    async def events(self, after: int = 0) -> AsyncIterator[TaskEvent]:
        """Yield the events after that number, then what follows, until the task's terminal state (P6)."""
        async for stored in self._store.tail(self.id, after):
            yield TaskEvent.of(stored)

    async def answer(self, help_id: str, answer: str | Mapping[str, JsonValue], *, by: str = "") -> None:
        """Answer a help request, in words or with the fields of its form; `by` is who does.

        Raises:
            InvalidInput: It is not open (any more), or does not take this answer and stays open; says what it takes.
            Unavailable: No worker answered; an answer that arrived all the same counts, and a second one is refused.
        """
        text = answer if isinstance(answer, str) else canonical(dict(answer)).decode()
        await self._inboxes.answer(self.id, help_id, text, by)

    async def approve(
        self,
        help_id: str,
        *,
        by: str = "",
        reason: str = "",
        arguments: Mapping[str, JsonValue] | None = None,
        digest: str = "",
    ) -> None:
        """Let a call begin that waits for approval.

        Args:
            help_id: The help request's, from its event.
            by: Who approves it.
            reason: Why; it is recorded.
            arguments: All arguments of the call as they are to be run, in place of the model's. What does not fit the
                tool, or a rule denies, is not begun, and the model is told.
            digest: Of the call that was shown (`call_digest` of its event): another one is refused.

        Raises:
            InvalidInput: It does not wait (any more), or the digest is another call's.
            Unavailable: No worker answered; an approval that arrived all the same counts, and a second one is refused.
        """
        given: dict[str, JsonValue] = {"approve": True}
        given |= {"reason": reason} if reason else {}
        given |= {"arguments": dict(arguments)} if arguments is not None else {}
        given |= {"digest": digest} if digest else {}
        await self.answer(help_id, given, by=by)

    async def decline(self, help_id: str, reason: str = "", *, by: str = "") -> None:
        """Decline a call that waits for approval: nothing of it begins, and the model is told the reason.

        Raises as `approve` does.
        """
        await self.answer(help_id, {"approve": False, "reason": reason}, by=by)

    async def stop(self) -> bool:
        """Stop the run; when this returns no model or tool call of it begins (P9). False when nothing ran.

        What waits is parked: it goes on with the next message, or when it is pushed ahead (`steer`).

        Raises:
            TaskClosed: The task is being canceled, or has ended: no message goes on from there.
            Unavailable: No worker answered; asking again does no harm.
        """
        return (await self._inboxes.stop(self.id)).recorded

    async def cancel(self) -> None:
        """Cancel the task for good."""
        await self._inboxes.cancel(self.id)

    async def monitor(self) -> Monitor:
        """Return what the task has under way; needs a live worker."""
        return await self._client.monitor(self.id)

    async def row(self) -> TaskRow:
        """Return the task as the store lists it, or as it was started if no worker has taken it up yet.

        Raises `TaskNotFound`.
        """
        row = await self._store.task(self.id)
        if row is not None:
            return row
        start, at_ms = await self._started()
        return TaskRow(
            header=start.header,
            state="submitted",
            reason="",
            last_number=0,
            revision=0,
            created_at_ms=at_ms,
            updated_at_ms=at_ms,
            status_at_ms=at_ms,
        )

    async def _started(self) -> tuple[TaskStart, int]:
        """Return what the task was started with, and when; raises `TaskNotFound`."""
        begun = await self._client.started_with(self.id)
        if begun is None:
            raise TaskNotFound(self.id)
        return begun

    async def result(self) -> str:
        """Wait until the task rests, and return the answer's text.

        It rests when it is terminal, or when its latest run ended and nothing waits; a question to a person is
        waited through.

        Raises:
            RunFailed: The latest run ended without an answer; names the reason. Where it failed because nobody can
                tell what became of a call (`in_doubt="fail"`), its `__cause__` is an `OutcomeUnknown` with the key.
        """
        told = _Told()
        async for event in self.events():
            told.take(event)
            # An older end that a later message went on from is not the result; rows that change nothing may follow it.
            if told.terminal or (told.rests and (await self.row()).last_number <= event.number):
                if told.state == "completed" or told.reason == "answered":
                    return told.answer
                failed = RunFailed(self.id, told.state, told.reason, told.message)
                raise failed from (told.unknown if told.reason == "tool" else None)
        raise TaskNotFound(self.id)


class _Told:
    """What the events so far say of a task: its latest status and answer, and the messages that a run opens for."""

    def __init__(self) -> None:
        self.state = ""
        self.reason = ""
        self.message = ""
        self.answer = ""
        self.unknown: OutcomeUnknown | None = None
        self._runnable: set[str] = set()

    def take(self, event: TaskEvent) -> None:
        for entry in event.entries:
            if isinstance(entry, ModelEntry):
                self.answer = entry.reply.text
        match event.kind:
            case "message.admitted" | "message.moved":
                self._runnable.add(str(event.data["message_id"]))
            case "message.promoted" | "message.withdrawn":
                self._runnable.discard(str(event.data["message_id"]))
            case "run.ended" | "run.stopped_before_start":
                self._runnable.clear()  # without an answer they park (R9); before an answer none is left
                if not event.data.get("answer_entry"):
                    self.answer = ""
            case "run.started":
                self.unknown = None
            case "tool.in_doubt":
                self.unknown = OutcomeUnknown(str(event.data["key"]), str(event.data["reason"]))
            case "task.status":
                self.state, self.reason = str(event.data["state"]), str(event.data.get("reason", ""))
                self.message = str(event.data.get("message", ""))

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def rests(self) -> bool:
        return self.state == "input_required" and self.reason != "help" and not self._runnable
