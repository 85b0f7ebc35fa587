"""Properties: random lives against the promises. `PERDURE_TEST_FULL=1` makes them many and long.

Hypothesis finds and shrinks; seeded lives go deeper for the same time. A failure prints its steps; it then becomes a
case in `test_cases_*.py` or `test_rules_*.py`.
"""

import os
from random import Random, randrange

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.core.life import Life

FULL = os.environ.get("PERDURE_TEST_FULL") == "1"
STEPS = 120 if FULL else 50
SEEDED = 10_000 if FULL else 240
LIVES_TO_SEE_ALL_ENDS = 300
"""The rarest, a run whose messages are all taken back, comes in one of 25."""
SHARDS = 5
FIRST_SEED = int(os.environ.get("PERDURE_TEST_SEED", randrange(1_000_000)))
"""Other lives each time: what a failure names as its seed can be lived again."""


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
    for seed in range(FIRST_SEED + shard, FIRST_SEED + SEEDED, SHARDS):
        life = Life(Random(seed))
        try:
            life.live(STEPS)
        except Exception as error:
            raise AssertionError(f"PERDURE_TEST_SEED={seed}, after {' '.join(life.steps)}") from error


def test_lives_have_kills_resends_and_late_results() -> None:
    """What the promises are asked against is there: with none of one kind, they would hold for nothing."""
    lives = [Life(Random(seed)) for seed in range(30)]
    for life in lives:
        life.live(50)
    steps = [step for life in lives for step in life.steps]
    acts = (
        "kill",
        "resend",
        "restart",
        "stop_or_cancel",
        "move_or_withdraw",
        "change_too_late",
        "answer",
        "tool_fails",
    )
    assert min(steps.count(name) for name in acts) > 20
    assert sum(life.late for life in lives) > 100


def test_lives_end_in_every_way() -> None:
    """Each reason of an end is asked for what it owes, and each setting for where the task stands then."""
    left = {"": "answered", "stopped": "stopped", "canceled": "stopped", "withdrawn": "stopped"}
    left |= dict.fromkeys(("model", "tool", "store", "budget", "truncated", "refusal", "crash_loop"), "failed")
    stands = {"input_required", "completed", "failed", "canceled"}
    for seed in range(LIVES_TO_SEE_ALL_ENDS):
        life = Life(Random(seed))
        life.live(50)
        for end, reason in life.ends:
            assert left.pop(reason, end) == end
        stands.discard(life.task.status)
        if not left and not stands:
            return
    raise AssertionError(f"no life ended with {sorted(left)}, or stood at last as {sorted(stands)}")
