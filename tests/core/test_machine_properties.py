"""Properties: random lives against the promises. `PERDURE_TEST_FULL=1` makes them many and long.

Hypothesis finds and shrinks; seeded lives go deeper for the same time. A failure prints its steps; it then becomes a
case in `test_cases_*.py` or `test_rules_*.py`.
"""

import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.core.life import Life

FULL = os.environ.get("PERDURE_TEST_FULL") == "1"
STEPS = 120 if FULL else 50
SEEDED = 10_000 if FULL else 400
SHARDS = 5


@settings(
    max_examples=2_000 if FULL else 60,
    deadline=None,
    print_blob=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(chance=st.randoms(use_true_random=False))
def test_promises_hold_in_lives_that_shrink(chance: Random) -> None:
    life = Life(chance)
    try:
        life.live(30)
    finally:
        note(" ".join(life.steps))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_promises_hold_in_seeded_lives(shard: int) -> None:
    for seed in range(shard, SEEDED, SHARDS):
        life = Life(Random(seed))
        try:
            life.live(STEPS)
        except Exception as error:
            raise AssertionError(f"seed {seed}, after {' '.join(life.steps)}") from error


def test_lives_have_kills_resends_and_late_results() -> None:
    """What the promises are asked against is there: with none of one kind, they would hold for nothing."""
    lives = [Life(Random(seed)) for seed in range(20)]
    for life in lives:
        life.live(50)
    steps = [step for life in lives for step in life.steps]
    assert min(steps.count(name) for name in ("kill", "resend", "restart", "stop_or_cancel", "move_or_withdraw")) > 20
    assert sum(life.late for life in lives) > 100
