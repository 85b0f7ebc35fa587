"""The floor: how long the disturbed run had to take, whatever recovers it.

That is the undisturbed run's time and, for each attempt at a model or tool call that a kill cut off, the time from its
beginning to the kill: that work is gone, and is done again. What a run takes beyond it is what recovery cost.

When an attempt began is read from the ledger and the model calls' start rows: they were written just before.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from perdure.cli.chaos.evidence import Evidence, Kill


@dataclass(frozen=True)
class Cut:
    """An attempt that a kill cut off, and how long it had worked. `index` None is the turn's model call."""

    turn: int
    index: int | None
    attempt: int
    lost_ms: int


@dataclass(frozen=True)
class Figures:
    """A disturbed run in numbers. `above_floor_s` is what recovery cost; below 0 where work was not done again.

    `idle_kills` hit nobody who worked, `cut_calls` are the begun tool calls that kills cut off: both by chance, since
    a schedule knows nothing of what runs.
    """

    undisturbed_s: float
    disturbed_s: float
    destroyed_s: float
    kills: int
    idle_kills: int
    cut_calls: int

    @property
    def floor_s(self) -> float:
        """The least that the run could take."""
        return round(self.undisturbed_s + self.destroyed_s, 3)

    @property
    def above_floor_s(self) -> float:
        """What it took beyond that."""
        return round(self.disturbed_s - self.floor_s, 3)


def figures(undisturbed_s: float, evidence: Evidence) -> Figures:
    """Return the numbers of a disturbed run."""
    cuts = [(kill, cut_by(kill, evidence)) for kill in evidence.kills]
    return Figures(
        undisturbed_s=round(undisturbed_s, 3),
        disturbed_s=round(evidence.lasted_s, 3),
        destroyed_s=round(sum(cut.lost_ms for _, found in cuts for cut in found) / 1000, 3),
        kills=len(cuts),
        idle_kills=sum(not found and not kill.busy for kill, found in cuts if kill.target != "temporal"),
        cut_calls=sum(cut.index is not None for _, found in cuts for cut in found),
    )


def cut_by(kill: Kill, evidence: Evidence) -> tuple[Cut, ...]:
    """Return the attempts that this kill cut off."""
    return tuple(
        Cut(turn, index, attempt, kill.at_ms - begun_ms)
        for worker, turn, index, attempt, begun_ms, ended_ms in _begun(evidence)
        if _pid(worker) in kill.pids and begun_ms <= kill.at_ms and (ended_ms is None or ended_ms > kill.at_ms)
    )


def _begun(evidence: Evidence) -> Iterator[tuple[str, int, int | None, int, int, int | None]]:
    """Give every begun attempt: worker, turn, index, attempt, when it began, and when it ended."""
    ends = {(row.turn, row.index, row.attempt): row.ended_at_ms for row in evidence.attempts}
    for call in evidence.model_calls:
        yield call.worker, call.turn, None, call.attempt, call.begun_at_ms, ends.get((call.turn, None, call.attempt))
    for row in evidence.effects:
        last = max((begun.attempt for begun in row.begun), default=0)
        for begun in row.begun:
            ended_ms = ends.get((row.turn, row.index, begun.attempt))
            if begun.attempt == last and row.done_at_ms is not None:
                # Its result was recorded; a kill between that and the report destroyed nothing.
                ended_ms = row.done_at_ms if ended_ms is None else min(ended_ms, row.done_at_ms)
            yield begun.worker, row.turn, row.index, begun.attempt, begun.begun_at_ms, ended_ms


def _pid(worker: str) -> int | None:
    pid = worker.partition("@")[0]
    return int(pid) if pid.isdecimal() else None
