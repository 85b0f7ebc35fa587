"""The shop's log: one line for every call, committed with the effect; each key decided once."""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from tests.retail.data import Json
from tests.retail.shop import Shop, shop_path, task_of
from tests.retail.small import HOME, small_data

ROOT = Path(__file__).parents[2]
CANCEL: Json = {"order_id": "#G1", "reason": "no longer needed"}
MOVE: Json = {"user_id": "robin", **HOME, "city": "Troy"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.create(tmp_path / "t.db", small_data(), now_ms=iter(range(1, 1000)).__next__)


def outcomes(shop: Shop) -> list[str]:
    return [line.outcome for line in shop.log()]


def test_every_call_is_a_line(shop: Shop) -> None:
    shop.call("get_user_details", {"user_id": "robin"}, "t/1/0")
    shop.call("cancel_pending_order", CANCEL, "t/2/0")
    shop.call("cancel_pending_order", CANCEL, "t/3/0")
    log = shop.log()
    assert [(line.number, line.key, line.at_ms) for line in log] == [(1, "t/1/0", 1), (2, "t/2/0", 2), (3, "t/3/0", 3)]
    assert outcomes(shop) == ["answered", "applied", "refused"]
    assert json.loads(log[1].arguments) == CANCEL
    assert log[1].result["status"] == "cancelled"
    assert "cancelled, not pending" in log[2].result


def test_a_repeated_key_is_logged_and_not_applied(shop: Shop) -> None:
    first = shop.call("cancel_pending_order", CANCEL, "t/1/0")
    after = shop.final_state()
    assert shop.call("cancel_pending_order", CANCEL, "t/1/0") == first
    assert shop.final_state() == after
    assert outcomes(shop) == ["applied", "repeated"]


def test_a_repeated_key_does_not_undo_what_came_later(shop: Shop) -> None:
    shop.call("modify_user_address", MOVE, "t/1/0")
    shop.call("modify_user_address", {**MOVE, "city": "Lima"}, "t/2/0")
    assert shop.call("modify_user_address", MOVE, "t/1/0").result["address"]["city"] == "Troy"
    assert json.loads(shop.final_state())["users"]["robin"]["address"]["city"] == "Lima"


def test_a_refusal_is_remembered_under_its_key(shop: Shop) -> None:
    wrong = {**CANCEL, "order_id": "#D1"}
    first = shop.call("cancel_pending_order", wrong, "t/1/0")
    assert shop.call("cancel_pending_order", wrong, "t/1/0") == first
    assert outcomes(shop) == ["refused", "repeated"]


def test_a_reading_call_is_answered_each_time_with_what_is_true_then(shop: Shop) -> None:
    read = {"user_id": "robin"}
    before = shop.call("get_user_details", read, "t/1/0").result
    shop.call("modify_user_address", MOVE, "t/2/0")
    assert shop.call("get_user_details", read, "t/1/0").result != before
    assert outcomes(shop) == ["answered", "applied", "answered"]


def test_a_key_belongs_to_one_call(shop: Shop) -> None:
    shop.call("cancel_pending_order", CANCEL, "t/1/0")
    assert "another call" in shop.call("cancel_pending_order", {**CANCEL, "order_id": "#P1"}, "t/1/0").result
    assert "another call" in shop.call("modify_user_address", MOVE, "t/1/0").result
    assert outcomes(shop) == ["applied", "refused_reuse", "refused_reuse"]


def test_find_returns_what_happened(shop: Shop) -> None:
    answer = shop.call("cancel_pending_order", CANCEL, "t/1/0")
    finding = shop.find("t/1/0")
    assert finding.happened
    assert finding.result == answer.result
    assert outcomes(shop) == ["applied"]


def test_find_closes_a_key_that_it_does_not_know(shop: Shop) -> None:
    before = shop.final_state()
    assert not shop.find("t/1/0").happened
    assert not shop.find("t/1/0").happened
    late = shop.call("cancel_pending_order", CANCEL, "t/1/0")
    assert (late.ok, late.result) == (False, "The key t/1/0 is closed.")
    assert shop.final_state() == before
    assert outcomes(shop) == ["closed", "refused_late"]
    assert shop.call("cancel_pending_order", CANCEL, "t/1/0/2").ok


def test_a_refused_call_did_not_happen(shop: Shop) -> None:
    shop.call("cancel_pending_order", {**CANCEL, "order_id": "#D1"}, "t/1/0")
    assert not shop.find("t/1/0").happened


def test_effect_and_line_are_one_transaction(shop: Shop) -> None:
    before = shop.final_state()
    with closing(sqlite3.connect(shop.path)) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        connection.commit()
    with pytest.raises(sqlite3.IntegrityError, match="disk full"):
        shop.call("cancel_pending_order", CANCEL, "t/1/0")
    assert (shop.final_state(), shop.log()) == (before, [])


@pytest.mark.parametrize("tried", range(5))
def test_one_of_many_at_once_applies(tmp_path: Path, tried: int) -> None:
    shop = Shop.create(tmp_path / f"{tried}.db", small_data())
    start = Barrier(6)

    def call(at: int) -> None:
        start.wait()
        if at == 0:
            shop.find("t/1/0")
        else:
            Shop(shop.path).call("cancel_pending_order", CANCEL, "t/1/0")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(call, range(6)))
    seen = Counter(outcomes(shop))
    order = json.loads(shop.final_state())["orders"]["#G1"]
    if seen["closed"]:
        assert seen == {"closed": 1, "refused_late": 5}
        assert order["status"] == "pending"
    else:
        assert seen == {"applied": 1, "repeated": 4}
        assert len(order["payment_history"]) == 2


def test_other_processes_see_one_shop(shop: Shop) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.retail.shop import Shop;"
        "shop = Shop(Path(sys.argv[1]));"
        "[shop.call('modify_user_address', {'user_id': 'robin', 'address1': str(at), 'address2': '', 'city': 'Troy',"
        " 'state': 'OH', 'country': 'USA', 'zip': '1'}, f't/{sys.argv[2]}/{at}') for at in range(20)]"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(shop.path), str(turn)], cwd=ROOT) for turn in (1, 2)
    ]
    assert [child.wait(30) for child in children] == [0, 0]
    assert outcomes(shop) == ["applied"] * 40
    assert len({line.key for line in shop.log()}) == 40


def test_arrivals_tell_which_calls_are_open(shop: Shop) -> None:
    first, second = shop.arrive("cancel_pending_order", "t/1/0"), shop.arrive("get_user_details", "t/1/1")
    shop.leave(first)
    assert [(a.key, a.left_ms is None) for a in shop.arrivals()] == [("t/1/0", False), ("t/1/1", True)]
    shop.leave(second)
    assert all(arrival.left_ms for arrival in shop.arrivals())


def test_a_missing_shop_is_not_made_anew(tmp_path: Path, shop: Shop) -> None:
    with pytest.raises(FileNotFoundError, match="no shop at"):
        Shop(tmp_path / "none.db")
    with pytest.raises(FileExistsError):
        Shop.create(shop.path, small_data())


def test_keys_and_tasks_name_their_shop(tmp_path: Path) -> None:
    assert task_of("task-1/3/0/2") == "task-1"
    assert shop_path(tmp_path, "task-1") == tmp_path / "task-1.db"
    for bad in ("", "../x", "a/b", ".."):
        with pytest.raises(ValueError, match="task_id"):
            shop_path(tmp_path, bad)
