"""All forty requests execute directly, and the shop's data are reachable whole."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.retail.books import canonical
from tests.retail.data import Data, Task, conversation
from tests.retail.judge import direct, judge
from tests.retail.shop import READ_NAMES, RULES, Shop

pytestmark = pytest.mark.slow  # real processes, or all forty conversations at once

REFUSED = {
    "get_product_details": 6,  # by an id that is an item's, or none at all
    "find_user_id_by_email": 4,  # mistyped; a search by name follows
    "find_user_id_by_name_zip": 1,  # moved
    "return_delivered_order_items": 2,  # the refund is to go to a method that did not pay
}
"""Calls in the requests that are wrong for the data: part of each conversation, answered by a plain error."""


def test_a_shop_starts_with_all_the_data(data: Data, tmp_path: Path) -> None:
    shop = Shop.create(tmp_path / "t.db", data)
    assert json.loads(shop.final_state()) == data.documents
    assert shop.final_state() == canonical(data.documents)


def test_every_call_executes_and_only_wrong_ones_are_refused(
    data: Data, tasks: tuple[Task, ...], tmp_path: Path
) -> None:
    assert len(tasks) == 40
    refused: Counter[str] = Counter()
    for task in tasks:
        calls, last = conversation(task)
        assert last
        outcome = direct(task, data, tmp_path / f"{task.id}.db")
        assert len(outcome.answers) == len(calls) == len(task.actions)
        for (tool, _), answer in zip(calls, outcome.answers, strict=True):
            assert tool in RULES
            if not answer.ok:
                refused[tool] += 1
        writes = sum(tool not in READ_NAMES for tool, _ in calls)
        assert outcome.applied.total() + outcome.refused.total() == writes
        assert all(count == 1 for count in outcome.applied.values())
    assert refused == REFUSED


def test_a_second_execution_is_judged_right(data: Data, tasks: tuple[Task, ...], tmp_path: Path) -> None:
    for task in tasks[::8]:
        expected = direct(task, data, tmp_path / f"direct-{task.id}.db")
        shop = Shop.create(tmp_path / f"{task.id}.db", data)
        for at, (tool, arguments) in enumerate(conversation(task)[0]):
            shop.call(tool, arguments, f"{task.id}/{at}/0")
        assert judge(shop, expected) == []


def test_a_copy_of_the_calls_is_given_out(tasks: tuple[Task, ...]) -> None:
    task = next(task for task in tasks if task.actions)
    calls, _ = conversation(task)
    calls[0][1]["changed"] = True
    assert "changed" not in task.actions[0][1]
