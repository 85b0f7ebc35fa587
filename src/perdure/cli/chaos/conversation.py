"""The customer of a trial: gives the messages, answers the questions, and notes what was acknowledged and followed.

It lives in this command's own process, which is never killed, and talks to the task as any client would: a request
that nobody answered is sent again under the same id, until it is acknowledged.
"""

import asyncio
from collections.abc import Sequence

from perdure.app.events import TaskEvent
from perdure.app.messages import new_id, new_message
from perdure.app.task import Task
from perdure.cli.following import follow
from perdure.cli.output import Outcome
from perdure.cli.questions import Question
from perdure.core.agent import AgentSpec
from perdure.core.errors import ConfigurationError, InvalidInput, Unavailable
from perdure.core.ports import Store
from perdure.temporal.contracts import TaskStart
from perdure.temporal.tasks import TaskClient

SEND_AGAIN_S = 0.2
"""Between two tries of a request that nobody answered; each try waits by itself for a worker to come back."""


class Conversation:
    """One task from its first message to its rest after the last. Also the `Output` and the `Answering` of `follow`."""

    def __init__(self, client: TaskClient, store: Store, messages: Sequence[str], answers: Sequence[str]) -> None:
        self.task_id = new_id("t")
        self.acknowledged: list[str] = []
        self._client = client
        self._store = store
        self._messages = messages
        self._answers = list(answers)
        self._passes: list[list[int]] = []

    @property
    def followed(self) -> tuple[tuple[int, ...], ...]:
        """The event numbers of each pass over the log, as they came."""
        return tuple(tuple(numbers) for numbers in self._passes)

    async def start(self, spec: AgentSpec) -> None:
        """Start the task with the first message; it is durable when this returns."""
        message = await new_message(self._store, self._messages[0])
        start = TaskStart(task_id=self.task_id, context_id=new_id("c"), agent=spec, messages=(message,))
        await self._client.start(start)
        self.acknowledged.append(message.message_id)

    async def hold(self) -> Outcome:
        """Follow the task, answer, send what follows, and return how it ended after the last message.

        Raises `ConfigurationError` when the agent asks more often than there are answers.
        """
        task = Task(self.task_id, self._store, self._client)
        outcome = await self._follow(task, 0)
        for text in self._messages[1:]:
            if outcome.exit_code:
                break
            outcome = await self._follow(task, await self._send(task, text))
        return outcome

    async def _follow(self, task: Task, past: int) -> Outcome:
        self._passes.append([])
        return await follow(task, self, self, past)

    async def _send(self, task: Task, text: str) -> int:
        message_id = new_id("m")
        while True:
            try:
                number = await task.send(text, message_id=message_id)
            except Unavailable:
                await asyncio.sleep(SEND_AGAIN_S)
                continue
            self.acknowledged.append(message_id)
            return number

    async def __call__(self, question: Question) -> None:
        """Give the next answer, as often as it takes until it is acknowledged."""
        if not self._answers:
            raise ConfigurationError(
                "--answer", f"the agent asks {question.text!r}, and no answer is left; give one more"
            )
        answer = self._answers.pop(0)
        task, tried = Task(self.task_id, self._store, self._client), False
        while True:
            try:
                await task.answer(question.help_id, answer)
            except Unavailable:
                tried = True
                await asyncio.sleep(SEND_AGAIN_S)
                continue
            except InvalidInput as error:
                if not tried or error.field != "help_id":
                    raise
            return  # taken, now or by a try whose acknowledgement was lost

    def closed(self, event: TaskEvent) -> None:
        """The evidence is read from the log."""

    def event(self, event: TaskEvent) -> None:
        """Note an event as it came."""
        self._passes[-1].append(event.number)

    def outcome(self, outcome: Outcome) -> None:
        """Nothing is shown."""
