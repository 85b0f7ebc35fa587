"""What a trial leaves behind, for whoever judges it: the task's log, the ledger, Temporal's history, the outside world.

The outside world speaks for itself, through the probe. What no witness can know, this command noted: which messages
were acknowledged, the numbers of the events as they were followed live, and whom it killed when.
"""

from dataclasses import dataclass

from perdure.app.events import TaskEvent
from perdure.cli.chaos.modes import Mode
from perdure.cli.chaos.schedule import PlannedKill, Target
from perdure.core.attempts import AttemptRow
from perdure.core.content import Frozen
from perdure.core.ports import EffectRow, ModelCallRow


class Kill(Frozen):
    """One kill that was done. `pids` are the processes that it took, `busy` whether one of them had work in hand."""

    target: Target
    at_ms: int
    pids: tuple[int, ...]
    busy: bool


class Applied(Frozen):
    """One effect as the outside world saw it. `tool` is empty where the world does not tell."""

    key: str
    tool: str = ""


@dataclass(frozen=True)
class Evidence:
    """One run of the agent, undisturbed (no `plan`, no `kills`) or under kills.

    `followed` has one pass over the event numbers for each time that the log was followed. `world` is None without a
    probe; it holds all that the world saw since this run began, `covered` the tools that the probe lists at all.
    """

    task_id: str
    mode: Mode
    seed: int | None
    plan: tuple[PlannedKill, ...]
    kills: tuple[Kill, ...]
    lasted_s: float
    acknowledged: tuple[str, ...]
    followed: tuple[tuple[int, ...], ...]
    state: str
    reason: str
    events: tuple[TaskEvent, ...]
    attempts: tuple[AttemptRow, ...]
    history: tuple[AttemptRow, ...]
    effects: tuple[EffectRow, ...]
    model_calls: tuple[ModelCallRow, ...]
    world: tuple[Applied, ...] | None = None
    covered: frozenset[str] = frozenset()

    def of(self, *kinds: str) -> list[TaskEvent]:
        """Return the events of these kinds, in order."""
        return [event for event in self.events if event.kind in kinds]

    def seen(self, key: str) -> int | None:
        """Return how often the world applied that key's effect; None without a probe."""
        return None if self.world is None else sum(applied.key == key for applied in self.world)

    @property
    def strangers(self) -> int:
        """How many effects came under keys that no call of this task had."""
        return sum(not applied.key.startswith(f"{self.task_id}/") for applied in self.world or ())
