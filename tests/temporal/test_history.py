"""Two witnesses of every attempt, the event log and Temporal's history, say the same."""

import pytest

from perdure import Call, tool
from perdure.core.agent import RetryPolicy
from perdure.core.attempts import AttemptRow, attempts_from_log
from perdure.core.errors import TaskNotFound
from perdure.core.ports import Store
from perdure.temporal.history import attempts, read_history
from perdure.testing import call, fail, say
from tests.temporal.bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="session")


@tool(effect="read", retry=RetryPolicy(attempts_max=3, first_ms=1))
async def look_up(word: str, call: Call) -> str:
    """Look a word up; the first attempt at each call fails."""
    if call.attempt == 1:
        raise RuntimeError("the dictionary is closed")
    return f"meaning of {word}"


LOOK = call("look_up", {"word": "dusk"})


async def from_log(store: Store, task_id: str) -> tuple[AttemptRow, ...]:
    rows = [stored.event for stored in await store.events_after(task_id, 0, 500)]
    return attempts_from_log(rows, await store.model_calls(task_id), await store.effects(task_id))


def told(rows: tuple[AttemptRow, ...]) -> list[tuple[object, ...]]:
    calls = [row for row in rows if row.turn]
    return [(r.activity, r.turn, r.index, r.tool, r.key, r.attempt, r.outcome, r.worker) for r in calls]


async def test_both_witnesses_agree_over_retries_and_several_histories(bench: Bench) -> None:
    answer = say("done", failure=fail("busy", retryable=True), failures=1)
    agent = bench.agent(*([LOOK] * 6), answer, tools=[look_up], model_retry=RetryPolicy(attempts_max=3, first_ms=1))
    async with bench.app(agent) as app:
        task = app.task(await bench.start(agent, history_events_max=60))
        assert await task.result() == "done"
        await bench.client.get_workflow_handle(task.id).result()  # its last write has come back as well
        logged = await from_log(app.store, task.id)
        history = await read_history(bench.client, task.id)
    assert told(logged) == told(history.attempts)
    assert history.runs > 1
    assert history.attempts == await attempts(bench.client, task.id)
    assert not history.timers
    tries = [(row.attempt, row.outcome) for row in logged if row.activity == "invoke_tool"]
    assert tries == [(1, "failed"), (2, "completed")] * 6
    assert [row.outcome for row in logged if row.turn == 7] == ["failed", "completed"]
    assert [row for row in history.attempts if row.outcome == "open"] == []
    assert [row for row in history.attempts if not row.worker and row.outcome != "cancelled"] == []
    assert {row.activity for row in history.attempts if not row.turn} >= {"intake", "persist"}
    failed = [row for row in history.attempts if row.outcome == "failed"]
    assert "the dictionary is closed" in failed[0].problem


async def test_a_task_that_temporal_does_not_know_is_not_found(bench: Bench) -> None:
    with pytest.raises(TaskNotFound):
        await attempts(bench.client, "t-nowhere")
