"""A task as it is told, within TASK_BYTES_MAX: an answer stands in memory whole, once for each client that takes it.

Artifacts go first, since they are what the task came to, then what was said; of both the newest, without gaps. What is
left out is counted in the metadata (`artifactsLeftOut`, `messagesLeftOut`). Nothing is lost by it: each artifact comes
in its own event to whoever follows the task from its beginning, and what a client sent it has. Refused: messages
without their files. Whoever reads them could not tell them from what was sent. Pure.
"""

from collections.abc import Sequence

from a2a.types.a2a_pb2 import Artifact, Message, Task
from pydantic import JsonValue

from perdure.a2a import extension
from perdure.core import door_limits


class Fitting:
    """Takes what there is of a task, the newest first, while there is room."""

    def __init__(self, bare: Task) -> None:
        self._task = bare
        self._room = door_limits.TASK_BYTES_MAX - bare.ByteSize()
        self._said: list[Message] = []
        self._left_out: dict[str, JsonValue] = {}

    @property
    def messages(self) -> int:
        """How many messages it has."""
        return len(self._said)

    def hand_over(self, artifacts: Sequence[Artifact]) -> None:
        """Take the artifacts, given the oldest first, as far as there is room."""
        first = len(artifacts)
        while first > 0 and self._fits(artifacts[first - 1]):
            first -= 1
        self._task.artifacts.extend(artifacts[first:])
        if first:
            self._left_out["artifactsLeftOut"] = first

    def say(self, message: Message) -> bool:
        """Take a message, older than those before; False where there is no room for it, or any older one."""
        fits = self._fits(message)
        if fits:
            self._said.append(message)
        return fits

    def task(self, of_messages: int) -> Task:
        """Return the task; `of_messages` is how many messages it would have."""
        self._task.history.extend(reversed(self._said))
        if self.messages < of_messages:
            self._left_out["messagesLeftOut"] = of_messages - self.messages
        if self._left_out:
            extension.add(self._task.metadata, self._left_out)
        return self._task

    def _fits(self, what: Artifact | Message) -> bool:
        size = what.ByteSize()
        if size > self._room:
            return False
        self._room -= size
        return True
