"""From a task's event log to A2A: the task as of any event, and each event as one update.

A `TaskView` takes events in the order of their numbers. After event n it *is* the task as of n, and what `take`
returned for n is the one update that brings a client there. So a stream may begin at any number with the task as of it,
and what follows fits; nothing but the log is needed for that, and two servers say the same.

What becomes what:

- A reply that asks for nothing more is an artifact, `turn-N`, whole; so is what a tool hands over, `turn-N-INDEX`.
- A reply that asks for tools is a message of the agent
  in the status, as are questions to a person and the reasons of an unanswered end. It goes into the history before
  what is said next.
- `task.status` moves the status. Every other event is an update of the status as it is: A2A has no other place for it,
  and a client that counts (`generation`) must get every number.

Pure: no clock, no store. What a view holds of messages are our own, whose files are blobs (`incoming.restored`).
"""

import copy
from collections.abc import Sequence
from typing import Final

from a2a.types.a2a_pb2 import (
    Artifact,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.types.a2a_pb2 import Message as A2AMessage
from pydantic import JsonValue

from perdure.a2a import extension
from perdure.a2a.handed import handed_over
from perdure.a2a.questions import Asked, Shown, asked_after, calls_in
from perdure.a2a.resting import Standing
from perdure.core.content import Message, ModelEntry, ModelReply, UserEntry
from perdure.core.log import LogEvent
from perdure.core.ports import StoredEvent
from perdure.core.state import TERMINAL
from perdure.core.state import TaskStatus as State

Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent

STATES: Final[dict[State, TaskState]] = {
    "submitted": TaskState.TASK_STATE_SUBMITTED,
    "working": TaskState.TASK_STATE_WORKING,
    "input_required": TaskState.TASK_STATE_INPUT_REQUIRED,
    "completed": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "canceled": TaskState.TASK_STATE_CANCELED,
}

WORDS: Final = {
    "stopped": "The run was stopped. The next message goes on from here.",
    "budget": "The run used up its budget. The next message goes on from here.",
}
"""What a person reads of an end whose event brings no text."""


def answer_artifact(turn: int, text: str) -> Artifact:
    """Return the artifact that the reply of a turn is, or becomes."""
    return Artifact(artifact_id=f"turn-{turn}", name="answer", parts=[Part(text=text)])


class TaskView:
    """A task as of its event `number`; as of 0 it was accepted and nothing happened yet."""

    def __init__(self, task_id: str, context_id: str, created_at_ms: int, state: State = "submitted") -> None:
        self.task_id = task_id
        self.context_id = context_id
        self.number = 0
        self.state: State = state
        self._reason = ""
        self.calling: tuple[int, int] | None = None
        """Turn and attempt of the model call that is under way."""
        self._status = TaskStatus(state=STATES[state])
        self._status.timestamp.FromMilliseconds(created_at_ms)
        self._history: list[A2AMessage | Message] = []
        self._known: set[str] = set()
        self._artifacts: list[Artifact] = []
        self._answer = ""
        self._asked: Asked = {}
        self._calls: Shown = {}
        self._standing = Standing()

    @property
    def terminal(self) -> bool:
        """Whether the task has ended."""
        return self.state in TERMINAL

    @property
    def rests(self) -> bool:
        """Whether the task has ended, or waits for whoever gave it and goes on with nothing that it has."""
        return self._standing.rests

    def copy(self) -> "TaskView":
        """Return a view that goes on from here by itself."""
        other = copy.copy(self)
        for name in ("_history", "_known", "_artifacts"):  # the rest is replaced, never changed
            setattr(other, name, copy.copy(getattr(self, name)))
        return other

    def say(self, message: Message) -> None:
        """Take a message that is accepted but in no event yet; when its event comes, it is the same message."""
        if message.message_id not in self._known:
            self._known.add(message.message_id)
            self._keep_status_message()
            self._history.append(message)

    def take(self, stored: StoredEvent) -> Update:
        """Go on to the next event and return the update that it is to a client."""
        event = stored.event
        self.number = event.number
        self._standing = self._standing.after(event)
        self._note_call(event)
        self._calls = calls_in(event) if event.kind == "model.answered" else self._calls
        self._asked = asked_after(self._asked, event, self._calls)
        artifact = self._handed_over(stored)
        match event.kind:
            case "message.admitted" | "help.answered":
                if isinstance(stored.subject, UserEntry):
                    self.say(stored.subject.message)
            case "message.promoted":
                for entry in stored.entries:
                    if isinstance(entry, UserEntry):
                        self.say(entry.message)
            case "model.answered":
                for entry in stored.entries:
                    if isinstance(entry, ModelEntry):
                        artifact = self._reply(entry.reply, event.turn)
            case "task.status":
                self._move(stored)
        fields: dict[str, JsonValue] = {
            "generation": str(event.number),
            "kind": event.kind,
            "run": event.run,
            "turn": event.turn,
        }
        return self._update(artifact, {**fields, **extension.told(event.data)})

    def _note_call(self, event: LogEvent) -> None:
        if event.kind == "model.started":
            attempt = event.data.get("attempt")
            self.calling = (event.turn, attempt if isinstance(attempt, int) else 1)
        elif event.kind in {"model.answered", "model.failed", "run.ended"}:
            self.calling = None

    def _update(self, artifact: Artifact | None, fields: dict[str, JsonValue]) -> Update:
        update: Update
        if artifact is None:
            update = TaskStatusUpdateEvent(task_id=self.task_id, context_id=self.context_id, status=self._status)
        else:
            update = TaskArtifactUpdateEvent(
                task_id=self.task_id, context_id=self.context_id, artifact=artifact, last_chunk=True
            )
        extension.put(update.metadata, fields)
        return update

    def _handed_over(self, stored: StoredEvent) -> Artifact | None:
        artifact = handed_over(stored)
        if artifact is not None:
            self._artifacts.append(artifact)
        return artifact

    def _reply(self, reply: ModelReply, turn: int) -> Artifact | None:
        if not reply.text.strip():
            return None
        if reply.calls or reply.finish != "stop":
            self._set_status(self._said(reply.text))
            return None
        self._answer = reply.text
        artifact = answer_artifact(turn, reply.text)
        self._artifacts.append(artifact)
        return artifact

    def _move(self, stored: StoredEvent) -> None:
        event = stored.event
        state, reason = str(event.data.get("state")), str(event.data.get("reason") or "")
        if state not in STATES:
            return
        self.state, self._reason = state, reason
        text = str(event.data.get("message") or "") or WORDS.get(reason, "")
        if reason == "answered":
            text = self._answer
        elif not text and reason and state != "completed":
            text = f"The task is {state.replace('_', ' ')}: {reason}."
        said = self._said(text) if text else None
        if said is not None and reason == "help":
            extension.put(said.metadata, {"questions": list(self._asked.values())})
        self._set_status(said)
        self._status.timestamp.FromMilliseconds(event.at_ms)

    def _set_status(self, message: A2AMessage | None) -> None:
        """Take a status with this message; its time is that of the latest state, by which tasks are listed."""
        self._keep_status_message()
        self._status = TaskStatus(state=STATES[self.state], message=message, timestamp=self._status.timestamp)

    def _keep_status_message(self) -> None:
        """Move what the agent said into the history, once: before what is said next, by whomever."""
        message = self._status.message
        if self._status.HasField("message") and message.message_id not in self._known:
            self._known.add(message.message_id)
            self._history.append(message)

    def _said(self, text: str) -> A2AMessage:
        return A2AMessage(
            message_id=f"{self.task_id}-{self.number}",
            task_id=self.task_id,
            context_id=self.context_id,
            role=Role.ROLE_AGENT,
            parts=[Part(text=text)],
        )

    # --- the whole ----------------------------------------------------------------------------------------------

    def latest(self, history_length: int | None) -> Sequence[A2AMessage | Message]:
        """Return the latest `history_length` messages (None: all), 0 for none (A2A 3.2.4)."""
        if history_length is None:
            return self._history
        return self._history[-history_length:] if history_length else []

    @property
    def artifacts(self) -> Sequence[Artifact]:
        """What the task has handed over, the oldest first."""
        return self._artifacts

    def bare(self) -> Task:
        """Return the task without history and artifacts, which may be more than is told at once (`fitting.py`)."""
        task = Task(id=self.task_id, context_id=self.context_id, status=self._status)
        extension.put(task.metadata, {"generation": str(self.number), "reason": self._reason})
        return task
