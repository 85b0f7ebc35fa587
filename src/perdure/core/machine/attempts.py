"""What a failed attempt means for its operation and its task: the next attempt, and the crash count (R12)."""

from perdure.core.failure import Failure
from perdure.core.machine.admission import wind_down
from perdure.core.machine.draft import Draft, replaced
from perdure.core.state import Attempts, Ending


def next_attempt(ops: Attempts, spends: bool, delay_ms: int) -> Attempts:
    """Return the operation with its next attempt, flying at once or after a wait."""
    return replaced(
        ops,
        attempt=ops.attempt + 1,
        spent=ops.spent + (1 if spends else 0),
        losses=0 if spends else ops.losses + 1,
        status="waiting" if delay_ms > 0 else "flying",
    )


def count_crash(draft: Draft, failure: Failure) -> bool:
    """R12: count a proven death against the task; return whether it ended the run."""
    if failure.kind != "worker_died":
        return False
    draft.set(crashed_this_turn=True)
    if not failure.alone:
        draft.set(shared_deaths=draft.state.shared_deaths + 1)
        return False
    crashes = draft.state.crashes + 1
    if crashes < draft.state.agent.crashes_max:
        draft.set(crashes=crashes)
        return False
    draft.set(crashes=0, shared_deaths=0)
    wind_down(draft, Ending(end="failed", reason="crash_loop", message=f"its worker died {crashes} times in a row"))
    return True
