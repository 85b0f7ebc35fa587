"""What the demo is judged by: three witnesses that do not know of each other, and what the director saw.

The outside world's own log, Temporal's history and the task's event log (with the effect ledger) are each read anew
when the play is over. The director's notes are what no witness can know: which workers it started, how they died, and
which call it had cut off.
"""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue
from temporalio.client import Client

from perdure.app.app import App
from perdure.app.events import TaskEvent
from perdure.cli.demo.call_log import ReceivedCall
from perdure.cli.demo.waits import Wait, waits
from perdure.cli.demo.world import World
from perdure.core import limits
from perdure.core.attempts import AttemptRow
from perdure.core.content import Frozen
from perdure.core.ports import EffectRow
from perdure.temporal.history import read_history

Kill = Literal["twice", "waiting"]
"""When the worker is killed: while a call is open and again while the task waits, or only while it waits."""


class Waiting(Frozen):
    """What Temporal had open for the task, and how many attempts its history held, at one moment.

    The director goes by it; the verdict does not, since a moment was waited for at which nothing was open.
    """

    attempts: int = 0
    activities: int = 0
    timers: int = 0
    workflow_task: bool = False

    @property
    def quiet(self) -> bool:
        """Whether nothing was open: the task used no worker and would not have woken one."""
        return not (self.activities or self.timers or self.workflow_task)


async def waiting(client: Client, task_id: str) -> Waiting:
    """Look what Temporal has open for the task; asks the server alone, no worker."""
    described = (await client.get_workflow_handle(task_id).describe()).raw_description
    history = await read_history(client, task_id)
    return Waiting(
        attempts=len(history.attempts),
        activities=len(described.pending_activities),
        timers=len(history.timers),
        workflow_task=described.HasField("pending_workflow_task"),
    )


async def working_pids(client: Client, task_id: str) -> tuple[int, ...]:
    """Return the processes that work on the task's open activities, by the server's word."""
    described = (await client.get_workflow_handle(task_id).describe()).raw_description
    return tuple(pid_in(activity.last_worker_identity) for activity in described.pending_activities)


def pid_in(identity: str) -> int:
    """Return the process number in a worker's identity; 0 where there is none."""
    pid = identity.partition("@")[0]
    return int(pid) if pid.isdecimal() else 0


class Notes(Frozen):
    """The director's notes.

    `workers` are the pids in the order of their start. `killed` are those that were killed, `killed_at_ms` when, and
    `deaths` how they ended (-9 is SIGKILL). `held_key` is the key of the call that was cut off. `seen` are the event
    numbers in the order in which they were followed live. `waiting` is what Temporal had open when the task waited for
    the customer and a worker was killed. With `a2a` the customer came to a server: `servers` are its pids, one more
    after each kill, `server_deaths` how they ended, and `told` is the final answer as it came over A2A.
    """

    task_id: str
    kill: Kill
    scripted: bool
    by_hand: bool
    orders_before: tuple[dict[str, JsonValue], ...]
    workers: tuple[int, ...] = ()
    deaths: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    killed_at_ms: tuple[int, ...] = ()
    held_key: str = ""
    seen: tuple[int, ...] = ()
    waiting: Waiting | None = None
    a2a: bool = False
    servers: tuple[int, ...] = ()
    server_deaths: tuple[int, ...] = ()
    told: str = ""


@dataclass(frozen=True)
class Evidence:
    """Everything that the verdict looks at."""

    notes: Notes
    calls: tuple[ReceivedCall, ...]
    snapshot: dict[str, list[dict[str, Any]]]
    history: tuple[AttemptRow, ...]
    events: tuple[TaskEvent, ...]
    effects: tuple[EffectRow, ...]
    waits: tuple[Wait, ...]

    def of(self, kind: str) -> list[TaskEvent]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if event.kind == kind]

    @property
    def cut_call(self) -> tuple[int, int | None] | None:
        """The turn and index of the call that was cut off, as the ledger has them; None when none was."""
        return next(((row.turn, row.index) for row in self.effects if row.key == self.notes.held_key), None)

    def received(self, tool: str) -> list[ReceivedCall]:
        """Return the calls of one tool that the outside world received."""
        return [call for call in self.calls if call.tool == tool]


async def collect(app: App, client: Client, world: World, notes: Notes) -> Evidence:
    """Read every witness anew. Raises `TaskNotFound` when Temporal does not know the task."""
    events: list[TaskEvent] = []
    while True:
        after = events[-1].number if events else 0
        page = await app.store.events_after(notes.task_id, after, limits.EVENTS_PER_PAGE_MAX)
        if not page:
            break
        events.extend(TaskEvent.of(stored) for stored in page)
    history = await read_history(client, notes.task_id)
    return Evidence(
        notes=notes,
        calls=tuple(world.calls()),
        snapshot=world.snapshot(),
        history=history.attempts,
        events=tuple(events),
        effects=await app.store.effects(notes.task_id),
        waits=await waits(client, notes.task_id),
    )
