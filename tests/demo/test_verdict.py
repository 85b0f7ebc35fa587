"""Every judgement can fail: each is shown a demo in which just its own promise was broken."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from perdure.app.events import TaskEvent
from perdure.cli.demo import verdict
from perdure.cli.demo.call_log import ReceivedCall
from perdure.cli.demo.evidence import Evidence, Kill
from perdure.cli.demo.verdict import judge
from perdure.cli.demo.world import BLENDER_ORDER, KETTLE_ORDER
from tests.demo.made_up import TASK, good

Break = Callable[[Evidence], Evidence]


def noted(**changes: Any) -> Break:
    return lambda evidence: replace(evidence, notes=evidence.notes.model_copy(update=changes))


def waited(**changes: int) -> Break:
    return lambda evidence: replace(evidence, waits=(evidence.waits[0].model_copy(update=changes),))


def without(kind: str) -> Break:
    return lambda evidence: replace(evidence, events=tuple(e for e in evidence.events if e.kind != kind))


def told_again(kind: str) -> Break:
    def broken(evidence: Evidence) -> Evidence:
        last = [event for event in evidence.events if event.kind == kind][-1]
        return replace(evidence, events=(*evidence.events, replace(last, number=len(evidence.events) + 1)))

    return broken


def received(key: str, tool: str, outcome: str = "applied", order_id: str = BLENDER_ORDER) -> Break:
    def broken(evidence: Evidence) -> Evidence:
        call = ReceivedCall(len(evidence.calls) + 1, key, tool, {"order_id": order_id}, 0, outcome, None)
        return replace(evidence, calls=(*evidence.calls, call))

    return broken


def snapshot(name: str, *rows: dict[str, Any]) -> Break:
    return lambda e: replace(e, snapshot={**e.snapshot, name: [*e.snapshot[name], *rows]})


def ordered(**changes: Any) -> Break:
    """Change the other order."""

    def broken(evidence: Evidence) -> Evidence:
        blender, kettle = evidence.snapshot["orders"]
        return replace(evidence, snapshot={**evidence.snapshot, "orders": [blender, {**kettle, **changes}]})

    return broken


def attempted(activity: str, nth: int = -1, **changes: Any) -> Break:
    """Add a copy of an attempt to Temporal's history, with changes."""

    def broken(evidence: Evidence) -> Evidence:
        row = [row for row in evidence.history if row.activity == activity][nth]
        return replace(evidence, history=(*evidence.history, row.model_copy(update=changes)))

    return broken


def rewritten(activity: str, nth: int = -1, **changes: Any) -> Break:
    """Change an attempt in Temporal's history."""

    def broken(evidence: Evidence) -> Evidence:
        row = [row for row in evidence.history if row.activity == activity][nth]
        rows = (row.model_copy(update=changes) if each is row else each for each in evidence.history)
        return replace(evidence, history=tuple(rows))

    return broken


def ledgered(tool: str, **changes: Any) -> Break:
    def broken(evidence: Evidence) -> Evidence:
        rows = (row.model_copy(update=changes) if row.tool == tool else row for row in evidence.effects)
        return replace(evidence, effects=tuple(rows))

    return broken


def stated(at: int, state: str) -> Break:
    """Change the state in the status event of that place in the order."""

    def broken(evidence: Evidence) -> Evidence:
        event = evidence.of("task.status")[at]
        changed = replace(event, data={**event.data, "state": state})
        return replace(evidence, events=tuple(changed if each is event else each for each in evidence.events))

    return broken


def with_gap(evidence: Evidence) -> Evidence:
    def moved(event: TaskEvent) -> TaskEvent:
        return replace(event, number=event.number + 1) if event.number > 3 else event

    return replace(evidence, events=tuple(moved(event) for event in evidence.events))


def begun_once_more(evidence: Evidence) -> Evidence:
    row = next(row for row in evidence.effects if row.tool == "ship_replacement")
    again = row.begun[0].model_copy(update={"attempt": 2})
    return ledgered("ship_replacement", begun=(*row.begun, again))(evidence)


def same_worker_again(evidence: Evidence) -> Evidence:
    row = next(row for row in evidence.effects if row.tool == "get_order")
    worker = row.begun[0].worker
    return ledgered("get_order", begun=tuple(a.model_copy(update={"worker": worker}) for a in row.begun))(evidence)


def told_wrong_number(evidence: Evidence) -> Evidence:
    shipment = {**evidence.snapshot["shipments"][0], "tracking_number": "TRK-OTHER"}
    return replace(evidence, snapshot={**evidence.snapshot, "shipments": [shipment]})


SECOND = {"order_id": BLENDER_ORDER, "tracking_number": "TRK-2"}
CUT = f"{TASK}/1/0"

BREAKS: list[tuple[str, str, Break]] = [
    ("every_message_once", "a message was never promoted", without("message.promoted")),
    ("every_message_once", "a message was promoted twice", told_again("message.promoted")),
    ("every_message_once", "a question was never closed", without("help.answered")),
    ("every_message_once", "no message was admitted", without("message.admitted")),
    ("reply_served_by_others", "the killed worker served it", rewritten("persist", worker="102@host#1")),
    ("reply_served_by_others", "nobody served it", rewritten("persist", worker="")),
    ("acted_on_at_once", "a timeout was waited for", noted(killed_at_ms=(-5_000, 0))),
    ("every_answer_once", "a turn's answer was asked for again", attempted("invoke_llm", attempt=2)),
    ("every_answer_once", "a turn's answer never came", rewritten("invoke_llm", outcome="timed_out")),
    ("every_answer_once", "a turn is missing", rewritten("invoke_llm", 1, turn=9)),
    ("cut_call_same_key", "the call never came again", noted(held_key=f"{TASK}/3/0")),
    ("cut_call_same_key", "it came three times", received(CUT, "get_order", "answered")),
    ("cut_call_same_key", "it came again under another key", received(f"{TASK}/1/0/2", "get_order", "answered")),
    ("cut_call_same_key", "the killed worker began it again", same_worker_again),
    ("cut_call_there", "no call was cut off", noted(held_key="")),
    ("writes_never_twice", "a call came twice", received(f"{TASK}/3/0", "ship_replacement", "repeated")),
    ("writes_never_twice", "a change without a call", snapshot("shipments", SECOND)),
    ("writes_never_twice", "the ledger began it twice", begun_once_more),
    ("no_effect_guessed", "the ledger knows of a write that the world does not", ledgered("get_order", effect="once")),
    ("no_effect_guessed", "the world knows of a write that the ledger does not", received("t-2/1/0", "refund")),
    ("no_effect_guessed", "an effect is open", ledgered("get_order", outcome="open")),
    (
        "no_effect_guessed",
        "the world applied what the ledger calls an error",
        ledgered("ship_replacement", status="error"),
    ),
    ("one_end", "a second end", told_again("run.ended")),
    ("one_end", "a second terminal state", told_again("task.status")),
    ("one_end", "no end", without("run.ended")),
    ("completed", "the task failed", stated(-1, "failed")),
    ("gapless", "a gap", with_gap),
    ("gapless", "a duplicate", lambda e: replace(e, events=(*e.events, e.events[-1]))),
    ("gapless", "an event was followed twice", lambda e: noted(seen=(*e.notes.seen, 1))(e)),
    ("quiet_waiting", "a timer was open", waited(timers=1)),
    ("quiet_waiting", "an activity was begun", waited(activities=1)),
    ("quiet_waiting", "a workflow task was begun", waited(workflow_tasks=1)),
    (
        "quiet_waiting",
        "the second wait was not quiet",
        lambda e: replace(e, waits=(*e.waits, *waited(timers=1)(e).waits)),
    ),
    ("quiet_waiting", "the history has no wait", lambda e: replace(e, waits=())),
    ("witnesses_agree", "the log lacks an attempt", attempted("invoke_tool", attempt=2)),
    ("witnesses_agree", "the outcomes differ", rewritten("invoke_tool", outcome="failed")),
    ("killed_for_real", "a worker ended by itself", noted(deaths=(-9, 0))),
    ("killed_for_real", "one kill is missing", noted(deaths=(-9,))),
    ("one_attempt_each", "a store write was made again", rewritten("emit_event", outcome="timed_out")),
    ("one_attempt_each", "another call was made again", attempted("invoke_tool", attempt=2)),
    ("one_attempt_each", "the first attempt was not cut off", rewritten("invoke_tool", 0, outcome="completed")),
    ("one_replacement", "two were shipped", snapshot("shipments", SECOND)),
    ("one_replacement", "it was asked for twice", received(f"{TASK}/4/0", "ship_replacement", "refused")),
    ("one_replacement", "the ledger began it twice", begun_once_more),
    ("nothing_else_touched", "the other order changed", ordered(status="delivered")),
    ("nothing_else_touched", "the other order was named", received("k", "get_order", "answered", KETTLE_ORDER)),
    (
        "nothing_else_touched",
        "the other order was shipped",
        snapshot("shipments", {**SECOND, "order_id": KETTLE_ORDER}),
    ),
    ("nothing_else_touched", "a refund was asked for", received("k", "refund", "refused")),
    ("nothing_else_touched", "a refund was paid", snapshot("refunds", {"order_id": BLENDER_ORDER, "amount": 1.0})),
    ("answer_is_true", "another number was told", told_wrong_number),
    ("states_in_order", "it never waited", stated(2, "working")),
]


@pytest.mark.parametrize("kill", get_args(Kill))
@pytest.mark.parametrize("scripted", [True, False])
def test_a_good_demo_is_judged_good(kill: Kill, scripted: bool) -> None:
    judgements = judge(good(kill, scripted=scripted))
    assert [judgement for judgement in judgements if not judgement.held] == []
    cut = {"P10"} if kill == "twice" else set()
    assert {"P1", "P2", "P3", "P4", "P5", "P6", "P8"} | cut <= {judgement.promise for judgement in judgements}


@pytest.mark.parametrize(("name", "what", "broken"), BREAKS, ids=[f"{name}: {what}" for name, what, _ in BREAKS])
def test_a_broken_promise_is_seen(name: str, what: str, broken: Break) -> None:
    claim = getattr(verdict, name)
    before = claim(good())
    assert before is None or before.held
    after = claim(broken(good()))
    assert after is not None
    assert not after.held
    assert after in judge(broken(good()))


def test_every_claim_of_the_verdict_is_broken_by_some_test() -> None:
    over_a2a = {"server_killed_for_real", "told_over_a2a"}  # test_front_door.py breaks them
    broken = {name for name, _, _ in BREAKS} | {"get_order_once"} | over_a2a
    assert {claim.__name__ for claim in (*verdict.ALWAYS, *verdict.SCRIPTED)} == broken


def test_killed_only_while_waiting_get_order_is_begun_once_and_nothing_has_a_second_attempt() -> None:
    evidence = good("waiting")
    once = verdict.get_order_once(received(CUT, "get_order", "answered")(evidence))
    assert once is not None
    assert not once.held
    assert verdict.one_attempt_each(evidence).claim == "every activity has exactly one attempt"
    assert not verdict.one_attempt_each(attempted("invoke_tool", attempt=2)(evidence)).held


def test_nothing_is_not_taken_for_a_success() -> None:
    nothing = replace(
        good(),
        calls=(),
        history=(),
        events=(),
        effects=(),
        waits=(),
        snapshot={"orders": [], "shipments": [], "refunds": []},
    )
    held = {judgement.claim for judgement in judge(nothing) if judgement.held}
    # What is left cannot be broken by a demo in which nothing happened.
    assert held <= {
        "no writing call came twice under one key, and each change belongs to one call",
        "the ledger knows of each writing call what the world knows; no outcome was in doubt",
        "the worker was killed with SIGKILL twice",
    }
