"""What a call asks a person stands with its attempt, until the answer begins the next (P3)."""

import pytest

from perdure.core.effects import Answer, EffectRequest
from perdure.core.errors import Fenced
from perdure.store import SqlStore
from tests.store.building import batch, new_task, request, tool_entry


def answering(task: str, attempt: int, asked: str, effect: str = "once") -> EffectRequest:
    return request(task, attempt=attempt, effect=effect).model_copy(update={"answer": Answer(asked=asked, text="yes")})


@pytest.mark.parametrize("effect", ["read", "idempotent", "once"])
async def test_p3_the_next_attempt_begins_only_as_the_answer(store: SqlStore, effect: str) -> None:
    task = await new_task(store)
    first = request(task, effect=effect)
    await store.begin_effect(batch(task), first, 200)
    asked = await store.ask_effect(first.key, 1, "q1", 210)
    assert (asked.verdict, asked.asked) == ("asked", "q1")
    assert (await store.ask_effect(first.key, 1, "q1", 215)).verdict == "asked"
    again = await store.begin_effect(batch(task), request(task, effect=effect, attempt=2), 220)
    assert (again.verdict, again.asked, again.attempts) == ("asked", "q1", (1,))
    other = await store.begin_effect(batch(task), answering(task, 3, "q0", effect), 230)
    assert (other.verdict, other.asked) == ("asked", "q1")
    begun = await store.begin_effect(batch(task), answering(task, 4, "q1", effect), 240)
    assert (begun.verdict, begun.attempts) == ("begin", (1, 4))
    lost = await store.begin_effect(batch(task), answering(task, 5, "q1", effect), 250)
    assert lost.verdict == ("in_doubt" if effect == "once" else "begin")


async def test_p3_what_stands_already_wins_over_a_question(store: SqlStore) -> None:
    task = await new_task(store)
    first = request(task, effect="idempotent")
    await store.begin_effect(batch(task), first, 200)
    await store.begin_effect(batch(task), request(task, effect="idempotent", attempt=2), 210)
    with pytest.raises(Fenced, match=r"P3: attempt 2 .* began before attempt 1 asked"):
        await store.ask_effect(first.key, 1, "q1", 220)
    await store.finish_effect(first.key, 2, tool_entry("done"), 230)
    stands = await store.ask_effect(first.key, 2, "q1", 240)
    assert (stands.verdict, stands.entry) == ("done", tool_entry("done"))
    closed = request(task, turn=2)
    await store.begin_effect(batch(task), closed, 250)
    await store.close_effect(closed.key, 260)
    assert (await store.ask_effect(closed.key, 1, "q1", 270)).verdict == "closed"


async def test_p4_one_that_was_never_answered_is_closed_as_not_begun(store: SqlStore) -> None:
    task = await new_task(store)
    first = request(task)
    await store.begin_effect(batch(task), first, 200)
    await store.ask_effect(first.key, 1, "q1", 210)
    resolving = request(task, attempt=2).model_copy(update={"resolve_only": True})
    for at_ms in (220, 230):
        found = await store.begin_effect(batch(task), resolving, at_ms)
        assert (found.verdict, found.asked) == ("not_begun", "q1")
    assert (await store.begin_effect(batch(task), answering(task, 3, "q1"), 240)).verdict == "closed"
    (row,) = await store.effects(task)
    assert row.outcome == "closed"
