"""What a failed attempt means for its operation and its task: the next attempt, and the crash count (R12)."""

from perdure.core.budget import overdue
from perdure.core.failure import Failure
from perdure.core.machine.admission import wind_down
from perdure.core.machine.draft import Draft, replaced
from perdure.core.retry import Again
from perdure.core.state import Attempts, Ending


def next_attempt(ops: Attempts, again: Again) -> Attempts:
    """Return the operation with its next attempt, flying at once or after a wait."""
    return replaced(
        ops,
        attempt=ops.attempt + 1,
        spent=ops.spent + (1 if again.spends else 0),
        losses=0 if again.spends else ops.losses + 1,
        status="waiting" if again.delay_ms > 0 else "flying",
        delay_ms=again.delay_ms,
    )


def out_of_time(draft: Draft, delay_ms: int = 0) -> bool:
    """End the run when its wall time is up by then: no attempt starts, and no wait is worth making."""
    over = overdue(draft.state.agent.budget, draft.run, draft.at_ms + delay_ms)
    if over is not None:
        wind_down(draft, Ending(end="failed", reason="budget", message=over))
    return over is not None


def count_crash(draft: Draft, failure: Failure) -> bool:
    """R12: count a proven death against the task, once; return whether it ended the run.

    After a crash loop the task stays in quarantine until a turn without a crash: the next message starts its count
    anew, and must not cost its neighbours their worker.
    """
    if failure.kind != "worker_died" or (failure.worker and failure.worker == draft.state.last_death):
        return False
    draft.set(crashed_this_turn=True, last_death=failure.worker)
    if not failure.alone:
        draft.set(shared_deaths=draft.state.shared_deaths + 1)
        return False
    crashes = draft.state.crashes + 1
    if crashes < draft.state.agent.crashes_max:
        draft.set(crashes=crashes)
        return False
    draft.set(crashes=0, shared_deaths=draft.bounds.shared_deaths_before_quarantine)
    wind_down(draft, Ending(end="failed", reason="crash_loop", message=f"its worker died {crashes} times in a row"))
    return True
