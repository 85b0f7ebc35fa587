"""`perdure show`: all that is known of one task.

The store is enough for the timeline, the effects and the attempts at calls, so this works with nothing running. Where
the task's Temporal runs, that is joined, never started: its history has every activity, until when things are waited
for, the workers of attempts under way, and whether the two disagree, which a store cannot say of itself.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from perdure.app.clock import now_ms
from perdure.app.settings import Settings
from perdure.app.waiting import Waiting, waits_of
from perdure.cli.output import event_object, note
from perdure.cli.reading import TaskLog, read_log
from perdure.cli.tables import FROM_HISTORY, FROM_LOG, Doubts, counts, print_attempts, print_effects
from perdure.cli.timeline import elapsed, one_line, timeline_line
from perdure.core.attempts import AttemptRow, joined
from perdure.core.errors import TaskNotFound, Unavailable
from perdure.core.inbox import Inbox
from perdure.core.state import TERMINAL
from perdure.temporal.connection import temporal_client
from perdure.temporal.history import TaskHistory, read_history
from perdure.temporal.settings import EmbeddedSettings, RemoteSettings, TemporalSettings

JOIN_WITHIN_S = 3.0
"""Temporal only adds to what is shown; who asks is not kept waiting for it."""


AGREE = "a message, once store and Temporal are put back from one moment (store)"


def show(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's id; `perdure tasks` lists them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")] = False,
) -> None:
    """Show a task: timeline, what it waits for, attempts and effects.

    Reads the store; nothing needs to run, and nothing is started. Where the
    task's Temporal runs, the attempts are those of its history, which has
    every activity; the store alone tells of model and tool calls.
    """
    shown = asyncio.run(_shown(Settings.from_environment(), task))
    if as_json:
        print(json.dumps(_object(shown)))
    else:
        _print(shown, now_ms())


@dataclass(frozen=True)
class _Shown:
    log: TaskLog
    attempts: tuple[AttemptRow, ...]
    waits: tuple[Waiting, ...]
    joined: bool = False
    diverged: str = ""

    @property
    def sources(self) -> str:
        """Who was asked."""
        return "store and Temporal" if self.joined else "store"

    @property
    def inbox(self) -> Inbox:
        """What waits in the task, by its log."""
        inbox = Inbox()
        for row in self.log.rows:
            inbox = inbox.after(row)
        return inbox


async def _shown(settings: Settings, task_id: str) -> _Shown:
    log = await read_log(settings, task_id)
    over = log.row.state in TERMINAL
    try:
        async with asyncio.timeout(JOIN_WITHIN_S):
            history = await _history(settings.temporal, task_id)
    except (Unavailable, TaskNotFound, TimeoutError):
        return _Shown(log, log.attempts, () if over else waits_of(log.rows, log.attempts))
    attempts = joined(log.attempts, history.attempts)
    if over:
        return _Shown(log, attempts, (), joined=True)
    if history.diverged:
        wait = Waiting(kind="message", text=AGREE, since_ms=log.row.updated_at_ms)
        return _Shown(log, attempts, (wait,), joined=True, diverged=history.diverged)
    # By the log: what it does not tell of yet, nobody can be told to wait for.
    under_way = _completed(log.attempts, history.attempts)
    return _Shown(log, attempts, waits_of(log.rows, under_way, history.timers), joined=True)


async def _history(temporal: TemporalSettings, task_id: str) -> TaskHistory:
    if isinstance(temporal, EmbeddedSettings):
        temporal = temporal.model_copy(update={"own": "never", "startup_timeout_s": JOIN_WITHIN_S})
    elif isinstance(temporal, RemoteSettings):
        temporal = temporal.model_copy(update={"connect_timeout_s": JOIN_WITHIN_S})
    async with temporal_client(temporal) as client:
        return await read_history(client, task_id)


def _completed(attempts: Sequence[AttemptRow], history: Sequence[AttemptRow]) -> tuple[AttemptRow, ...]:
    """Add to open attempts what Temporal alone knows; what the log says of an attempt stays as it is."""
    known = {(row.activity, row.call, row.attempt): row for row in history}
    completed = []
    for row in attempts:
        other = known.get((row.activity, row.call, row.attempt))
        if other is not None and row.outcome == "open":
            row = row.model_copy(update={"worker": row.worker or other.worker, "until_ms": other.until_ms})  # noqa: PLW2901 - the same row, with more in it
        completed.append(row)
    return tuple(completed)


def _print(shown: _Shown, at_ms: int) -> None:
    row, log = shown.log.row, shown.log
    changed_ms = max((e.at_ms for e in log.events if e.kind == "task.status"), default=row.created_at_ms)
    state, reason = _standing(shown)
    why = f" ({reason})" if reason else ""
    print(f"task     {row.header.task_id}")
    print(f"agent    {row.header.agent_id}, context {row.header.context_id}")
    if shown.diverged:
        print(f"state    {state.upper()}{why}: store and Temporal disagree, and nothing is called")
        print(f"why      {one_line(shown.diverged)}")
    else:
        print(f"state    {state.upper()}{why} for {_span(at_ms - changed_ms)}")
    for wait in shown.waits:
        print(f"waits    {_wait_text(wait, at_ms)}")
    for each in shown.inbox.messages:
        print(f"inbox    {each.message_id} ({each.lane}, {'runnable' if each.runnable else 'parked'}, {each.tail})")
    if not shown.waits:
        print("waits    for nothing")
    elif not shown.joined:
        note("(from the store alone: its Temporal does not run, or does not answer)")
    print("\ntimeline")
    began_ms = log.events[0].at_ms if log.events else 0
    workers = {(a.call, a.attempt): a.worker for a in shown.attempts}
    for event in log.events:
        index = event.data.get("index")
        call = (event.turn, index if isinstance(index, int) else None)
        begins = event.kind in {"model.started", "tool.started"}
        worker = workers.get((call, int(str(event.data["attempt"]))), "") if begins else ""
        print(timeline_line(event, began_ms, worker))
    print_attempts(shown.attempts, FROM_HISTORY if shown.joined else FROM_LOG)
    print_effects(log.effects, Doubts.of(log.rows))


def _wait_text(wait: Waiting, at_ms: int) -> str:
    what = one_line(wait.text)
    if wait.kind == "person":
        what = f"for a person's answer to {what!r} ({wait.help_id})"
    elif wait.kind in {"message", "worker"}:
        what = f"for {what}"
    by = f" by {wait.worker}" if wait.worker else ""
    if wait.until_ms is not None:
        until = f"until {_span(wait.until_ms - at_ms)} from now at the latest"
    else:
        until = "however long it takes" if wait.kind in {"person", "message"} else "no end is known"
    return f"{what}{by}, for {_span(at_ms - wait.since_ms)} so far, {until}"


def _span(span_ms: int) -> str:
    return elapsed(max(0, span_ms)).removeprefix("+")


def _standing(shown: _Shown) -> tuple[str, str]:
    """Return state and reason. A task that disagrees with its store is parked, and the store cannot know."""
    return ("input_required", "store") if shown.diverged else (shown.log.row.state, shown.log.row.reason)


def _object(shown: _Shown) -> dict[str, Any]:
    row, doubts = shown.log.row, Doubts.of(shown.log.rows)
    state, reason = _standing(shown)
    return {
        "task": {
            "task_id": row.header.task_id,
            "context_id": row.header.context_id,
            "agent": row.header.agent_id,
            "state": state,
            "reason": reason,
            "created_at_ms": row.created_at_ms,
            "updated_at_ms": row.updated_at_ms,
        },
        "sources": shown.sources,
        "diverged": shown.diverged,
        "inbox": [each.model_dump(mode="json") for each in shown.inbox.messages],
        "waits": [wait.model_dump(mode="json") for wait in shown.waits],
        "events": [event_object(event) for event in shown.log.events],
        "attempts": [attempt.model_dump(mode="json") for attempt in shown.attempts],
        "activities": counts(shown.attempts),
        "effects": [
            effect.model_dump(mode="json") | {"in_doubt": doubts.hold(effect), "late": doubts.late(effect)}
            for effect in shown.log.effects
        ],
    }
