"""The verdict on a conversation finds each kind of fault, and none where there is none."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from perdure import TaskEvent
from perdure.core.content import ModelEntry, ModelReply, ToolEntry, ToolResult
from perdure.core.log import LogKind
from tests.retail.data import Json, Task
from tests.retail.figures import Times, figures
from tests.retail.judge import Direct, direct
from tests.retail.killing import Kill, open_at
from tests.retail.shop import Shop
from tests.retail.small import small_data
from tests.retail.verdict import Ended, faults

CANCEL: Json = {"order_id": "#G1", "reason": "no longer needed"}
TASK = Task(id=1, user_id="robin", request="Cancel, please.", actions=(("cancel_pending_order", CANCEL),))
LAST = "Done."
KEY = "t/1/0"


@pytest.fixture
def expected(tmp_path: Path) -> Direct:
    return direct(TASK, small_data(), tmp_path / "direct.db")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop.create(tmp_path / "t.db", small_data())
    shop.leave(shop.arrive("cancel_pending_order", KEY))
    shop.call("cancel_pending_order", CANCEL, KEY)
    return shop


@pytest.fixture
def ended(shop: Shop, expected: Direct) -> Ended:
    text = json.dumps(expected.answers[0].result)
    result = ToolResult(call_id="c", tool="cancel_pending_order", status="ok", text=text)
    events = (
        event(1, "message.promoted"),
        event(2, "model.answered", turn=1),
        replace(event(3, "tool.finished", turn=1, index=0), entries=(ToolEntry(result=result),)),
        replace(event(4, "model.answered", turn=2), entries=(ModelEntry(reply=ModelReply(text=LAST)),)),
        event(5, "run.ended", end="answered"),
        event(6, "task.status", state="completed"),
    )
    return Ended("t", 1, events, shop)


def event(number: int, kind: LogKind, turn: int = 0, **data: str | int) -> TaskEvent:
    return TaskEvent(number, kind, number * 1000, 1, turn, dict(data))


def with_event(ended: Ended, at: int, new: TaskEvent) -> Ended:
    return replace(ended, events=(*ended.events[:at], new, *ended.events[at + 1 :]))


def test_a_right_conversation_has_no_faults(ended: Ended, expected: Direct) -> None:
    assert faults(ended, expected, LAST) == []


def test_what_went_wrong_is_named(ended: Ended, expected: Direct) -> None:
    lost = with_event(ended, 0, event(1, "message.moved"))
    gap = replace(ended, events=(*ended.events[:-1], event(8, "task.status", state="completed")))
    failed = with_event(ended, 5, event(6, "task.status", state="failed", reason="tool"))
    doubt = with_event(ended, 1, event(2, "tool.in_doubt", key=KEY))
    twice = with_event(ended, 3, replace(ended.events[3], turn=1))
    unended = with_event(ended, 4, event(5, "message.moved"))
    unheard = with_event(ended, 2, replace(ended.events[2], entries=()))
    wrong = ToolEntry(result=ToolResult(call_id="c", tool="t", status="ok", text='"?"'))
    misheard = with_event(ended, 2, replace(ended.events[2], entries=(wrong,)))
    for case, words in (
        (lost, "P1: its message was acted on 0 times"),
        (gap, "P6: events are numbered"),
        (failed, "it is failed"),
        (doubt, "P4: an outcome was left unknown"),
        (twice, "P2: turn 1 was answered 2 times"),
        (unended, "P5: its run has 0 ends"),
        (unheard, "R14: 0 results stand for 1 calls"),
        (misheard, "was told ok"),
    ):
        found = faults(case, expected, LAST)
        assert len(found) == 1
        assert words in found[0]
    assert "the customer was told" in faults(ended, expected, "Something else.")[0]


def test_a_second_arrival_under_a_key_is_a_fault_although_the_shop_fended_it_off(
    ended: Ended, expected: Direct, shop: Shop
) -> None:
    shop.arrive("cancel_pending_order", KEY)
    assert faults(ended, expected, LAST) == [f"t: P3: {KEY} reached the shop 2 times"]


def test_the_figures_count_what_a_kill_cut_off_and_how_soon_it_went_on(tmp_path: Path) -> None:
    clock = iter((1_000, 3_500))
    shop = Shop.create(tmp_path / "f.db", small_data(), lambda: next(clock))
    shop.arrive("get_user_details", "f/1/0")
    kill = Kill(2_000, 1, (shop.arrivals()[0],))
    shop.arrive("get_user_details", "f/1/0")
    events = (
        event(1, "tool.started", turn=1, index=0, attempt=1),
        event(3, "tool.failed", turn=1, index=0, attempt=1, failure="worker_lost"),
        event(4, "tool.started", turn=1, index=0, attempt=2),
    )
    summary = figures(7, 1.0, [kill, Kill(9_000, 2, ())], [Ended("f", 1, events, shop)])
    assert (summary.kills, summary.kills_hit, summary.calls_cut, summary.repeated_begins) == (2, 1, 1, 1)
    assert summary.failures == {"tool.failed worker_lost": 1}
    assert summary.kill_to_next_attempt == Times(1, 2_000, 2_000, 2_000)
    assert summary.kill_to_next_call == Times(1, 1_500, 1_500, 1_500)
    assert (summary.killed, summary.once_hit) == ({"worker": 2}, {})
    assert Times.of(range(1, 101)) == Times(100, 50, 95, 100)


def test_a_kill_of_temporal_meets_what_was_open_at_its_moment_and_cuts_nothing(tmp_path: Path) -> None:
    clock = iter((1_000, 1_500, 1_600, 2_100, 2_500))
    shop = Shop.create(tmp_path / "f.db", small_data(), lambda: next(clock))
    shop.leave(shop.arrive("cancel_pending_order", "f/1/0"))  # left before
    number = shop.arrive("cancel_pending_order", "f/2/0")
    shop.leave(number)  # after it
    shop.arrive("cancel_pending_order", "f/3/0")  # came after it
    assert open_at(2_000, (), [shop]) == ()
    met = open_at(2_000, (os.getpid(),), [shop])
    assert [arrival.key for arrival in met] == ["f/2/0"]
    kill = Kill(2_000, 1, (), "temporal", met)
    summary = figures(7, 1.0, [kill], [Ended("f", 1, (), shop)])
    assert (summary.kills_hit, summary.calls_cut, summary.once_hit) == (0, 0, {"temporal": 1})
