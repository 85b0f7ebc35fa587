"""Whom a task is shared with, as it is kept and listed."""

import pytest

from perdure.core.errors import StoreAhead
from perdure.core.log import TaskHeader
from perdure.core.ports import TaskQuery
from perdure.store import SqlStore
from tests.store.building import batch, header, row

SHARED = header("shared").model_copy(update={"shared_with": ("bob", "jwt:ünal")})


async def seen_by(store: SqlStore, principal: str) -> list[str]:
    page = await store.find_tasks(TaskQuery(principal=principal, agent_id="shop", limit=10))
    assert page.total == len(page.rows)
    return [each.header.task_id for each in page.rows]


async def test_a_task_is_listed_to_its_owner_and_to_those_it_is_shared_with(store: SqlStore) -> None:
    await store.write(batch("own", row(1), header=header("own", "other", "bob")), 50)
    await store.write(batch("shared", row(1), header=SHARED), 100)
    await store.write(batch("shared", row(2), header=SHARED), 100)
    assert await seen_by(store, "ada") == ["shared"]
    assert await seen_by(store, "bob") == ["shared", "own"]
    assert await seen_by(store, "jwt:ünal") == ["shared"]
    assert await seen_by(store, "eve") == []
    found = await store.task("shared")
    assert found is not None
    assert found.header == SHARED


async def test_what_a_task_is_shared_with_never_changes(store: SqlStore) -> None:
    await store.write(batch("shared", row(1), header=SHARED), 100)
    for other in ((), ("bob",), ("bob", "jwt:ünal", "eve")):
        with pytest.raises(StoreAhead, match="sharing"):
            await store.write(batch("shared", row(2), header=SHARED.model_copy(update={"shared_with": other})), 100)
    assert await seen_by(store, "eve") == []


def test_a_header_that_is_shared_with_nobody_is_written_as_it_was_before() -> None:
    before = {"task_id": "t", "context_id": "c", "agent_id": "shop", "principal": "ada"}
    assert TaskHeader.model_validate(before).model_dump(mode="json") == before
    assert TaskHeader.model_validate_json(SHARED.model_dump_json()) == SHARED
