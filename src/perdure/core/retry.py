"""The retry policy: what follows a failed attempt. Pure; jitter is an argument."""

from typing import Literal

from perdure.core.agent import RetryPolicy
from perdure.core.bounds import Bounds
from perdure.core.content import Frozen
from perdure.core.failure import Failure, FailureKind

SPENDS: frozenset[FailureKind] = frozenset({"model_transient", "tool_raised", "timeout", "internal"})
"""Failures that spend an attempt. All others are nobody's fault, or final."""

FINAL: frozenset[FailureKind] = frozenset({"model_permanent", "diverged", "fenced"})
"""Failures after which the same attempt can never succeed."""


class Again(Frozen):
    """Make the next attempt after `delay_ms`; `spends` when this failure counts against the policy."""

    verdict: Literal["again"] = "again"
    delay_ms: int
    spends: bool


class GiveUp(Frozen):
    """No further attempt."""

    verdict: Literal["give_up"] = "give_up"


def after_failure(
    failure: Failure, spent: int, losses: int, policy: RetryPolicy, jitter: float, bounds: Bounds
) -> Again | GiveUp:
    """Say what follows. `spent` and `losses` count the failures before this one; `jitter` is from [0, 1).

    A provider's Retry-After is a floor under the backoff, up to `retry_after_max_ms`; beyond that it is a refusal.
    """
    if failure.kind in FINAL:
        return GiveUp()
    if failure.kind not in SPENDS:
        return after_loss(failure.kind, losses, jitter, bounds)
    if spent + 1 >= policy.attempts_max:
        return GiveUp()
    delay_ms = _backoff_ms(spent, policy, jitter)
    if failure.retry_after_ms is not None:
        if failure.retry_after_ms > bounds.retry_after_max_ms:
            return GiveUp()
        # Jitter goes on top of the floor: below it the provider refuses again, exactly at it all come together.
        delay_ms = max(delay_ms, failure.retry_after_ms + int(jitter * policy.first_ms))
    return Again(delay_ms=delay_ms, spends=True)


def after_loss(kind: FailureKind, losses: int, jitter: float, bounds: Bounds) -> Again:
    """Say when an attempt is made again that was lost (a worker, the store) after `losses` before it: without end.

    The first time at once, but for the store: recovery is fast (P10), and the backoff bounds the load. That of a proven
    death stays short: the limit of crashes bounds those (R12), and a long wait would cost the work what the supervisor
    has won.
    """
    if losses == 0 and kind != "store":
        return Again(delay_ms=0, spends=False)
    policy = RetryPolicy(
        attempts_max=1,
        first_ms=bounds.backoff_first_ms,
        factor=bounds.backoff_factor,
        delay_max_ms=bounds.death_backoff_max_ms if kind == "worker_died" else bounds.backoff_max_ms,
    )
    return Again(delay_ms=_backoff_ms(losses, policy, jitter), spends=False)


def another_may(failure: Failure) -> bool:
    """Say whether another model may answer where this one has given up with this failure.

    It may where the model is down, slow or out of reach, or refuses whoever asks it: a key, a quota, a model that is
    gone. It is not asked where the request itself was refused. What one provider will not do for its content is not
    carried to others until one does it, and a context that is too long is a matter of the transcript: who answers it
    today with a larger model finds out tomorrow what that costs. Store and fence are no model's fault.
    """
    return failure.kind in SPENDS or (failure.kind == "model_permanent" and failure.elsewhere)


_GROWTH_STEPS_MAX = 64


def _backoff_ms(failures_before: int, policy: RetryPolicy, jitter: float) -> int:
    # Multiplied step by step up to the maximum: a power would overflow with a large factor or thousands of failures.
    full: float = policy.first_ms
    for _ in range(min(failures_before, _GROWTH_STEPS_MAX)):
        if full >= policy.delay_max_ms:
            break
        full *= policy.factor
    return int(min(full, policy.delay_max_ms) * (0.5 + 0.5 * jitter))
