"""The budget policy: may this run make another call? Checked before each one.

A budget bounds the work on one answer. A run goes on from an answer with the next message that waits (R4), and each of
them has all of it: a queue is worth what the same messages would be that come one by one, each with a run of its own.
Refused: one budget for a run however long its queue is, which would end the run in the middle of messages that cost
little each, and park the rest.
"""

from perdure.core.agent import Budget
from perdure.core.content import Usage
from perdure.core.state import Run, Spent


def exceeded(budget: Budget, run: Run, at_ms: int) -> str | None:
    """Return which bound stands against another turn, in words that name it and its setting, or None."""
    before = _before(run)
    turns = run.turns - before.turns
    if turns >= budget.turns_max:
        return f"{turns} turns reached budget.turns_max"
    tokens = run.usage.input_tokens + run.usage.output_tokens - before.usage.input_tokens - before.usage.output_tokens
    if budget.tokens_max is not None and tokens >= budget.tokens_max:
        return f"{tokens} tokens reached budget.tokens_max of {budget.tokens_max}"
    cost_usd = run.usage.cost_usd - before.usage.cost_usd
    if budget.cost_usd_max is not None and cost_usd >= budget.cost_usd_max:
        return f"{cost_usd:.4f} US dollars reached budget.cost_usd_max of {budget.cost_usd_max}"
    return overdue(budget, run, at_ms)


def overdue(budget: Budget, run: Run, at_ms: int) -> str | None:
    """Return why no attempt of this run may start at `at_ms`, or None. Time spent on waiting for a person is free."""
    before = _before(run)
    seconds = (at_ms - before.at_ms - (run.idle_ms - before.idle_ms)) / 1000
    if budget.wall_s_max is not None and seconds >= budget.wall_s_max:
        return f"{seconds:.0f} s reached budget.wall_s_max of {budget.wall_s_max}"
    return None


def spent(run: Run, at_ms: int) -> Spent:
    """Return what the run has used by the answer that it gives now."""
    return Spent(turns=run.turns, usage=run.usage, at_ms=at_ms, idle_ms=run.idle_ms)


def _before(run: Run) -> Spent:
    """Return what the run had used before the work on its present answer began."""
    return run.spent or Spent(turns=0, usage=Usage(), at_ms=run.started_at_ms, idle_ms=0)
