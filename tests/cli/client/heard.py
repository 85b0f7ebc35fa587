"""What a client hears of a task that is driven by hand: the machine's log, told by the front door's own translation."""

from a2a.types.a2a_pb2 import StreamResponse, TaskArtifactUpdateEvent

from perdure.a2a.translate import TaskView
from perdure.cli.client.ends import Ending, MessageEnd
from perdure.cli.client.order import InOrder
from perdure.cli.client.said import Said, said_in
from perdure.core.content import Entry, ModelEntry, ModelReply, ToolCall
from perdure.core.log import LogEvent
from perdure.core.ports import StoredEvent
from tests.core.task import Task


def heard(task: Task) -> list[Said]:
    """Return all updates of the task, in the order of their numbers. A reply of turn n says `answer n`."""
    view, found = TaskView("t", "c", 0), []
    for row in task.log:
        update = view.take(StoredEvent(event=row, entries=_entries(row)))
        if isinstance(update, TaskArtifactUpdateEvent):
            found.append(said_in(StreamResponse(artifact_update=update)))
        else:
            found.append(said_in(StreamResponse(status_update=update)))
    return found


def _entries(row: LogEvent) -> tuple[Entry, ...]:
    if row.kind != "model.answered" or not row.entries:
        return ()
    listed = row.data["calls"]
    calls = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    asked = tuple(ToolCall(call_id=str(i), tool=str(each["tool"]), arguments={}) for i, each in enumerate(calls))
    finish = row.data["finish"]
    reply = ModelReply.model_validate({"text": f"answer {row.turn}", "calls": asked, "finish": finish})
    return (ModelEntry(reply=reply),)


def fed(ending: Ending, arriving: list[Said], seen: int = 0) -> Ending:
    """Feed what arrives through the reordering, as the client does, until it is done."""
    order = InOrder(seen)
    for each in arriving:
        for said in order.take(each):
            ending.take(said)
            if ending.end is not None:
                return ending
    return ending


def end_of(task: Task, message_id: str) -> Ending:
    """Return what becomes of a message by the task's whole log."""
    return fed(MessageEnd(message_id), heard(task))
