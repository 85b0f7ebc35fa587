"""`perdure run`: give an agent a message and stay until it has answered, or go on with a task that was left.

The command owns nothing of the task. It starts what the task needs (the embedded Temporal, or joins the one that
runs, and supervised workers), follows the log, and answers questions from its terminal. Killed at any moment it leaves
the task as it is, for `perdure run --resume` or a worker.

The worker is started before the message is given: what it refuses (an agent, a model without a key) is told before
anything was changed.
"""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from perdure.app.app import App, open_app
from perdure.app.loading import load_agent
from perdure.app.settings import Settings
from perdure.app.supervisor import Change, Fleet, supervised
from perdure.app.task import Task
from perdure.cli.divergence_watch import until_diverged
from perdure.cli.following import NobodyAnswers, TerminalAnswering, follow
from perdure.cli.output import JsonOutput, Outcome, Output, TimelineOutput, note
from perdure.cli.people import user_here
from perdure.cli.places import Origin, command, existing_store, origin_of, remember, worker_log
from perdure.cli.reading import read_log
from perdure.cli.signals import Interrupted, first_of, until_signal
from perdure.cli.temporal_watch import until_temporal_ends
from perdure.core import limits
from perdure.core.errors import ConfigurationError, InvalidInput, RunFailed, TaskClosed, TaskNotFound, Unavailable
from perdure.core.ports import TaskRow
from perdure.core.state import TERMINAL
from perdure.temporal.connection import temporal_client


def run(
    context: typer.Context,
    agent: Annotated[
        str | None, typer.Argument(metavar="AGENT", help="A TOML file or module:agent; may be left out with --resume.")
    ] = None,
    message: Annotated[str | None, typer.Argument(metavar="MESSAGE", help="What the agent is told.")] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="TASK", help="Go on with this task; a MESSAGE is sent to it first."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per event, and one with the outcome as the last.")
    ] = False,
) -> None:
    """Give an agent a message, show what happens, answer its questions, print its answer.

    A task that was left (this command was killed, or ended while the agent
    asked) goes on with `perdure run --resume TASK`.
    """
    request = _Request(context, agent, message, resume, JsonOutput() if as_json else TimelineOutput())
    raise typer.Exit(asyncio.run(_run(request)))


@dataclass
class _Request:
    """What was asked for; `task_id` as soon as there is a task that must be spoken of, `told` once its outcome was."""

    context: typer.Context
    agent: str | None
    message: str | None
    resume: str | None
    output: Output
    task_id: str = ""
    told: bool = False

    def __post_init__(self) -> None:
        if self.resume is None and self.agent is None:
            raise InvalidInput("AGENT", 'is missing; write perdure run AGENT "message"')
        if self.resume is None and self.message is None:
            raise InvalidInput("MESSAGE", 'is missing; write perdure run AGENT "message"')
        if self.message is not None and not self.message.strip():
            raise InvalidInput("MESSAGE", "is empty; say what the agent shall do")

    @property
    def resume_command(self) -> str:
        return command(self.context, "run", "--resume", self.task_id)


async def _run(request: _Request) -> int:
    settings = Settings.from_environment()
    try:
        outcome = await until_signal(_answered(request, settings), lambda number: _draining(request, number))
    except Interrupted as interrupted:
        code = 128 + interrupted.number
        if request.told:
            return code
        if not request.task_id:
            note("nothing was started")
            return code
        note(f"task {request.task_id} is kept; go on with: {request.resume_command}")
        request.output.outcome(Outcome("interrupted", request.task_id, exit_code=code))
        return code
    except Unavailable:
        if request.task_id and not request.told:
            note(f"task {request.task_id} is kept; go on with: {request.resume_command}")
        raise
    return outcome.exit_code


def _tell_of_worker(change: Change) -> None:
    """Say what happened to a worker, as far as it was not this command's doing."""
    if change.asked or (change.kind == "ready" and change.part != "calls"):
        return
    note(f"{change.text}; another one is started" if change.kind == "died" else change.text)


def _tell(request: _Request, outcome: Outcome) -> Outcome:
    """Say how it ended as soon as it is known; shutting down what was started takes seconds."""
    request.told = True
    request.output.outcome(outcome)
    if outcome.outcome == "waiting":
        note(f"the task waits for an answer; give it with: {request.resume_command}")
    elif outcome.outcome == "unanswered":
        error = RunFailed(outcome.task_id, outcome.state, outcome.reason, outcome.message)
        again = command(request.context, "run", "AGENT", "MESSAGE", "--resume", outcome.task_id)
        note(f"error: {error}" if outcome.state in TERMINAL else f"error: {error}; the next message goes on: {again}")
    return outcome


def _draining(request: _Request, number: signal.Signals) -> None:
    # A task is never ended by a signal to whoever watches it; only begun calls are waited for.
    begun = "; the worker lets begun calls end (again to end at once)" if request.task_id and not request.told else ""
    note(f"{number.name}{begun}")


async def _answered(request: _Request, settings: Settings) -> Outcome:
    row = None
    if request.resume is not None:
        row = await _left(request, settings)
        if row is not None and row.state in TERMINAL:
            if request.message is not None:
                raise TaskClosed(row.header.task_id, row.state)
            return await _over(request, settings)
    origin = _origin(request, settings, row)
    os.chdir(origin.folder)  # where the worker child finds the agent's module, and this process too
    agent = load_agent(origin.reference)
    if row is not None and row.header.agent_id != agent.id:
        raise InvalidInput(
            "AGENT", f"task {row.header.task_id} belongs to agent {row.header.agent_id!r}, not to {agent.id!r}"
        )
    log = worker_log(settings)
    remember(settings, agent.id, origin)
    fleet = Fleet(
        origin.reference,
        agent.id,
        origin.folder,
        log=log,
        environment={"PERDURE_HOME": str(settings.home)},
        rosters=settings.home / "workers",
    )
    async with (
        open_app(agent, settings=settings, worker=False) as app,
        temporal_client(settings.temporal) as client,
        supervised(fleet, client, _tell_of_worker) as supervisor,
    ):
        note(f"workers for {agent.id} are ready; their log is {log}")
        given = first_of(_given(request, app), supervisor.watch())
        return await first_of(given, until_temporal_ends(settings))


async def _given(request: _Request, app: App) -> Outcome:
    """Give the message and follow the task."""
    past = 0
    if request.resume is None:
        task = await app.send(request.message or "")
        request.task_id = task.id
        note(f"task {task.id}")
    else:
        task = app.task(request.resume)
        await task.monitor()  # a task whose first row was never written is known to Temporal alone
        if request.message is not None:
            past = await task.send(request.message)
        request.task_id = task.id
    return await first_of(_followed(request, app, task, past), until_diverged(task))


async def _followed(request: _Request, app: App, task: Task, past: int) -> Outcome:
    try:
        outcome = await follow(task, request.output, TerminalAnswering(task, user_here()), past)
    except NobodyAnswers:
        row = await task.row()
        outcome = Outcome("waiting", task.id, row.state, row.reason, exit_code=1)
    _tell(request, outcome)
    if outcome.state in TERMINAL:
        await app.client.returned(task.id, limits.RETURN_WITHIN_S)
    return outcome


async def _left(request: _Request, settings: Settings) -> TaskRow | None:
    """Return the task to go on with as the store knows it; None when only its agent's Temporal may know it."""
    task_id = request.resume or ""
    async with existing_store(settings) as store:
        row = None if store is None else await store.task(task_id)
    if row is None and request.agent is None:
        raise TaskNotFound(task_id)
    if row is not None:
        request.task_id = task_id
    return row


async def _over(request: _Request, settings: Settings) -> Outcome:
    """Show a task that has ended; nothing needs to run for that."""
    log = await read_log(settings, request.task_id)
    for event in log.events:
        request.output.event(event)
    return _tell(request, log.standing.outcome(request.task_id))


def _origin(request: _Request, settings: Settings, row: TaskRow | None) -> Origin:
    if request.agent is not None:
        return Origin(request.agent, Path.cwd())
    agent_id = "" if row is None else row.header.agent_id
    origin = origin_of(settings, agent_id)
    if origin is None or not origin.folder.is_dir():
        hint = command(request.context, "run", "AGENT", "--resume", request.task_id)
        raise ConfigurationError(
            "AGENT", f"it is not known here where agent {agent_id!r} comes from (any more); name it: {hint}"
        )
    return origin
