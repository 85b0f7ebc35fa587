"""The budget policy: may this run make another call? Checked before each one."""

from perdure.core.agent import Budget
from perdure.core.state import Run


def exceeded(budget: Budget, run: Run, at_ms: int) -> str | None:
    """Return which bound stands against another turn, in words that name it and its setting, or None."""
    if run.turns >= budget.turns_max:
        return f"{run.turns} turns reached budget.turns_max"
    tokens = run.usage.input_tokens + run.usage.output_tokens
    if budget.tokens_max is not None and tokens >= budget.tokens_max:
        return f"{tokens} tokens reached budget.tokens_max of {budget.tokens_max}"
    if budget.cost_usd_max is not None and run.usage.cost_usd >= budget.cost_usd_max:
        return f"{run.usage.cost_usd:.4f} US dollars reached budget.cost_usd_max of {budget.cost_usd_max}"
    return overdue(budget, run, at_ms)


def overdue(budget: Budget, run: Run, at_ms: int) -> str | None:
    """Return why no attempt of this run may start at `at_ms`, or None. Time spent on waiting for a person is free."""
    seconds = (at_ms - run.started_at_ms - run.idle_ms) / 1000
    if budget.wall_s_max is not None and seconds >= budget.wall_s_max:
        return f"{seconds:.0f} s reached budget.wall_s_max of {budget.wall_s_max}"
    return None
