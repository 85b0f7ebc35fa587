"""`perdure tasks`: the tasks of the data folder, from the store alone; `perdure tasks URL`: those of a served agent.

One name, because it is one question, put to whom the other commands would be put to: those that name no server work on
the data folder, those that do have its URL first. Refused: `--server`, a second way to say what `send` and `watch` say
by their first argument.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated

import typer

from perdure.app.clock import now_ms
from perdure.app.events import TaskEvent
from perdure.app.settings import Settings
from perdure.cli.places import existing_store
from perdure.cli.tables import print_table
from perdure.cli.timeline import elapsed, one_line
from perdure.core.ports import Store, TaskRow

FIRST_ROWS = 4
"""A task's first message is among its first rows: created, its state, the message."""

WORDS_CHARS = 60


def tasks(
    url: Annotated[
        str | None,
        typer.Argument(metavar="[URL]", help="Where an agent is served; without it the data folder's tasks."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, metavar="N", help="At most so many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per task.")] = False,
) -> None:
    """List tasks, the latest changed first."""
    if url is not None:
        from perdure.cli.client.listing import print_served  # noqa: PLC0415 - the local list waits for no HTTP client

        print_served(url, limit, now_ms(), as_json=as_json)
        return
    listed = asyncio.run(_listed(Settings.from_environment(), limit))
    at_ms = now_ms()
    if as_json:
        for each in listed:
            print(json.dumps(each.as_object()))
        return
    print_table(
        "",
        ("task", "state", "agent", "changed", "message"),
        (
            (
                each.row.header.task_id,
                each.row.state.upper() + (f" ({each.row.reason})" if each.row.reason else ""),
                each.row.header.agent_id,
                f"{elapsed(max(0, at_ms - each.row.updated_at_ms)).removeprefix('+')} ago",
                one_line(each.words, WORDS_CHARS),
            )
            for each in listed
        ),
        'no tasks yet; start one with: perdure run AGENT "message"',
    )


@dataclass(frozen=True)
class _Listed:
    row: TaskRow
    words: str

    def as_object(self) -> dict[str, object]:
        return {
            "task_id": self.row.header.task_id,
            "context_id": self.row.header.context_id,
            "agent": self.row.header.agent_id,
            "state": self.row.state,
            "reason": self.row.reason,
            "created_at_ms": self.row.created_at_ms,
            "updated_at_ms": self.row.updated_at_ms,
            "message": one_line(self.words),
        }


async def _listed(settings: Settings, limit: int) -> list[_Listed]:
    async with existing_store(settings) as store:
        if store is None:
            return []
        return [_Listed(row, await _first_words(store, row)) for row in await store.tasks(limit)]


async def _first_words(store: Store, row: TaskRow) -> str:
    first = await store.events_after(row.header.task_id, 0, FIRST_ROWS)
    return next((TaskEvent.of(each).text for each in first if each.event.kind == "message.admitted"), "")
