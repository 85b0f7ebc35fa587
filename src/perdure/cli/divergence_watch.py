"""Noticing that a task was parked because store and Temporal disagree: the log, which is followed, cannot say so."""

import asyncio

from perdure.app.task import Task
from perdure.core.errors import Diverged, PerdureError

LOOK_FIRST_S = 1.0
LOOK_MAX_S = 60.0
"""It shows with a task's first write after the restore; later looks are for writes that come late."""


async def until_diverged(task: Task) -> None:
    """Raise `Diverged` when the task is parked because of it. Asks ever more rarely: each time takes a worker."""
    pause_s = LOOK_FIRST_S
    while True:
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LOOK_MAX_S)
        try:
            why = (await task.monitor()).diverged
        except PerdureError:
            continue  # no worker just now, or over: whoever follows the task learns it from the log
        if why:
            raise Diverged(
                f"task {task.id} is parked: its store and Temporal disagree, and nothing is called ({why}); put both "
                "back from one moment and send a message"
            )
