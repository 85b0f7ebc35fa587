"""`perdure tasks URL`: the tasks of a served agent, as the server tells them to this caller."""

import asyncio
import json
from functools import partial

from a2a.types.a2a_pb2 import Task

from perdure.cli.client.patience import Patience, patiently
from perdure.cli.client.said import last_words, state_of
from perdure.cli.client.server import Server, checked_url, connected
from perdure.cli.tables import print_table
from perdure.cli.timeline import elapsed, one_line
from perdure.core import client_limits, limits

WORDS_CHARS = 60


def print_served(url: str, limit: int, now_ms: int, *, as_json: bool) -> None:
    """Print the tasks of the agent at `url`, the newest status first."""
    checked_url(url)
    agent, found = asyncio.run(_listed(url, limit))
    if as_json:
        for task in found:
            print(json.dumps(_object(agent, task)))
        return
    print_table(
        "",
        ("task", "state", "agent", "changed", "message"),
        (
            (
                task.id,
                state_of(task.status).upper(),
                agent,
                f"{elapsed(max(0, now_ms - _at_ms(task))).removeprefix('+')} ago",
                one_line(last_words(task), WORDS_CHARS),
            )
            for task in found
        ),
        'no tasks yet; start one with: perdure send URL "message"',
    )


async def _listed(url: str, limit: int) -> tuple[str, list[Task]]:
    async with connected(url) as server:
        return server.card.name, await _pages(server, limit)


async def _pages(server: Server, limit: int) -> list[Task]:
    found: list[Task] = []
    patience, token = Patience(client_limits.LIST_PATIENCE_S), ""
    while len(found) < limit:
        wanted = min(limit - len(found), limits.LIST_PAGE_MAX)
        page = await patiently(patience, partial(server.tasks, wanted, token))
        found.extend(page.tasks)
        token = page.next_page_token
        if not token or not page.tasks:
            break
    return found[:limit]


def _at_ms(task: Task) -> int:
    return int(task.status.timestamp.ToMilliseconds())


def _object(agent: str, task: Task) -> dict[str, object]:
    return {
        "task_id": task.id,
        "context_id": task.context_id,
        "agent": agent,
        "state": state_of(task.status),
        "status_at_ms": _at_ms(task),
        "message": one_line(last_words(task)),
    }
