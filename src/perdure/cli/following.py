"""Following a task until it rests: its events are shown, its questions are put to whoever sits at the terminal."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from perdure.app.events import TaskEvent
from perdure.app.task import Task
from perdure.cli.output import Outcome, Output, note
from perdure.cli.questions import Question, answer_to
from perdure.cli.terminal_lines import TerminalLines
from perdure.cli.timeline import one_line
from perdure.core.content import ModelEntry
from perdure.core.errors import InvalidInput, Unavailable
from perdure.core.questions import read
from perdure.core.state import TERMINAL

ANSWER_TRIES_MAX = 8
"""Each waits until a worker answers or a quarter of a minute is over; a dead worker is replaced within that."""


class NobodyAnswers(Exception):
    """Standard input has ended, and the task asks."""


class Standing:
    """Where the task stands by the events so far."""

    def __init__(self) -> None:
        self.questions: dict[str, Question] = {}
        self.state = ""
        self.reason = ""
        self.message = ""
        self.answer = ""

    def take(self, event: TaskEvent) -> None:
        """Take one event in."""
        match event.kind:
            case "help.requested":
                self.questions[event.help_id] = Question.of(event.data)
            case "help.answered" | "help.closed":
                self.questions.pop(event.help_id, None)
            case "message.promoted":
                self.answer = ""
            case "run.ended" if not event.data.get("answer_entry"):
                self.answer = ""
            case "task.status":
                self.state = str(event.data["state"])
                self.reason = str(event.data.get("reason", ""))
                self.message = str(event.data.get("message", ""))
        for entry in event.entries:
            if isinstance(entry, ModelEntry):
                self.answer = entry.reply.text

    @property
    def rests(self) -> bool:
        """Whether nothing happens any more unless a message comes."""
        return self.state in TERMINAL or (self.state == "input_required" and self.reason != "help")

    def outcome(self, task_id: str) -> Outcome:
        """Return how a task that rests ended."""
        answered = self.state == "completed" or (self.state == "input_required" and self.reason == "answered")
        return Outcome(
            outcome="answered" if answered else "unanswered",
            task_id=task_id,
            state=self.state,
            reason=self.reason,
            message=self.message,
            answer=self.answer if answered else "",
            exit_code=0 if answered else 1,
        )


class Answering(Protocol):
    """Puts questions to a person."""

    async def __call__(self, question: Question) -> None:
        """Return when the question was answered; raises `NobodyAnswers`."""
        ...

    def closed(self, event: TaskEvent) -> None:
        """Hear by which event a question was closed, whoever closed it."""
        ...


async def follow(task: Task, output: Output, answering: Answering, past: int = 0) -> Outcome:
    """Show the task's events from the first on until it rests, and return how it ended.

    A rest at or before event `past` does not count: a message came after it. Raises `NobodyAnswers` when the task
    waits for an answer that nobody here will give; it stays as it is.
    """
    standing = Standing()
    asking: dict[str, asyncio.Task[None]] = {}
    events = task.events()
    coming = asyncio.create_task(_next(events))
    try:
        while True:
            await asyncio.wait({coming, *asking.values()}, return_when=asyncio.FIRST_COMPLETED)
            for help_id, answered in list(asking.items()):
                if answered.done():
                    answered.result()
                    del asking[help_id]
                    standing.questions.pop(help_id, None)
            if not coming.done():
                continue
            event = coming.result()
            if event is None:
                return standing.outcome(task.id)
            coming = asyncio.create_task(_next(events))
            output.event(event)
            standing.take(event)
            await _drop_closed(asking, standing, answering, event)
            if not (standing.rests or standing.questions) or (await task.row()).last_number > event.number:
                continue
            if standing.rests and event.number > past:
                return standing.outcome(task.id)
            if standing.questions and not asking:
                question = next(iter(standing.questions.values()))
                asking[question.help_id] = asyncio.create_task(answering(question))
    finally:
        left = [coming, *asking.values()]
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _next(events: AsyncIterator[TaskEvent]) -> TaskEvent | None:
    return await anext(events, None)


async def _drop_closed(
    asking: dict[str, asyncio.Task[None]], standing: Standing, answering: Answering, event: TaskEvent
) -> None:
    """Stop asking what was answered elsewhere, or was closed; whoever asked hears of it."""
    for help_id in [help_id for help_id in asking if help_id not in standing.questions]:
        question = asking.pop(help_id)
        if not question.done():
            question.cancel()
            await asyncio.wait({question})
    if event.kind in {"help.answered", "help.closed"}:
        answering.closed(event)


class TerminalAnswering:
    """Asks on the terminal, or takes the next line of whatever standard input is."""

    def __init__(self, task: Task, by: str) -> None:
        self._task = task
        self._by = by
        self._lines = TerminalLines()
        self._sent: dict[str, _Sent] = {}
        """Answers on which there is no word yet; the log has the last one on each."""

    async def __call__(self, question: Question) -> None:
        """Put one question, already shown as an event; ask again until the task takes the answer."""
        how = f"Your answer: {question.how} (Ctrl-D: later)" if question.how else "Your answer (Ctrl-D: later):"
        if self._lines.drop_early():
            note("what was typed before the question below was shown does not answer it")
        while True:
            if self._lines.interactive:
                note(f"\n{question.text}\n{how}")
            line = await self._lines.next()
            if line is None:
                raise NobodyAnswers(question.help_id)
            if not line.strip():
                continue
            try:
                await self._send(question, answer_to(question, line.strip()))
            except InvalidInput as error:
                note(str(error))
                continue
            return

    def closed(self, event: TaskEvent) -> None:
        """Say what became of an answer on which there was no word: the first one counts, and it may be another's."""
        sent = self._sent.pop(event.help_id, None)
        if sent is None:
            return
        taken, told = what_became(sent.question, sent.text, self._by, event)
        if sent.lost or not taken:
            note(told)

    async def _send(self, question: Question, text: str) -> None:
        sent = self._sent[question.help_id] = _Sent(question, text)
        for tried in range(1, ANSWER_TRIES_MAX + 1):
            try:
                await self._task.answer(question.help_id, text, by=self._by)
            except Unavailable as error:
                if tried == ANSWER_TRIES_MAX:
                    raise
                sent.lost = True
                note(f"{error}; the answer is sent again")
            except InvalidInput as error:
                if error.field == "help_id" and sent.lost:
                    note("the question is not open any more; whether by this answer, the log is about to tell")
                    return
                self._sent.pop(question.help_id, None)
                raise
            else:
                self._sent.pop(question.help_id, None)
                return


@dataclass
class _Sent:
    """An answer on its way; `lost` once a try of it got no word."""

    question: Question
    text: str
    lost: bool = False


def what_became(question: Question, given: str, by: str, event: TaskEvent) -> tuple[bool, str]:
    """Return whether the answer that closed a question is the one that `by` had given, and say so, or what else did."""
    name = f"your answer to {question.help_id}"
    if event.kind == "help.closed":
        return False, f"{name} was not taken: {event.data.get('reason') or 'its run ended'}"
    who, said = str(event.data.get("by", "")), str(event.data.get("text", ""))
    if who == by and said in {given, _as_recorded(question, given)}:
        return True, f"{name} was taken"
    return False, f"{name} was not taken: {who or 'somebody'} had answered {one_line(said, 200)!r}"


def _as_recorded(question: Question, given: str) -> str:
    with contextlib.suppress(InvalidInput):
        return read(given, question.choices, None if question.form is None else dict(question.form))
    return given
