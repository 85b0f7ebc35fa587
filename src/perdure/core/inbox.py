"""A task's inbox as its log tells it: what waits, in which lane, and whether it may run (rules R1, R2, R5, R6, R9).

Positions say everything: a message has the number of its admission or of its latest move to `steer` as its tail, the
task that of its latest end without an answer as its head, and what lies behind the head is parked. Each of them stands
in a row of the log, so that an inbox is read from the log alone: without a worker, and the same for everybody.
"""

from collections.abc import Iterable
from typing import cast

from perdure.core.content import Frozen, Lane
from perdure.core.log import LogEvent
from perdure.core.state import TaskState


class WaitingMessage(Frozen):
    """A message that waits: `admitted` is the number of its admission, `tail` that of its latest move, if it had one.

    A parked message (not `runnable`) starts nothing by itself: it goes with the next message, or when it is moved. Both
    numbers are 0 as long as it stands in its task's start alone, because no worker has taken that up yet.
    """

    message_id: str
    lane: Lane
    admitted: int
    tail: int
    runnable: bool


class Inbox(Frozen):
    """What waits in a task as of its event `number`, in the order in which it goes: steers first, then the queue.

    `head` is the number of the latest end that left no answer; 0 where there was none.
    """

    number: int = 0
    head: int = 0
    messages: tuple[WaitingMessage, ...] = ()

    @property
    def runnable(self) -> tuple[WaitingMessage, ...]:
        """What opens a run, or joins the one that is open."""
        return tuple(each for each in self.messages if each.runnable)

    @property
    def parked(self) -> tuple[WaitingMessage, ...]:
        """What waits for the next message, or for a move to `steer`."""
        return tuple(each for each in self.messages if not each.runnable)

    def after(self, row: LogEvent) -> "Inbox":
        """Return the inbox as of the next row of the log."""
        name = str(row.data.get("message_id", ""))
        head, messages = self.head, list(self.messages)
        match row.kind:
            case "message.admitted":
                lane = cast(Lane, row.data.get("lane"))
                messages.append(
                    WaitingMessage(message_id=name, lane=lane, admitted=row.number, tail=row.number, runnable=True)
                )
            case "message.moved":
                moved = {"lane": "steer", "tail": row.number}
                messages = [each.model_copy(update=moved) if each.message_id == name else each for each in messages]
            case "message.promoted" | "message.withdrawn":
                messages = [each for each in messages if each.message_id != name]
            case "run.stopped_before_start":
                head = row.number
            case "run.ended" if row.data.get("end") != "answered":
                head = row.number
            case "task.status" if row.data.get("unprocessed") is not None:
                messages = []  # the task has ended, and this very row lists what was not acted on
            case _:
                return self.model_copy(update={"number": row.number})
        return _inbox(row.number, head, messages)


def inbox_at_start(message_ids: Iterable[str]) -> Inbox:
    """Return the inbox of a task without a log: what it was started with, which is durable with the start (P1)."""
    return Inbox(
        messages=tuple(
            WaitingMessage(message_id=each, lane="queue", admitted=0, tail=0, runnable=True) for each in message_ids
        )
    )


def inbox_of(state: TaskState) -> Inbox:
    """Return a task's inbox by its state."""
    waiting = (
        WaitingMessage(message_id=p.message_id, lane=p.lane, admitted=p.admitted, tail=p.tail, runnable=True)
        for p in state.inbox
    )
    return _inbox(state.last_number, state.head, () if state.terminal else waiting)


def _inbox(number: int, head: int, messages: Iterable[WaitingMessage]) -> Inbox:
    told = (each.model_copy(update={"runnable": each.tail > head}) for each in messages)
    return Inbox(number=number, head=head, messages=tuple(sorted(told, key=_place)))


def _place(message: WaitingMessage) -> tuple[bool, int]:
    queued = message.lane == "queue"
    return queued, message.admitted if queued else message.tail
