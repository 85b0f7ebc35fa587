"""Reading a task from the store alone: nothing else needs to run."""

from dataclasses import dataclass

from perdure.app.events import TaskEvent
from perdure.app.settings import Settings
from perdure.cli.following import Standing
from perdure.cli.places import existing_store
from perdure.core import limits
from perdure.core.attempts import AttemptRow, attempts_from_log
from perdure.core.errors import TaskNotFound
from perdure.core.log import LogEvent
from perdure.core.ports import EffectRow, StoredEvent, TaskRow


@dataclass(frozen=True)
class TaskLog:
    """All that the store tells of a task."""

    row: TaskRow
    rows: tuple[LogEvent, ...]
    events: tuple[TaskEvent, ...]
    attempts: tuple[AttemptRow, ...]
    effects: tuple[EffectRow, ...]

    @property
    def standing(self) -> Standing:
        """Where the task stands by its last event."""
        standing = Standing()
        for event in self.events:
            standing.take(event)
        return standing


async def read_log(settings: Settings, task_id: str) -> TaskLog:
    """Read a task; raises `TaskNotFound`, also where there is no store yet."""
    async with existing_store(settings) as store:
        row = None if store is None else await store.task(task_id)
        if store is None or row is None:
            raise TaskNotFound(task_id)
        stored: list[StoredEvent] = []
        while page := await store.events_after(task_id, len(stored), limits.EVENTS_PER_PAGE_MAX):
            stored.extend(page)
        effects = await store.effects(task_id)
        rows = tuple(each.event for each in stored)
        attempts = attempts_from_log(rows, await store.model_calls(task_id), effects)
    return TaskLog(row, rows, tuple(TaskEvent.of(each) for each in stored), attempts, effects)
