"""Each promise can break: the verdict says so of evidence in which it is broken, and of no other promise."""

from dataclasses import replace
from typing import Any

import pytest

from perdure.app.events import TaskEvent
from perdure.cli.chaos.evidence import Applied, Evidence
from perdure.cli.chaos.floor import figures
from perdure.cli.chaos.telling import Tried, begun_again, duplicates, mode_objects, print_sum, sum_object
from perdure.cli.chaos.ten_steps import judge_steps
from perdure.cli.chaos.verdict import judge
from perdure.core.attempts import AttemptRow
from perdure.core.ports import EffectAttemptRow, ModelCallRow
from tests.chaos.made_up import FIRST, KEY, SECOND, TASK, effect, evidence, told_events


def words(run: Evidence, undisturbed: Evidence | None = None) -> dict[str, str]:
    return {judgement.promise: judgement.word for judgement in judge(undisturbed or evidence(), run)}


def broken(run: Evidence) -> list[str]:
    return [promise for promise, word in words(run).items() if word == "broken"]


def without(kind: str) -> tuple[TaskEvent, ...]:
    left = [event for event in told_events() if event.kind != kind]
    return tuple(replace(event, number=number) for number, event in enumerate(left, 1))


def test_everything_holds_where_everything_went_well() -> None:
    held = dict.fromkeys(("P1", "P2", "P3", "P4", "P5", "P6", "end"), "held")
    assert words(evidence()) == {**held, "P9": "not judged"}


APPLIED = Applied(key=KEY, tool="refund")
NEXT = f"{KEY}/2"
BEGUN_TWICE = (
    EffectAttemptRow(attempt=1, worker=FIRST, begun_at_ms=400),
    EffectAttemptRow(attempt=2, worker=SECOND, begun_at_ms=1750),
)
COMPLETED = AttemptRow(activity="invoke_llm", turn=1, scheduled_at_ms=0, outcome="completed")
LATE = ModelCallRow(turn=1, attempt=2, worker=SECOND, begun_at_ms=250)


@pytest.mark.parametrize(
    ("promise", "changes"),
    [
        ("P1", {"acknowledged": ("m-1", "m-2")}),
        ("P1", {"events": without("message.promoted")}),
        ("P2", {"model_calls": (LATE,)}),
        ("P2", {"history": (COMPLETED, COMPLETED)}),
        ("P3", {"world": (APPLIED, APPLIED)}),
        ("P3", {"effects": (effect(begun=BEGUN_TWICE),)}),
        ("P3", {"effects": (effect(begun=BEGUN_TWICE),), "world": None}),
        ("P3", {"effects": (effect(effect="idempotent"),), "world": (APPLIED, APPLIED)}),
        ("P4", {"world": ()}),
        ("P4", {"effects": (effect(status="error"),)}),
        ("P4", {"effects": (effect(outcome="closed", status=None),)}),
        ("P4", {"effects": (effect(outcome="open", status=None),)}),
        ("P5", {"events": without("run.ended")}),
        ("P6", {"followed": ((1, 2, 4),)}),
        ("P6", {"followed": ((1, 2, 2, 3),)}),
        ("end", {"reason": "crash_loop"}),
    ],
)
def test_a_promise_that_was_broken_is_said_to_be(promise: str, changes: dict[str, Any]) -> None:
    assert broken(evidence(**changes)) == [promise]


def test_a_check_that_lies_breaks_two_promises() -> None:
    """It closed a key whose effect had come, and the call was begun anew under the next."""
    closed, again = effect(outcome="closed", status=None), effect(key=NEXT)
    run = evidence(effects=(closed, again), world=(APPLIED, Applied(key=NEXT, tool="refund")))
    assert broken(run) == ["P3", "P4"]
    assert duplicates(run) == 0, "one under each key"


def test_a_call_after_its_stop_breaks_p9() -> None:
    events = list(told_events())
    events[7] = replace(events[7], kind="run.stop_requested")
    assert "P9" in broken(evidence(events=tuple(events)))
    quiet = [event for event in events if event.number <= 8]
    judged = words(evidence(events=tuple(quiet)))
    assert judged["P9"] == "held"


def test_without_a_probe_effects_are_not_judged() -> None:
    judged = words(evidence(world=None, covered=frozenset()), evidence(world=None, covered=frozenset()))
    assert (judged["P3"], judged["P4"]) == ("not judged", "not judged")
    assert judged["P1"] == "held"


def test_an_effect_in_doubt_that_was_said_to_be_unknown_breaks_nothing() -> None:
    events = list(told_events())
    events[9] = replace(events[9], kind="tool.in_doubt", data={"key": KEY, "index": 0, "attempt": 2})
    run = evidence(events=tuple(events), effects=(effect(outcome="open", status=None),))
    assert words(run)["P4"] == "held"


def test_a_probe_that_never_lists_a_once_tool_is_no_witness_of_it() -> None:
    blind = evidence(world=(), covered=frozenset())
    assert words(blind, blind)["P3"] == "not judged"


def test_effects_under_keys_of_nobody_are_not_judged() -> None:
    run = evidence(world=(APPLIED, Applied(key="else/1", tool="refund")))
    assert words(run)["P3"] == "not judged"


def test_a_run_that_no_kill_reached_shows_nothing() -> None:
    judged = words(evidence(kills=()))
    assert set(judged.values()) == {"not judged"}
    assert broken(evidence(kills=(), world=(APPLIED, APPLIED))) == ["P3"]


def test_a_step_is_judged_by_its_number_and_not_by_its_key() -> None:
    lines = [{"step": step, "key": f"{TASK}/{step}/0", "outcome": "applied"} for step in range(1, 11)]
    assert judge_steps([*lines, {**lines[0], "outcome": "repeated"}]).word == "held"
    assert judge_steps([*lines, {**lines[0], "key": "another"}]).word == "broken"
    assert judge_steps(lines[1:]).word == "broken"


def test_the_sum_is_of_the_worst_supervised_trial() -> None:
    def tried(mode: Any, lasted_s: float, **changes: Any) -> Tried:
        run = evidence(mode=mode, lasted_s=lasted_s, **changes)
        return Tried(run, figures(3.0, run), judge(evidence(), run))

    bad = tried("supervised", 6.0, world=(APPLIED, APPLIED))
    told = sum_object([tried("supervised", 5.0), bad, tried("timeout", 20.0)])
    assert told["disturbed_s"] == 6.0
    assert (told["kills"], told["idle_kills"], told["trials"], told["broken"]) == (3, 0, 3, ["P3"])
    assert (duplicates(bad.evidence), begun_again(bad.evidence)) == (1, 0)
    assert {"above_floor_s", "undisturbed_s", "floor_s"} <= set(told)
    assert told["modes"] == [
        {
            "mode": mode,
            "trials": trials,
            "duplicates": repeated,
            "begun_again": 0,
            "idle_kills": 0,
            "least_s": least_s,
            "median_s": median_s,
            "most_s": most_s,
            "floor_s": 4.1,
        }
        for mode, trials, repeated, least_s, median_s, most_s in (
            ("supervised", 2, 1, 5.0, 5.5, 6.0),
            ("timeout", 1, 0, 20.0, 20.0, 20.0),
        )
    ]


def test_the_published_table_has_a_line_for_each_mode(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [evidence(mode=mode, lasted_s=lasted_s) for mode, lasted_s in (("supervised", 5.0), ("heartbeat", 9.0))]
    print_sum([Tried(run, figures(3.0, run), judge(evidence(), run)) for run in runs])
    told = capsys.readouterr().out.partition("modes over the same seeds")[2]
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert "supervised 1 0 0 0 5.0 / 5.0 / 5.0 4.1" in lines
    assert "heartbeat 1 0 0 0 9.0 / 9.0 / 9.0 4.1" in lines
    assert "broken: none" in told


def test_a_mode_of_which_nobody_knows_the_effects_has_no_count_of_duplicates() -> None:
    run = evidence(world=None, covered=frozenset())
    (mode,) = mode_objects([Tried(run, figures(3.0, run), judge(evidence(), run))])
    assert (mode["duplicates"], mode["trials"]) == (None, 1)
