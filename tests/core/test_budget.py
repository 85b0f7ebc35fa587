"""The budget policy: which bound stands against another call."""

import pytest

from perdure.core.agent import Budget
from perdure.core.budget import exceeded, overdue
from perdure.core.content import Usage
from perdure.core.state import Run, Spent

RUN = Run(
    number=1, started_at_ms=1_000, turns=3, usage=Usage(input_tokens=70, output_tokens=30, cost_usd=0.5), idle_ms=4_000
)


ANSWERED = RUN.model_copy(
    update={"spent": Spent(turns=2, usage=Usage(input_tokens=60, cost_usd=0.4), at_ms=5_000, idle_ms=3_000)}
)
"""The same run, of whose figures the most stand for an answer that it has given."""


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (Budget(turns_max=2), None),
        (Budget(turns_max=1), "1 turns reached budget.turns_max"),
        (Budget(tokens_max=41), None),
        (Budget(tokens_max=40), "40 tokens reached budget.tokens_max of 40"),
        (Budget(cost_usd_max=0.11), None),
        (Budget(cost_usd_max=0.09), "0.1000 US dollars reached budget.cost_usd_max of 0.09"),
        (Budget(wall_s_max=4.1), None),
        (Budget(wall_s_max=4), "4 s reached budget.wall_s_max of 4.0"),
    ],
)
def test_each_bound_is_counted_from_the_latest_answer(budget: Budget, says: str | None) -> None:
    assert exceeded(budget, ANSWERED, at_ms=10_000) == says


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (Budget(), None),
        (Budget(turns_max=4), None),
        (Budget(turns_max=3), "3 turns reached budget.turns_max"),
        (Budget(tokens_max=101), None),
        (Budget(tokens_max=100), "100 tokens reached budget.tokens_max of 100"),
        (Budget(cost_usd_max=0.6), None),
        (Budget(cost_usd_max=0.5), "0.5000 US dollars reached budget.cost_usd_max of 0.5"),
        (Budget(wall_s_max=5.1), None),
        (Budget(wall_s_max=5), "5 s reached budget.wall_s_max of 5.0"),
    ],
)
def test_each_bound_is_reached_exactly(budget: Budget, says: str | None) -> None:
    assert exceeded(budget, RUN, at_ms=10_000) == says


def test_only_wall_time_stands_against_attempts() -> None:
    spent = Budget(turns_max=1, tokens_max=1, cost_usd_max=0.1)
    assert overdue(spent, RUN, at_ms=10_000) is None
    assert overdue(Budget(wall_s_max=5), RUN, at_ms=10_000) is not None
