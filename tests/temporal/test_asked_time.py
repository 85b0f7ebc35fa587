"""A service that asks to be left alone is: what its tool says of it is a floor under the next attempt's wait."""

import pytest

from perdure.core.agent import RetryPolicy
from perdure.core.bounds import FIRST
from perdure.core.errors import BegunError
from perdure.core.retry import Again, after_failure
from perdure.temporal.failures import classify


def raised(retry_after_s: float | None) -> BegunError:
    """Return what the executor makes of what a tool raises."""
    error = BegunError("the tool raised")
    error.__cause__ = BegunError("429", retry_after_s=retry_after_s)
    return error


@pytest.mark.parametrize(("asked_s", "waits_ms"), [(7.0, 7000), (None, 15)])
def test_the_next_attempt_waits_as_long_as_the_service_asks(asked_s: float | None, waits_ms: int) -> None:
    failure = classify(raised(asked_s), "read")
    assert failure.kind == "tool_raised"
    policy = RetryPolicy(attempts_max=3, first_ms=30)
    assert after_failure(failure, 0, 0, policy, 0.0, FIRST) == Again(delay_ms=waits_ms, spends=True)


def test_what_must_not_be_made_again_waits_for_nothing() -> None:
    failure = classify(raised(7.0), "once")
    assert (failure.kind, failure.retry_after_ms) == ("in_doubt", None)
