"""What the client commands have in common: one server, one task to follow, and every way in which that ends."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from perdure.cli.client.ends import End
from perdure.cli.client.following import Follower
from perdure.cli.client.said import TERMINAL
from perdure.cli.client.server import Server, checked_url, connected
from perdure.cli.client.telling import Telling
from perdure.cli.output import Outcome, note
from perdure.cli.places import command
from perdure.cli.signals import Interrupted, until_signal
from perdure.core import client_limits
from perdure.core.errors import InvalidInput, RunFailed, Unavailable

Url = Annotated[str, typer.Argument(metavar="URL", help="Where the agent is served, as http://127.0.0.1:8000.")]
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="The task's id.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per event, and one with the outcome as the last.")
]
PatienceS = Annotated[
    float,
    typer.Option("--patience", min=0, metavar="SECONDS", help="How long the server may be away before this gives up."),
]
PATIENCE_S = client_limits.PATIENCE_S

Begin = Callable[[Server], Awaitable[Follower]]
"""Makes what follows the task, once the server is known."""


@dataclass
class Conduct:
    """One command. `key` is the message's, for whoever has to give it again; `told` once its outcome was."""

    context: typer.Context
    url: str
    telling: Telling
    key: str = ""
    follower: Follower | None = None
    told: bool = False

    def run(self, begin: Begin) -> int:
        """Follow until the end; return the exit code."""
        checked_url(self.url)
        return asyncio.run(self._run(begin))

    async def _run(self, begin: Begin) -> int:
        try:
            return await until_signal(self._conduct(begin), _say_signal)
        except Interrupted as interrupted:
            code = 128 + interrupted.number
            if not self.told:
                self._say_way_on()
                task_id = "" if self.follower is None else self.follower.task_id
                self.telling.outcome(Outcome("interrupted", task_id, exit_code=code))
            return code
        except Unavailable:
            self._say_way_on()
            raise

    async def _conduct(self, begin: Begin) -> int:
        async with connected(self.url) as server:
            self.follower = await begin(server)
            outcome = outcome_of(await self.follower.until_end(), self.follower.task_id)
        self.told = True
        self.telling.outcome(outcome)
        self._say_why(outcome)
        return outcome.exit_code

    def _say_way_on(self) -> None:
        follower = self.follower
        if follower is None:
            return
        if not follower.accepted:
            if follower.may_repeat:
                note(f"whether the message was taken in is not known; give the same again, with --key {self.key}")
        elif follower.task_id:
            after = ("--after", str(follower.seen)) if follower.seen else ()
            note(f"the task goes on; see it with: {self._command('watch', follower.task_id, *after)}")

    def _say_why(self, outcome: Outcome) -> None:
        task_id = outcome.task_id
        if outcome.outcome == "waiting":
            note(f"the task asks: {outcome.message}")
            note(f"answer with: {self._command('answer', task_id, 'TEXT')}")
        elif outcome.outcome == "unanswered":
            note(f"error: {RunFailed(task_id, outcome.state, outcome.reason, outcome.message)}")
            if outcome.state not in TERMINAL:
                note(f"the next message goes on: {self._command('send', 'MESSAGE', '--task', task_id)}")

    def _command(self, name: str, *words: str) -> str:
        return command(self.context, name, self.url, *words)


def outcome_of(end: End, task_id: str) -> Outcome:
    """Return an end as it is printed."""
    return Outcome(
        outcome=end.outcome,
        task_id=task_id,
        state=end.state,
        reason=end.reason,
        message=end.message,
        answer=end.answer if end.outcome == "answered" else "",
        exit_code=0 if end.outcome in {"answered", "accepted"} else 1,
    )


def words_of(name: str, given: str) -> str:
    """Return what is to be said; raises `InvalidInput` when there is nothing."""
    if not given.strip():
        raise InvalidInput(name, "is empty; say what the agent is to know")
    return given


def _say_signal(number: signal.Signals) -> None:
    note(number.name)
