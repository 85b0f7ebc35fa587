"""The demo's outside world: what it does, what it refuses, and a log that tells every call."""

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from pathlib import Path
from threading import Barrier

import pytest

from perdure.cli.demo.call_log import WorldRefused
from perdure.cli.demo.world import BLENDER_ORDER, CUSTOMER, KETTLE_ORDER, POLICIES, World, tracking_number

TODAY = date(2031, 3, 12)
HOME = "1 Elm Street, Lima"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.create(tmp_path / "world.db", TODAY, now_ms=iter(range(1, 1000)).__next__)


def outcomes(world: World) -> list[str]:
    return [call.outcome for call in world.calls()]


def test_a_customer_has_two_open_orders(world: World) -> None:
    blender, kettle = world.list_open_orders(CUSTOMER.upper(), "t/1/0")
    assert (blender["order_id"], blender["item"], blender["status"]) == (BLENDER_ORDER, "blender", "delivered")
    assert (kettle["order_id"], kettle["item"], kettle["status"]) == (KETTLE_ORDER, "kettle", "in transit")
    assert (TODAY - date.fromisoformat(blender["delivered_on"])).days == 10
    assert world.list_open_orders("Nobody") == []
    assert world.get_order(BLENDER_ORDER, "t/2/0") == blender
    assert outcomes(world) == ["answered"] * 3


def test_policies_are_looked_up_by_topic(world: World) -> None:
    assert "14 days" in world.look_up_policy("Damaged items")
    assert "photo" in world.look_up_policy("refunds")
    assert "no photo" in world.look_up_policy("replacement")
    assert world.look_up_policy("what now?") == " ".join(POLICIES.values())


def test_a_replacement_is_shipped_once_for_one_key(world: World) -> None:
    number = world.ship_replacement(BLENDER_ORDER, HOME, "t/3/0")
    assert number == tracking_number("t/3/0")
    assert world.ship_replacement(BLENDER_ORDER, HOME, "t/3/0") == number
    assert world.snapshot()["shipments"] == [
        {"order_id": BLENDER_ORDER, "item": "blender", "address": HOME, "tracking_number": number}
    ]
    assert outcomes(world) == ["applied", "repeated"]


def test_the_world_does_not_hide_a_second_call_under_a_new_key(world: World) -> None:
    world.ship_replacement(BLENDER_ORDER, HOME, "t/3/0")
    world.ship_replacement(BLENDER_ORDER, HOME, "t/4/0")
    assert len({shipment["tracking_number"] for shipment in world.snapshot()["shipments"]}) == 2


def test_a_refund_needs_a_photo(world: World) -> None:
    with pytest.raises(WorldRefused, match="needs a photo"):
        world.refund(BLENDER_ORDER, 89.0, "t/1/0")
    world.receive_photo(BLENDER_ORDER)
    with pytest.raises(WorldRefused, match="needs a photo"):
        world.refund(BLENDER_ORDER, 89.0, "t/1/0")
    assert world.snapshot()["refunds"] == []
    assert "$89.00" in world.refund(BLENDER_ORDER, 89.0, "t/2/0")
    assert world.snapshot()["refunds"] == [{"order_id": BLENDER_ORDER, "amount": 89.0}]
    assert outcomes(world) == ["refused", "repeated", "applied"]


def test_reading_and_writing_one_order_leaves_the_other_untouched(world: World) -> None:
    before = world.snapshot()
    world.ship_replacement(BLENDER_ORDER, HOME, "t/3/0")
    assert world.snapshot()["orders"] == before["orders"]


REFUSALS: list[tuple[Callable[[World], object], str]] = [
    (lambda world: world.get_order("A-9", "t/1/0"), "no order A-9"),
    (lambda world: world.ship_replacement("A-9", HOME, "t/1/0"), "no order A-9"),
    (lambda world: world.ship_replacement(KETTLE_ORDER, HOME, "t/1/0"), "in transit"),
    (lambda world: world.ship_replacement(BLENDER_ORDER, " ", "t/1/0"), "needs the address"),
    (lambda world: world.refund(KETTLE_ORDER, 1.0, "t/1/0"), "in transit"),
    (lambda world: world.refund(BLENDER_ORDER, 0.0, "t/1/0"), "cannot be refunded"),
    (lambda world: world.refund(BLENDER_ORDER, 89.01, "t/1/0"), "cannot be refunded"),
    (lambda world: world.refund(BLENDER_ORDER, float("nan"), "t/1/0"), "cannot be refunded"),
]


@pytest.mark.parametrize(("call", "words"), REFUSALS)
def test_a_wrong_call_is_refused_logged_and_changes_nothing(
    world: World, call: Callable[[World], object], words: str
) -> None:
    world.receive_photo(BLENDER_ORDER)
    before = world.snapshot()
    with pytest.raises(WorldRefused, match=words):
        call(world)
    assert world.snapshot() == before
    assert outcomes(world) == ["refused"]


def test_after_the_rule_s_days_a_complaint_is_refused(tmp_path: Path) -> None:
    world = World.create(tmp_path / "later.db", TODAY)
    with closing(sqlite3.connect(world.path)) as connection:
        connection.execute("UPDATE facts SET value = '2031-03-17'")
        connection.commit()
    with pytest.raises(WorldRefused, match="more than 14 days"):
        world.ship_replacement(BLENDER_ORDER, HOME, "t/1/0")
    assert [order["order_id"] for order in world.list_open_orders(CUSTOMER)] == [KETTLE_ORDER]


def test_every_call_is_a_line_with_its_key(world: World) -> None:
    world.get_order(BLENDER_ORDER, "t/1/0")
    world.get_order(BLENDER_ORDER, "t/1/0")
    world.list_open_orders(CUSTOMER)
    world.ship_replacement(BLENDER_ORDER, HOME, "t/2/0")
    assert [(call.number, call.tool, call.key, call.at_ms, call.outcome) for call in world.calls()] == [
        (1, "get_order", "t/1/0", 1, "answered"),
        (2, "get_order", "t/1/0", 2, "answered"),
        (3, "list_open_orders", "", 3, "answered"),
        (4, "ship_replacement", "t/2/0", 4, "applied"),
    ]
    shipped = world.calls()[-1]
    assert shipped.arguments == {"order_id": BLENDER_ORDER, "address": HOME}
    assert shipped.result == tracking_number("t/2/0")


def test_find_tells_what_happened_and_closes_what_did_not(world: World) -> None:
    number = world.ship_replacement(BLENDER_ORDER, HOME, "t/1/0")
    assert (world.find("t/1/0").happened, world.find("t/1/0").result) == (True, number)
    assert not world.find("t/2/0").happened
    assert not world.find("t/2/0").happened
    with pytest.raises(WorldRefused, match="closed"):
        world.ship_replacement(BLENDER_ORDER, HOME, "t/2/0")
    with pytest.raises(WorldRefused, match="no order"):
        world.ship_replacement("A-9", HOME, "t/3/0")
    assert not world.find("t/3/0").happened
    assert outcomes(world) == ["applied", "closed", "refused_late", "refused"]
    assert len(world.snapshot()["shipments"]) == 1


def test_a_key_belongs_to_one_call_and_writing_needs_one(world: World) -> None:
    world.ship_replacement(BLENDER_ORDER, HOME, "t/1/0")
    with pytest.raises(WorldRefused, match="another call"):
        world.ship_replacement(BLENDER_ORDER, "2 Oak Street", "t/1/0")
    with pytest.raises(ValueError, match="needs an idempotency key"):
        world.ship_replacement(BLENDER_ORDER, HOME, "")
    with pytest.raises(ValueError, match="cannot be found"):
        world.find("")
    assert outcomes(world) == ["applied", "refused_reuse"]


def test_effect_and_line_are_one_transaction(world: World) -> None:
    with closing(sqlite3.connect(world.path)) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        connection.commit()
    with pytest.raises(sqlite3.IntegrityError, match="disk full"):
        world.ship_replacement(BLENDER_ORDER, HOME, "t/1/0")
    assert world.snapshot()["shipments"] == []


@pytest.mark.parametrize("tried", range(5))
def test_one_of_many_at_once_ships(tmp_path: Path, tried: int) -> None:
    world = World.create(tmp_path / f"{tried}.db", TODAY)
    start = Barrier(6)

    def call(at: int) -> object:
        start.wait()
        if at == 0:
            return world.find("t/1/0").happened
        try:
            return World(world.path).ship_replacement(BLENDER_ORDER, HOME, "t/1/0")
        except WorldRefused:
            return None

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(call, range(6)))
    seen, shipped = Counter(outcomes(world)), len(world.snapshot()["shipments"])
    if seen["closed"]:
        assert (seen, shipped) == ({"closed": 1, "refused_late": 5}, 0)
    else:
        assert (seen, shipped) == ({"applied": 1, "repeated": 4}, 1)


def test_another_process_sees_the_same_world(world: World) -> None:
    script = (
        "import sys; from pathlib import Path; from perdure.cli.demo.world import World;"
        "print(World(Path(sys.argv[1])).ship_replacement('A-1001', '1 Elm Street', 't/1/0'))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(world.path)], capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout.strip() == world.find("t/1/0").result


def test_a_missing_world_is_not_made_anew(tmp_path: Path, world: World) -> None:
    with pytest.raises(FileNotFoundError, match="no demo world"):
        World(tmp_path / "none.db")
    with pytest.raises(FileExistsError):
        World.create(world.path, TODAY)
    assert world.path.stat().st_mode & 0o777 == 0o600
