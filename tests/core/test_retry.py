"""The retry policy: what follows a failed attempt."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.agent import RetryPolicy
from perdure.core.bounds import FIRST
from perdure.core.failure import Failure, FailureKind
from perdure.core.retry import FINAL, SPENDS, Again, GiveUp, after_failure

POLICY = RetryPolicy(attempts_max=4, first_ms=100, factor=2.0, delay_max_ms=300)
KINDS: tuple[FailureKind, ...] = get_args(FailureKind)


def fails(kind: FailureKind, retry_after_ms: int | None = None) -> Failure:
    return Failure(kind=kind, message="x", retry_after_ms=retry_after_ms)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_spends_or_ends_or_is_nobodys_fault(kind: FailureKind) -> None:
    first = after_failure(fails(kind), 0, 0, POLICY, 0.0, FIRST)
    last = after_failure(fails(kind), POLICY.attempts_max - 1, 0, POLICY, 0.0, FIRST)
    many = after_failure(fails(kind), 0, 10_000, POLICY, 0.0, FIRST)
    if kind in FINAL:
        assert first == last == many == GiveUp()
    elif kind in SPENDS:
        assert first == Again(delay_ms=50, spends=True)
        assert last == GiveUp()
    else:
        assert isinstance(last, Again)
        assert not last.spends
        longest_ms = limits.DEATH_BACKOFF_MAX_MS if kind == "worker_died" else limits.BACKOFF_MAX_MS
        assert many == Again(delay_ms=longest_ms // 2, spends=False)


def test_kinds_are_divided_without_overlap() -> None:
    assert not SPENDS & FINAL
    assert set(KINDS) > SPENDS | FINAL


@pytest.mark.parametrize("kind", ["worker_died", "worker_lost", "shutdown", "cancelled", "in_doubt"])
def test_p10_the_first_loss_in_a_row_does_not_wait(kind: FailureKind) -> None:
    assert after_failure(fails(kind), 2, 0, POLICY, 0.5, FIRST) == Again(delay_ms=0, spends=False)
    second = after_failure(fails(kind), 2, 1, POLICY, 0.0, FIRST)
    second_ms = limits.DEATH_BACKOFF_MAX_MS // 2 if kind == "worker_died" else limits.BACKOFF_FIRST_MS
    assert second == Again(delay_ms=second_ms, spends=False)


def test_a_store_that_fails_is_never_asked_again_at_once() -> None:
    assert after_failure(fails("store"), 0, 0, POLICY, 0.0, FIRST) == Again(delay_ms=250, spends=False)


def test_b16_delays_double_up_to_the_maximum_and_are_jittered_down_to_half() -> None:
    low = [after_failure(fails("model_transient"), n, 0, POLICY, 0.0, FIRST) for n in range(3)]
    high = [after_failure(fails("model_transient"), n, 0, POLICY, 0.999, FIRST) for n in range(3)]
    assert [a.delay_ms for a in low if isinstance(a, Again)] == [50, 100, 150]
    assert [a.delay_ms for a in high if isinstance(a, Again)] == [99, 199, 299]


def test_b16_retry_after_is_a_floor_and_one_that_asks_for_too_much_is_a_refusal() -> None:
    floor = after_failure(fails("model_transient", 5_000), 0, 0, POLICY, 0.0, FIRST)
    assert floor == Again(delay_ms=5_000, spends=True)
    apart = after_failure(fails("model_transient", 5_000), 0, 0, POLICY, 0.5, FIRST)
    assert apart == Again(delay_ms=5_050, spends=True)
    longest = after_failure(fails("model_transient", limits.RETRY_AFTER_MAX_MS), 0, 0, POLICY, 0.0, FIRST)
    assert longest == Again(delay_ms=limits.RETRY_AFTER_MAX_MS, spends=True)
    assert after_failure(fails("model_transient", limits.RETRY_AFTER_MAX_MS + 1), 0, 0, POLICY, 0.0, FIRST) == GiveUp()


@given(
    kind=st.sampled_from(KINDS),
    after_ms=st.none() | st.integers(0, 10**12),
    spent=st.integers(0, 10**6),
    losses=st.integers(0, 10**6),
    jitter=st.floats(0, 1, exclude_max=True),
    factor=st.floats(1, 1e6),
)
def test_p7_every_delay_is_bounded(
    kind: FailureKind, after_ms: int | None, spent: int, losses: int, jitter: float, factor: float
) -> None:
    policy = RetryPolicy(attempts_max=10**6, factor=factor)
    again = after_failure(fails(kind, after_ms), spent, losses, policy, jitter, FIRST)
    if isinstance(again, Again):
        assert 0 <= again.delay_ms <= limits.RETRY_AFTER_MAX_MS + limits.BACKOFF_FIRST_MS
        if after_ms is not None and again.spends:
            assert again.delay_ms >= after_ms
