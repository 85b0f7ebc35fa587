"""The judge finds each kind of difference, and nothing where there is none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.retail.data import Json, Task
from tests.retail.judge import Direct, applied_writes, direct, judge
from tests.retail.shop import Shop
from tests.retail.small import HOME, small_data

CANCEL: Json = {"order_id": "#G1", "reason": "no longer needed"}
TOO_LATE: Json = {"order_id": "#D1", "reason": "no longer needed"}
MOVE: Json = {"user_id": "robin", **HOME, "city": "Troy"}
ACTIONS = (
    ("get_user_details", {"user_id": "robin"}),
    ("modify_user_address", MOVE),
    ("cancel_pending_order", CANCEL),
    ("cancel_pending_order", TOO_LATE),
)
TASK = Task(id=1, user_id="robin", request="Cancel, please.", actions=ACTIONS)


@pytest.fixture
def expected(tmp_path: Path) -> Direct:
    return direct(TASK, small_data(), tmp_path / "direct.db")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.create(tmp_path / "t.db", small_data())


def run(shop: Shop, leave_out: int | None = None) -> None:
    for at, (tool, arguments) in enumerate(ACTIONS):
        if at != leave_out:
            shop.call(tool, arguments, f"t/{at}/0")


def test_direct_execution_is_the_measure(expected: Direct, shop: Shop) -> None:
    run(shop)
    assert judge(shop, expected) == []
    assert [answer.ok for answer in expected.answers] == [True, True, True, False]
    assert applied_writes(shop) == expected.applied
    assert expected.applied.total() == 2


def test_what_recovery_may_do_is_no_difference(expected: Direct, shop: Shop) -> None:
    shop.find("t/2/0")
    run(shop)  # The first cancellation comes late, under a closed key, and begins anew under the next.
    shop.call("cancel_pending_order", CANCEL, "t/2/0/2")
    shop.call("modify_user_address", MOVE, "t/1/0")
    shop.find("t/3/0")
    shop.call("cancel_pending_order", TOO_LATE, "t/3/0/2")
    assert judge(shop, expected) == []


def once_again_with_its_key(shop: Shop) -> None:
    run(shop)
    shop.call("cancel_pending_order", CANCEL, "t/2/0")


def once_again_with_another_key(shop: Shop) -> None:
    run(shop)
    shop.call("cancel_pending_order", CANCEL, "t/9/0")


def an_extra_write(shop: Shop) -> None:
    run(shop)
    shop.call("modify_user_address", MOVE, "t/9/0")


def a_key_used_twice(shop: Shop) -> None:
    run(shop)
    shop.call("modify_user_address", {**MOVE, "city": "Lima"}, "t/1/0")


def a_write_left_out(shop: Shop) -> None:
    run(shop, leave_out=2)


def a_refused_call_left_out(shop: Shop) -> None:
    run(shop, leave_out=3)


def another_order_of_writes(shop: Shop) -> None:
    shop.call("modify_user_address", {**MOVE, "city": "Lima"}, "t/9/0")
    run(shop)


WRONG: list[tuple[Callable[[Shop], None], str]] = [
    (once_again_with_its_key, "came again under the same key"),
    (once_again_with_another_key, "was refused, which direct execution did not see"),
    (an_extra_write, "applied 2 times, not 1"),
    (a_key_used_twice, "under the key of another call"),
    (a_write_left_out, "applied 0 times, not 1"),
    (a_write_left_out, "orders #G1: status is 'pending', not 'cancelled'"),
    (a_refused_call_left_out, "never came"),
    (another_order_of_writes, "applied 1 times, not 0"),
]


@pytest.mark.parametrize(("play", "words"), WRONG)
def test_each_kind_of_difference_is_found(
    expected: Direct, shop: Shop, play: Callable[[Shop], None], words: str
) -> None:
    play(shop)
    assert any(words in difference for difference in judge(shop, expected)), judge(shop, expected)
