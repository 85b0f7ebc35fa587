"""What store tests write: a task's header, rows of its log, requests to its ledger."""

from itertools import count
from typing import Any

from perdure.core.content import Message, ModelEntry, ModelReply, TextPart, ToolEntry, ToolResult, UserEntry
from perdure.core.digests import body_of, chained, digest
from perdure.core.effects import EffectRequest, effect_key
from perdure.core.log import Batch, EntryRef, LogEvent, TaskHeader
from perdure.store import SqlStore

_tasks = count(1)


def header(task_id: str | None = None, context_id: str = "context", principal: str = "ada") -> TaskHeader:
    task_id = task_id or f"task-{next(_tasks)}"
    return TaskHeader(task_id=task_id, context_id=context_id, agent_id="shop", principal=principal)


def row(number: int, **fields: Any) -> LogEvent:
    return LogEvent(**{"number": number, "kind": "run.started", "at_ms": 1_000 + number, **fields})


def rows(first: int, last: int) -> tuple[LogEvent, ...]:
    return tuple(row(number) for number in range(first, last + 1))


def status(number: int, state: str, reason: str = "") -> LogEvent:
    return row(number, kind="task.status", data={"state": state, "reason": reason})


def batch(task_id: str, *rows: LogEvent, **fields: Any) -> Batch:
    return Batch(task_id=task_id, rows=rows, **fields)


def message(message_id: str, text: str = "hello") -> Message:
    return Message(message_id=message_id, parts=(TextPart(text=text),))


def message_digest(said: Message) -> str:
    return digest(body_of(UserEntry(message=said)))


def tool_entry(text: str = "shipped", status: Any = "ok") -> ToolEntry:
    return ToolEntry(result=ToolResult(call_id="call-1", tool="ship", status=status, text=text))


def reply(text: str = "done") -> ModelReply:
    return ModelReply(text=text, model="scripted")


def reply_digest(made: ModelReply) -> str:
    return digest(body_of(ModelEntry(reply=made)))


def inline(entry: int, text: str, previous: str) -> EntryRef:
    """An entry that the workflow itself made, so that its body travels in the row."""
    body = body_of(tool_entry(text))
    named = digest(body)
    return EntryRef(entry=entry, kind="tool", digest=named, chain=chained(previous, named), inline=body)


def talk(count_: int, first_number: int = 1) -> tuple[LogEvent, ...]:
    """Rows that bring one entry each; the chain starts anew."""
    made: list[LogEvent] = []
    chain = ""
    for entry in range(1, count_ + 1):
        ref = inline(entry, f"result {entry}", chain)
        chain = ref.chain
        made.append(row(first_number + entry - 1, kind="tool.finished", entries=(ref,)))
    return tuple(made)


def request(task_id: str, turn: int = 1, generation: int = 1, **fields: Any) -> EffectRequest:
    given = {
        "key": effect_key(task_id, turn, 0, generation),
        "task_id": task_id,
        "run": 1,
        "turn": turn,
        "index": 0,
        "attempt": 1,
        "tool": "ship",
        "effect": "once",
        "request_digest": "asked",
        "worker": "worker-1",
    }
    return EffectRequest.model_validate({**given, **fields})


async def new_task(store: SqlStore, context_id: str = "context") -> str:
    made = header(context_id=context_id)
    await store.write(batch(made.task_id, row(1, kind="task.created"), header=made), 100)
    return made.task_id


async def numbers(store: SqlStore, task_id: str, after: int = 0, limit: int = 500) -> list[int]:
    return [stored.event.number for stored in await store.events_after(task_id, after, limit)]
