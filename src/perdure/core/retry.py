"""The retry policy: what follows a failed attempt. Pure; jitter is an argument."""

from typing import Literal

from perdure.core import limits
from perdure.core.agent import RetryPolicy
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


def after_failure(failure: Failure, spent: int, losses: int, policy: RetryPolicy, jitter: float) -> Again | GiveUp:
    """Say what follows. `spent` and `losses` count the failures before this one; `jitter` is from [0, 1).

    A loss (a worker, the store) is retried without end, its first time at once: recovery is fast (P10), and the
    backoff bounds the load. That of a proven death stays short: the limit of crashes bounds those (R12), and a long
    wait would cost the work what the supervisor has won. A provider's Retry-After is a floor under the backoff, up to
    `RETRY_AFTER_MAX_MS`; beyond that it is a refusal.
    """
    if failure.kind in FINAL:
        return GiveUp()
    if failure.kind not in SPENDS:
        at_once = losses == 0 and failure.kind != "store"
        policy = _DEATH_POLICY if failure.kind == "worker_died" else _LOSS_POLICY
        return Again(delay_ms=0 if at_once else _backoff_ms(losses, policy, jitter), spends=False)
    if spent + 1 >= policy.attempts_max:
        return GiveUp()
    delay_ms = _backoff_ms(spent, policy, jitter)
    if failure.retry_after_ms is not None:
        if failure.retry_after_ms > limits.RETRY_AFTER_MAX_MS:
            return GiveUp()
        # Jitter goes on top of the floor: below it the provider refuses again, exactly at it all come together.
        delay_ms = max(delay_ms, failure.retry_after_ms + int(jitter * policy.first_ms))
    return Again(delay_ms=delay_ms, spends=True)


def another_may(failure: Failure) -> bool:
    """Say whether another model may answer where this one has given up with this failure.

    It may where the model is down, slow or out of reach, or refuses whoever asks it: a key, a quota, a model that is
    gone. It is not asked where the request itself was refused. What one provider will not do for its content is not
    carried to others until one does it, and a context that is too long is a matter of the transcript: who answers it
    today with a larger model finds out tomorrow what that costs. Store and fence are no model's fault.
    """
    return failure.kind in SPENDS or (failure.kind == "model_permanent" and failure.elsewhere)


_LOSS_POLICY = RetryPolicy(attempts_max=1)
_DEATH_POLICY = RetryPolicy(attempts_max=1, delay_max_ms=limits.DEATH_BACKOFF_MAX_MS)
_GROWTH_STEPS_MAX = 64


def _backoff_ms(failures_before: int, policy: RetryPolicy, jitter: float) -> int:
    # Multiplied step by step up to the maximum: a power would overflow with a large factor or thousands of failures.
    full: float = policy.first_ms
    for _ in range(min(failures_before, _GROWTH_STEPS_MAX)):
        if full >= policy.delay_max_ms:
            break
        full *= policy.factor
    return int(min(full, policy.delay_max_ms) * (0.5 + 0.5 * jitter))
