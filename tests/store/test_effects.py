"""The effect ledger: what may begin, first outcome wins, fences (P3, P4, P9)."""

import pytest

from perdure.core.effects import Late
from perdure.core.errors import Fenced, InvalidInput, KeyReused, StoreBehind
from perdure.core.ports import EffectAttemptRow
from perdure.store import SqlStore
from tests.store.building import batch, new_task, numbers, request, row, status, tool_entry


async def test_a_once_call_is_begun_once_and_then_in_doubt(store: SqlStore) -> None:
    task = await new_task(store)
    first = await store.begin_effect(batch(task, row(2)), request(task), 200)
    assert (first.verdict, first.attempts) == ("begin", (1,))
    again = await store.begin_effect(batch(task, row(2)), request(task), 210)
    later = await store.begin_effect(batch(task, row(3)), request(task, attempt=2, worker="worker-2"), 220)
    assert (again.verdict, later.verdict, later.attempts) == ("in_doubt", "in_doubt", (1,))
    (effect,) = await store.effects(task)
    assert effect.outcome == "open"
    assert effect.begun == (EffectAttemptRow(attempt=1, worker="worker-1", begun_at_ms=200),)
    assert await numbers(store, task) == [1, 2, 3]


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_a_repeatable_call_begins_again_under_its_key(store: SqlStore, effect: str) -> None:
    task = await new_task(store)
    for attempt in (1, 2, 2, 3):
        ledgered = await store.begin_effect(batch(task), request(task, effect=effect, attempt=attempt), 200)
        assert ledgered.verdict == "begin"
    with pytest.raises(Fenced, match=r"P3: attempt 3 .* began before attempt 1"):
        await store.begin_effect(batch(task, row(2)), request(task, effect=effect, attempt=1), 300)
    (stored,) = await store.effects(task)
    assert [begun.attempt for begun in stored.begun] == [1, 2, 3]
    assert await numbers(store, task) == [1]


async def test_the_first_result_wins_and_is_returned_without_calling(store: SqlStore) -> None:
    task = await new_task(store)
    asked = request(task)
    await store.begin_effect(batch(task), asked, 200)
    first = await store.finish_effect(asked.key, 1, tool_entry("first"), 210)
    second = await store.finish_effect(asked.key, 1, tool_entry("second"), 220)
    found = await store.begin_effect(batch(task, row(2)), request(task, attempt=2), 230)
    closed = await store.close_effect(asked.key, 240)
    assert first == second == found == closed
    assert (found.verdict, found.entry, found.attempts) == ("done", tool_entry("first"), (1,))
    assert await numbers(store, task) == [1, 2]
    (stored,) = await store.effects(task)
    assert (stored.outcome, stored.status, stored.done_at_ms, stored.late) == ("done", "ok", 210, False)


async def test_an_error_result_is_a_result(store: SqlStore) -> None:
    task = await new_task(store)
    asked = request(task)
    await store.begin_effect(batch(task), asked, 200)
    await store.finish_effect(asked.key, 1, tool_entry("declined", status="error"), 210)
    (stored,) = await store.effects(task)
    assert (stored.outcome, stored.status) == ("done", "error")


async def test_a_closed_key_keeps_refusing_and_its_late_result_is_seen(store: SqlStore) -> None:
    task = await new_task(store)
    asked = request(task)
    await store.begin_effect(batch(task), asked, 200)
    assert (await store.close_effect(asked.key, 210)).verdict == "closed"
    assert (await store.close_effect(asked.key, 220)).verdict == "closed"
    assert (await store.begin_effect(batch(task), request(task, attempt=2), 230)).verdict == "closed"
    next_key = request(task, generation=2, attempt=2)
    assert (await store.begin_effect(batch(task), next_key, 240)).verdict == "begin"
    late = await store.finish_effect(asked.key, 1, tool_entry("late"), 250)
    assert (late.verdict, late.entry) == ("closed", None)
    assert (await store.finish_effect(asked.key, 1, tool_entry("later"), 260)).verdict == "closed"
    old, new = await store.effects(task)
    assert (old.key, old.outcome, old.late, old.status) == (asked.key, "closed", True, None)
    assert (new.key, new.outcome, new.late) == (next_key.key, "open", False)


async def test_late_results_are_found_by_their_keys(store: SqlStore) -> None:
    task, other = await new_task(store), await new_task(store)
    asked = [request(task, turn=turn) for turn in (1, 2, 3, 4)]
    keys = tuple(each.key for each in asked)
    for each in asked:
        await store.begin_effect(batch(task), each, 200)
    assert await store.late_results(task, keys) == ()
    await store.finish_effect(keys[0], 1, tool_entry("late"), 210)
    await store.close_effect(keys[1], 210)
    await store.finish_effect(keys[1], 1, tool_entry("too late", status="error"), 220)
    await store.finish_effect(keys[3], 1, tool_entry("not asked for"), 220)
    assert await store.late_results(task, keys[:3]) == (
        Late(key=keys[0], status="ok", text="late"),
        Late(key=keys[1], status="error", text="too late"),
    )
    assert await store.late_results(other, keys) == ()
    assert await store.late_results(task, ()) == ()


async def test_the_ledger_lists_generations_in_their_order(store: SqlStore) -> None:
    task = await new_task(store)
    for turn in (2, 1):
        for generation in range(1, 12):
            asked = request(task, turn=turn, generation=generation)
            await store.begin_effect(batch(task), asked, 1000 - generation)
            await store.close_effect(asked.key, 2000)
    keys = [effect.key for effect in await store.effects(task)]
    assert keys == [request(task, turn=turn, generation=g).key for turn in (1, 2) for g in range(1, 12)]


async def test_a_key_with_other_arguments_is_refused(store: SqlStore) -> None:
    task, other = await new_task(store), await new_task(store)
    await store.begin_effect(batch(task), request(task), 200)
    with pytest.raises(KeyReused):
        await store.begin_effect(batch(task, row(2)), request(task, request_digest="else"), 210)
    with pytest.raises(KeyReused, match="was begun by task"):
        await store.begin_effect(batch(other), request(other, key=request(task).key), 210)
    assert await numbers(store, task) == [1]


async def test_a_call_left_open_is_resolved_and_never_begun(store: SqlStore) -> None:
    task = await new_task(store)
    unbegun, begun, done = (request(task, turn=turn, resolve_only=True) for turn in (1, 2, 3))
    for asked in (begun, done):
        await store.begin_effect(batch(task), asked.model_copy(update={"resolve_only": False}), 200)
    await store.finish_effect(done.key, 1, tool_entry(), 210)
    await store.write(batch(task, fence=1), 220)
    for _ in range(2):
        assert (await store.begin_effect(batch(task), unbegun, 230)).verdict == "not_begun"
        assert (await store.begin_effect(batch(task), begun, 230)).verdict == "in_doubt"
        assert (await store.begin_effect(batch(task), done, 230)).entry == tool_entry()
    assert [effect.outcome for effect in await store.effects(task)] == ["closed", "open", "done"]
    late = unbegun.model_copy(update={"resolve_only": False, "run": 2, "attempt": 2})
    assert (await store.begin_effect(batch(task), late, 240)).verdict == "closed"


async def test_a_fence_refuses_its_runs_and_only_grows(store: SqlStore) -> None:
    task = await new_task(store)
    await store.write(batch(task, fence=2), 200)
    await store.write(batch(task, fence=1), 210)
    for run in (1, 2):
        with pytest.raises(Fenced, match=f"P9: run {run}"):
            await store.begin_effect(batch(task, row(2), messages=()), request(task, run=run), 220)
    assert await numbers(store, task) == [1]
    assert await store.effects(task) == ()
    assert (await store.begin_effect(batch(task, row(2)), request(task, run=3), 230)).verdict == "begin"


async def test_a_fence_stands_in_the_transaction_that_brings_it(store: SqlStore) -> None:
    task = await new_task(store)
    with pytest.raises(Fenced):
        await store.begin_effect(batch(task, fence=1), request(task, run=1), 220)
    assert (await store.begin_effect(batch(task), request(task, run=1), 230)).verdict == "begin"


async def test_an_ended_task_begins_nothing(store: SqlStore) -> None:
    task = await new_task(store)
    begun = request(task)
    await store.begin_effect(batch(task), begun, 200)
    await store.write(batch(task, status(2, "canceled")), 210)
    with pytest.raises(Fenced, match=r"P5: task .* is canceled"):
        await store.begin_effect(batch(task), request(task, turn=2, run=9), 220)
    assert (await store.finish_effect(begun.key, 1, tool_entry(), 230)).verdict == "done"


async def test_an_outcome_without_a_ledger_row_means_a_store_behind(store: SqlStore) -> None:
    task = await new_task(store)
    with pytest.raises(StoreBehind):
        await store.finish_effect(f"{task}/1/0", 1, tool_entry(), 200)
    with pytest.raises(StoreBehind):
        await store.close_effect(f"{task}/1/0", 200)


async def test_a_request_of_another_task_than_its_batch_is_refused(store: SqlStore) -> None:
    task, other = await new_task(store), await new_task(store)
    with pytest.raises(InvalidInput, match=r"request.task_id"):
        await store.begin_effect(batch(task), request(other), 200)
