"""What a server says of a task, in this client's words; pure.

A2A sends a task as it stands, a message, or an update of a task's status or of an artifact. A server that numbers
(our extension: each event of a task is one update, 1, 2, 3… without a gap) also says which event an update is, of which
run and turn. Everything that is decided about such a task is decided by those numbers. Of any other server there is
only what A2A itself has: states, in the order in which they come.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from a2a.types.a2a_pb2 import Message, Part, Role, StreamResponse, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from pydantic import JsonValue

from perdure.a2a import extension

TERMINAL: Final = frozenset({"completed", "failed", "canceled", "rejected"})
ASKING: Final = frozenset({"input_required", "auth_required"})
"""States in which a task waits for whoever gave it."""


DRAFT: Final = "draft"
"""A piece of a reply that is still being written: no event, without a number, and gone if it is lost."""


@dataclass(frozen=True)
class Said:
    """One thing that a server said.

    `number` is None where the server does not number. `kind` is the event's kind, or `task`, `status`, `artifact`,
    `message`. `text` is what is to be read, `text_id` tells a text that only stands there still from a new one.
    `appends` to the artifact of that name. `data` is what our extension tells of the event.
    """

    kind: str
    task_id: str = ""
    number: int | None = None
    state: str = ""
    text: str = ""
    text_id: str = ""
    artifact: str = ""
    appends: bool = False
    run: int = 0
    turn: int = 0
    data: dict[str, JsonValue] = field(default_factory=dict)


def said_in(response: StreamResponse) -> Said:
    """Return what an element of a stream says."""
    match response.WhichOneof("payload"):
        case "task":
            return said_of_task(response.task)
        case "message":
            return Said("message", response.message.task_id, text=text_of(response.message.parts))
        case "artifact_update":
            update = response.artifact_update
            told, number = _told(update.metadata)
            return Said(
                str(told.pop("kind", "artifact")),
                update.task_id,
                number,
                text=artifact_text(update.artifact.parts),
                artifact=update.artifact.artifact_id,
                appends=update.append,
                run=_number(told.pop("run", 0)) or 0,
                turn=_number(told.pop("turn", 0)) or 0,
                data=told,
            )
        case _:
            status_update = response.status_update
            told, number = _told(status_update.metadata)
            return Said(
                str(told.pop("kind", "status")),
                status_update.task_id,
                number,
                state=state_of(status_update.status),
                text=text_of(status_update.status.message.parts),
                text_id=status_update.status.message.message_id,
                run=_number(told.pop("run", 0)) or 0,
                turn=_number(told.pop("turn", 0)) or 0,
                data=told,
            )


def said_of_task(task: Task) -> Said:
    """Return what a task as it stands says; its text is that of its status."""
    told, number = _told(task.metadata)
    words = task.status.message
    return Said("task", task.id, number, state_of(task.status), text_of(words.parts), words.message_id, data=told)


def answer_of(task: Task) -> str:
    """Return what the agent of a task that has ended answered: its artifacts, else what it said last."""
    artifacts = "\n".join(filter(None, (artifact_text(each.parts) for each in task.artifacts)))
    if artifacts:
        return artifacts
    latest: list[Message] = [*task.history, *([task.status.message] if task.status.HasField("message") else [])]
    return next((text_of(each.parts) for each in reversed(latest) if each.role == Role.ROLE_AGENT), "")


def last_words(task: Task) -> str:
    """Return the latest that was said in the task, as far as it is here."""
    return text_of(task.status.message.parts) or next((text_of(each.parts) for each in reversed(task.history)), "")


def state_of(status: TaskStatus) -> str:
    """Return the state as this package writes it: `input_required` and so on."""
    name: str = TaskState.Name(status.state) if status.state in TaskState.values() else "TASK_STATE_UNSPECIFIED"
    return name.removeprefix("TASK_STATE_").lower()


def text_of(parts: Iterable[Part]) -> str:
    """Return parts as text: data as JSON, files by their name."""
    return "\n".join(filter(None, (_part_text(part) for part in parts)))


def artifact_text(parts: Iterable[Part]) -> str:
    """Return an artifact's parts as text. Texts are joined as they are: servers keep each chunk as a part."""
    found = ""
    for part in parts:
        apart = "" if part.WhichOneof("content") == "text" or not found else "\n"
        found += apart + _part_text(part)
    return found


def _part_text(part: Part) -> str:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "data":
            return json.dumps(MessageToDict(part.data), ensure_ascii=False)
        case "url":
            return f"[{part.filename or 'a file'}: {part.url}]"
        case "raw":
            return f"[{part.filename or 'a file'}, {len(part.raw)} bytes]"
        case _:
            return ""


def _told(metadata: Struct) -> tuple[dict[str, JsonValue], int | None]:
    told = {name: _whole(value) for name, value in extension.asked(metadata).items()}
    return told, _number(told.pop("generation", None))


def _whole(value: JsonValue) -> JsonValue:
    """Return a number as it was meant: protobuf's structs know no whole ones."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(given: JsonValue) -> int | None:
    """Return a number that came as one, or in digits; None for anything else."""
    if isinstance(given, str) and given.isascii() and given.isdecimal():
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) else None
