"""The model of the forty conversations: it makes the calls that solve the request, whatever it is told.

One agent serves them all, and no worker knows which conversation comes to it: that stands in the task's id. What is
said next follows from the transcript alone, so that any worker goes on where another was killed.
"""

from collections.abc import Iterable

from perdure.core.content import ModelReply
from perdure.core.ports import BlobReader, DeltaSink, ModelRequest
from perdure.testing import call, say, scripted
from tests.retail.data import Task, conversation


def task_id_of(conversation_id: int, round_number: int) -> str:
    """Return the id of the task that has this conversation in that round."""
    return f"retail-{round_number}-{conversation_id}"


def conversation_of(task_id: str) -> int:
    """Return which conversation a task is."""
    return int(task_id.rsplit("-", 1)[1])


class ReplayingModel:
    """A `ModelPort`: the scripts of all conversations."""

    name = "replaying"

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._scripts = {}
        for task in tasks:
            calls, last = conversation(task)
            steps = [call(tool, arguments) for tool, arguments in calls]
            self._scripts[task.id] = scripted(*steps, say(last), name=self.name)

    async def reply(self, request: ModelRequest, on_delta: DeltaSink, blobs: BlobReader) -> ModelReply:
        """Answer by the script of the task's conversation."""
        return await self._scripts[conversation_of(request.task_id)].reply(request, on_delta, blobs)
