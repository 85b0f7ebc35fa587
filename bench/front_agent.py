"""The agent of `bench.front` as this package serves it.

When an event is committed is noted in the store's writing thread, right behind the transaction that wrote its row:
neither the way back to the event loop nor anything that comes after is left out of what is measured.
"""

from collections.abc import Callable
from typing import Any

from bench.front_script import ANSWER_ONLY, PAUSE_S, PLACE, TURNS, note
from perdure import Agent, tool
from perdure.core.content import Entry
from perdure.core.log import Batch
from perdure.store import effect_ledger, model_ledger, sql_store
from perdure.store.sqlite import SqliteBackend
from perdure.testing import call, last_user, replies, say, scripted
from perdure.testing.script import Step

_written: list[tuple[str, list[int]]] = []
"""Rows of the open transaction. A process has one writing thread."""


@tool(effect="read")
async def look(number: int) -> str:
    """Look something up."""
    return f"found {number}"


def step(transcript: tuple[Entry, ...]) -> Step:
    done = len(replies(transcript))
    if done < TURNS and last_user(transcript) != ANSWER_ONLY:
        return call("look", {"number": done}, delay_s=PAUSE_S)
    return say("done")


def _noting_rows(write_batch: Callable[..., Any]) -> Callable[..., Any]:
    def noted(connection: Any, task: Any, batch: Batch, *rest: Any) -> Any:
        if batch.rows:
            _written.append((batch.task_id, [row.number for row in batch.rows]))
        return write_batch(connection, task, batch, *rest)

    return noted


def _noting_commits(change: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*given: Any) -> Any:
        try:
            result = change(*given)
            while _written:
                note(*_written.pop())
        finally:
            _written.clear()
        return result

    return noted


if PLACE.exists():
    for module in (sql_store, model_ledger, effect_ledger):
        module.write_batch = _noting_rows(module.write_batch)  # type: ignore[attr-defined]  # a name that it imports
    SqliteBackend._change = _noting_commits(SqliteBackend._change)  # type: ignore[method-assign]  # noqa: SLF001

agent = Agent("front", model=scripted(step, loop=True), tools=[look])
