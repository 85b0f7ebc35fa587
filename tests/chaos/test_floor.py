from perdure.cli.chaos.floor import cut_by, figures
from perdure.core.ports import EffectAttemptRow
from tests.chaos.made_up import FIRST, MODELS, SECOND, effect, ended, evidence, kill

TWICE = (
    EffectAttemptRow(attempt=1, worker=FIRST, begun_at_ms=400),
    EffectAttemptRow(attempt=2, worker=SECOND, begun_at_ms=1750),
)


def test_what_a_kill_destroys_is_the_time_from_the_beginning_to_the_kill() -> None:
    run = evidence(effects=(effect(begun=TWICE, effect="idempotent"),))
    (cut,) = cut_by(kill(1500), run)
    assert (cut.turn, cut.index, cut.attempt, cut.lost_ms) == (1, 0, 1, 1100)
    found = figures(3.0, run)
    assert (found.floor_s, found.above_floor_s, found.kills, found.idle_kills) == (4.1, 0.1, 1, 0)
    assert found.cut_calls == 1


def test_two_kills_in_one_call_destroy_two_attempts() -> None:
    run = evidence(
        effects=(effect(begun=TWICE, effect="idempotent", done_at_ms=None, outcome="open"),),
        attempts=(*MODELS, ended(1, 300, 1600), ended(2, 1700, None, outcome="open")),
        kills=(kill(1500), kill(2750, 102)),
    )
    assert figures(3.0, run).destroyed_s == 2.1


def test_a_model_call_that_was_cut_off_counts() -> None:
    run = evidence(
        kills=(kill(4150, 102),), attempts=(ended(1, 4100, 4300, activity="invoke_llm", turn=2, index=None),)
    )
    assert (figures(3.0, run).destroyed_s, figures(3.0, run).cut_calls) == (0.04, 0)


def test_a_kill_after_the_result_was_recorded_destroys_nothing() -> None:
    run = evidence(effects=(effect(begun=TWICE, effect="idempotent"),), kills=(kill(4005, 102, busy=True),))
    found = figures(3.0, run)
    assert (found.destroyed_s, found.idle_kills) == (0.0, 0)


def test_a_kill_of_one_who_had_nothing_in_hand_is_idle() -> None:
    run = evidence(kills=(kill(1500, 999, busy=False), kill(1500)), effects=(effect(begun=TWICE),))
    found = figures(3.0, run)
    assert (found.kills, found.idle_kills, found.destroyed_s) == (2, 1, 1.1)


def test_temporals_own_death_is_no_idle_kill() -> None:
    run = evidence(kills=(kill(1500, 7, target="temporal", busy=False),))
    assert (figures(3.0, run).idle_kills, figures(3.0, run).destroyed_s) == (0, 0.0)
