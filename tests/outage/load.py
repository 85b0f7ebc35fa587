"""Load whose every acknowledgement is kept: what was started, and which messages were taken in."""

import asyncio
import contextlib
from dataclasses import dataclass, field

from perdure import App
from perdure.core.errors import InvalidInput, Unavailable

MESSAGES_PER_TASK = 4


@dataclass
class Load:
    """Senders over one app. `tasks` are the acknowledged starts, `messages` the acknowledged messages per task."""

    app: App
    tasks: list[str] = field(default_factory=list)
    messages: dict[str, list[str]] = field(default_factory=dict)
    unanswered: int = 0
    ending: bool = False

    async def send(self, name: str) -> None:
        """Start tasks and send to each, one after the other, until `ending`; what is not acknowledged is sent again."""
        count = 0
        while not self.ending:
            count += 1
            task_id = f"t-{name}-{count}"
            await self._start(task_id)
            for number in range(2, MESSAGES_PER_TASK + 1):
                message_id = f"{task_id}-m{number}"
                while True:
                    try:
                        await self.app.task(task_id).send("more", message_id=message_id, lane="queue")
                        break
                    except Unavailable:
                        self.unanswered += 1
                self.messages[task_id].append(message_id)

    async def _start(self, task_id: str) -> None:
        while True:
            try:
                with contextlib.suppress(InvalidInput):  # it exists: an earlier try had come through
                    await self.app.send("go", task_id=task_id, message_id=f"{task_id}-m1")
                break
            except Unavailable:
                self.unanswered += 1
        self.tasks.append(task_id)
        self.messages[task_id] = [f"{task_id}-m1"]

    @property
    def acknowledged(self) -> int:
        return sum(len(ids) for ids in self.messages.values())

    async def more(self, count: int) -> None:
        """Wait until so many more messages were acknowledged."""
        enough = self.acknowledged + count
        while self.acknowledged < enough:  # noqa: ASYNC110 - the senders set no event
            await asyncio.sleep(0.005)
