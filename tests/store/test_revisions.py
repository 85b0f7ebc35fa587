"""What each kind of change moves: a task by any write beneath it, a context only by a new task in it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from perdure.core.errors import Fenced
from perdure.core.pushes import Lease, PushConfig
from perdure.store import SqlStore
from tests.store.building import batch, header, message, new_task, reply, request, row, status, tool_entry

Change = Callable[[SqlStore], Awaitable[object]]


async def _fenced(store: SqlStore) -> None:
    with pytest.raises(Fenced):
        await store.begin_effect(batch("one", row(6)), request("one", turn=5, run=1), 900)


def _effect(turn: int, attempt: int = 1) -> Change:
    asked = request("one", turn=turn, effect="idempotent", attempt=attempt, run=9)
    return lambda store: store.begin_effect(batch("one"), asked, 900)


TASK, NOTHING, BOTH = {"one"}, set[str](), {"one", "context"}

PUSH = PushConfig(task_id="one", config_id="mine", key_id="key-1", sealed=b"sealed")

CHANGES: list[tuple[str, Change, set[str]]] = [
    ("a row", lambda store: store.write(batch("one", row(2)), 900), TASK),
    ("the row again", lambda store: store.write(batch("one", row(2)), 900), NOTHING),
    ("a row beyond a gap", lambda store: store.write(batch("one", row(5)), 900), TASK),
    ("a status", lambda store: store.write(batch("one", status(3, "working")), 900), TASK),
    ("a message", lambda store: store.write(batch("one", messages=(message("m"),)), 900), TASK),
    ("the message again", lambda store: store.write(batch("one", messages=(message("m"),)), 900), NOTHING),
    ("a fence", lambda store: store.write(batch("one", fence=3), 900), TASK),
    ("a lower fence", lambda store: store.write(batch("one", fence=2), 900), NOTHING),
    ("a refused call", _fenced, NOTHING),
    ("a snapshot", lambda store: store.write(batch("one", snapshot={"last_number": 3}), 900), TASK),
    ("the snapshot again", lambda store: store.write(batch("one", snapshot={"last_number": 3}), 900), NOTHING),
    ("an older snapshot", lambda store: store.write(batch("one", snapshot={"last_number": 2}), 900), NOTHING),
    ("a model call", lambda store: store.begin_model(batch("one"), 9, 1, 1, "w", 900), TASK),
    ("its reply", lambda store: store.record_reply("one", 1, 1, reply(), 900), TASK),
    ("another reply", lambda store: store.record_reply("one", 1, 2, reply("other"), 900), NOTHING),
    ("a call with a reply", lambda store: store.begin_model(batch("one"), 9, 1, 2, "w", 900), NOTHING),
    ("a tool call", _effect(1), TASK),
    ("the same attempt", _effect(1), NOTHING),
    ("the next attempt", _effect(1, attempt=2), TASK),
    ("its result", lambda store: store.finish_effect("one/1/0", 2, tool_entry(), 900), TASK),
    ("another result", lambda store: store.finish_effect("one/1/0", 1, tool_entry("other"), 900), NOTHING),
    ("a look at what is done", _effect(1, attempt=3), NOTHING),
    ("another tool call", _effect(2), TASK),
    ("closing its key", lambda store: store.close_effect("one/2/0", 900), TASK),
    ("closing it again", lambda store: store.close_effect("one/2/0", 900), NOTHING),
    ("a late result", lambda store: store.finish_effect("one/2/0", 1, tool_entry(), 900), TASK),
    ("a second late result", lambda store: store.finish_effect("one/2/0", 1, tool_entry("x"), 900), NOTHING),
    (
        "a call that never began",
        lambda store: store.begin_effect(batch("one"), request("one", turn=3, resolve_only=True), 900),
        TASK,
    ),
    ("the header again", lambda store: store.write(batch("one", header=header("one")), 900), NOTHING),
    ("its context again", lambda store: store.claim_context("context", "ada", 900), NOTHING),
    ("a context without tasks", lambda store: store.claim_context("unseen", "ada", 900), NOTHING),
    ("a look at what has ended", lambda store: store.ended_tasks("context", "ada", "shop", 9), NOTHING),
    ("a blob", lambda store: store.put_blob(b"bytes", "image/png"), NOTHING),
    ("a push configuration", lambda store: store.pushes.save(PUSH, header("one"), None, 900), TASK),
    ("a beat of who delivers", lambda store: store.pushes.beat("key-1", "w", Lease()), NOTHING),
    ("its end", lambda store: store.pushes.delete("one", "mine", 900), TASK),
    ("a new task in its context", new_task, {"context"}),
    ("a new task elsewhere", lambda store: new_task(store, "elsewhere"), NOTHING),
    ("an early clock", lambda store: store.write(batch("one", row(4)), 5), TASK),
]


@dataclass
class Stamps:
    revisions: dict[str, int]
    updated_at_ms: int


async def _stamps(store: SqlStore) -> Stamps:
    tasks = {task.header.task_id: task for task in await store.tasks(100)}
    contexts = {context.context_id: context.revision for context in await store.contexts(100)}
    revisions = {"one": tasks["one"].revision, "two": tasks["two"].revision, "context": contexts["context"]}
    return Stamps(revisions, tasks["one"].updated_at_ms)


async def test_each_change_moves_what_it_should_and_nothing_else(store: SqlStore) -> None:
    for task_id in ("one", "two"):
        await store.write(batch(task_id, row(1), header=header(task_id)), 100)
    at_ms = 100
    for name, change, moved in CHANGES:
        before = await _stamps(store)
        await change(store)
        after = await _stamps(store)
        newest = max(before.revisions.values())
        changed = {thing for thing, revision in after.revisions.items() if revision != before.revisions[thing]}
        assert changed == moved, name
        assert all(after.revisions[thing] > newest for thing in moved), name
        at_ms = 900 if "one" in moved else at_ms
        assert after.updated_at_ms == at_ms, name


async def test_a_first_write_moves_the_task_and_its_context_once(store: SqlStore) -> None:
    await store.write(batch("one", row(1), header=header("one")), 100)
    (task,), (context,) = await store.tasks(10), await store.contexts(10)
    assert (task.revision, task.created_at_ms, task.updated_at_ms) == (1, 100, 100)
    assert (context.revision, context.newest_task_revision, context.principal) == (1, 1, "ada")


async def test_lists_are_ordered_by_revision_and_paged(store: SqlStore) -> None:
    ids = [await new_task(store, f"context-{n % 2}") for n in range(5)]
    await store.write(batch(ids[1], row(2)), 1)  # an early clock does not matter
    listed = [task.header.task_id for task in await store.tasks(10)]
    assert listed == [ids[1], ids[4], ids[3], ids[2], ids[0]]
    first = await store.tasks(2)
    rest = await store.tasks(10, before_revision=first[-1].revision)
    assert [task.header.task_id for task in (*first, *rest)] == listed
    contexts = await store.contexts(10)
    assert [context.context_id for context in contexts] == ["context-1", "context-0"]
    assert [context.newest_task_revision for context in contexts] == [6, 5]
    assert [context.revision for context in contexts] == [4, 5]
    assert [context.context_id for context in await store.contexts(1)] == ["context-1"]
    assert await store.task("nowhere") is None


async def test_the_ended_tasks_of_a_context_are_listed_in_the_order_in_which_they_ended(store: SqlStore) -> None:
    """Whatever clocks say, and whatever is written beneath them later; open ones and others' are left out."""
    for at_ms, task_id in ((900, "first"), (800, "second"), (700, "third"), (600, "open")):
        await store.write(batch(task_id, row(1), header=header(task_id)), at_ms)
    for task_id in ("second", "first", "third"):
        await store.write(batch(task_id, status(2, "completed")), 500)
    await store.write(batch("gap", row(1), status(3, "completed"), header=header("gap")), 500)
    await store.write(batch("theirs", status(1, "completed"), header=header("theirs", "other", "bob")), 500)
    for _ in range(2):
        assert await store.ended_tasks("context", "ada", "shop", 9) == ("second", "first", "third")
        assert await store.ended_tasks("context", "ada", "shop", 2) == ("first", "third")
        before = await store.tasks(1)
        for task_id in ("first", "second"):  # what comes late, and a push configuration that goes
            kept = PushConfig(task_id=task_id, config_id="mine", key_id="key-1", sealed=b"sealed", next_at_ms=1)
            await store.pushes.save(kept, header(task_id), None, 500)
            await store.pushes.delete(task_id, "mine", 500)
        assert (await store.tasks(1))[0].revision > before[0].revision
    await store.write(batch("gap", row(2)), 500)
    assert await store.ended_tasks("context", "ada", "shop", 2) == ("third", "gap")
    assert await store.ended_tasks("context", "bob", "shop", 9) == ()
    assert await store.ended_tasks("context", "ada", "another agent", 9) == ()
