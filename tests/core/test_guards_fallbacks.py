"""Guards of fallbacks are executable too: each is taken out, and what protects it is seen to fail."""

import pytest

from perdure.core import retry
from perdure.core.machine import turn
from tests.core import test_fallbacks as fallbacks
from tests.core.test_guards import Guard, needed_by_its_test, needed_by_random_lives

GUARDS = {
    "a refused request is not carried to other models": Guard(
        retry.another_may,
        " and failure.elsewhere",
        "",
        fallbacks.test_a_request_that_is_refused_is_not_carried_to_others,
        "R10",
    ),
    "no model answers for the store": Guard(
        retry.another_may, "failure.kind in SPENDS or", "True or", fallbacks.test_no_model_answers_for_a_fence, "R10"
    ),
    "a fallback is asked before the run fails": Guard(
        turn.model_failed,
        "if another_may(failure)",
        "if False",
        fallbacks.test_a_model_that_is_down_past_its_retries_gives_the_turn_to_the_next,
        "R10",
    ),
    "attempts count on over all models of a turn": Guard(
        turn.take_over,
        "attempt=ops.attempt + 1",
        "attempt=1",
        fallbacks.test_a_model_that_is_down_past_its_retries_gives_the_turn_to_the_next,
        "P2|R14",
    ),
    "without fallbacks nothing shows of them": Guard(
        turn.model_command,
        'model.name if state.agent.fallbacks else ""',
        "model.name",
        fallbacks.test_p11_without_fallbacks_nothing_shows_of_them,
        "P11",
    ),
}


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_without_its_guard_the_protecting_test_fails(guard: Guard) -> None:
    needed_by_its_test(guard)


@pytest.mark.parametrize("guard", GUARDS.values(), ids=GUARDS)
def test_without_its_guard_a_random_life_breaks(guard: Guard) -> None:
    needed_by_random_lives(guard)
