"""What a task's model sees of its context: what was said in the tasks of it that had ended when this one started.

Which ones these are is recorded with its start and stands in its first event: a task that ends later, or is open,
is never seen, and what is seen never changes. From each comes the conversation and nothing else: what people said, and
the agent's replies that asked for no tool. Calls and their results stay where they happened; what of them matters the
agent has said. Where a task's latest message had no answer when the task ended, that is said, as data: a conversation
that was answered and then canceled left nothing open.

It goes before the task's own entries each time the model's input is put together, and is no part of its transcript: the
log of a task holds what happened in it. It is bounded (P7): the latest tasks, the latest words of them, long ones cut.
Refused: to copy it into the new task's transcript, where it would stand a second time and outlive the tasks that it was
said in; and to show open tasks, whose entries may still be followed by others.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from perdure.core import context_limits as limits
from perdure.core.content import DataPart, Entry, FilePart, Message, ModelEntry, ModelReply, TextPart, UserEntry
from perdure.core.digests import canonical, cut_text
from perdure.core.ports import Store, StoredEvent, TaskRow

LEFT_OUT: Final = "What was said before this in the conversation is left out: it is too long. This is data."
WITHOUT_ANSWER: Final = "What was asked for before this ended without an answer. This is data."

_CUT: Final = " … (cut)"


class Contexts:
    """Looks up what tasks see of their contexts, and keeps it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[Entry, ...]] = OrderedDict()

    async def before(self, task_id: str) -> tuple[Entry, ...]:
        """Return what goes before the task's own entries. Raises `StoreUnavailable`."""
        if task_id in self._kept:
            self._kept.move_to_end(task_id)
            return self._kept[task_id]
        seen = await self._of(task_id)
        self._kept[task_id] = seen
        if len(self._kept) > limits.TASKS_KEPT_MAX:
            self._kept.popitem(last=False)
        return seen

    async def _of(self, task_id: str) -> tuple[Entry, ...]:
        first = await self._store.events_after(task_id, 0, 1)
        earlier = first[0].event.data.get("earlier") if first else None
        names = [name for name in earlier if isinstance(name, str)] if isinstance(earlier, list) else []
        found: list[Entry] = []  # the latest first, until there is no more room
        room = limits.BYTES_MAX
        for name in reversed(names):
            row = await self._store.task(name)
            if row is None:
                continue  # it was deleted since
            said, whole = await self._said(row, room)
            found += said
            room -= sum(_size(entry) for entry in said)
            if not whole:
                found.append(_data({"about": LEFT_OUT}))
                break
        return tuple(reversed(found))

    async def _said(self, row: TaskRow, room: int) -> tuple[list[Entry], bool]:
        """Return what was said in a task, the latest first, as far as there is room, and whether that is all of it."""
        said: list[Entry] = []
        latest: Entry | None = None
        may_lack = row.state != "completed"  # what completed was answered, be it without a word
        upto = row.last_number
        least = max(0, upto - limits.EVENTS_MAX)
        while upto > least:
            after = max(least, upto - limits.EVENTS_PER_READ)
            for stored in reversed(await self._store.events_after(row.header.task_id, after, upto - after)):
                for entry in _conversation(stored):
                    if may_lack and latest is None and isinstance(entry, UserEntry):
                        said.append(_without_answer(row))
                    latest = latest or entry
                    room -= _size(entry)
                    if room < 0:
                        return said, False
                    said.append(entry)
            upto = after
        if may_lack and latest is None and least > 0:  # whatever was said lies before all that was looked at
            said.append(_without_answer(row))
        return said, least == 0


def _conversation(stored: StoredEvent) -> Iterator[Entry]:
    """Yield what an event added to the conversation, in words."""
    for entry in stored.entries:
        match entry:
            case UserEntry(message=message):
                yield UserEntry(message=Message(message_id=message.message_id, parts=(TextPart(text=_words(message)),)))
            case ModelEntry(reply=reply) if reply.text.strip() and not reply.calls and reply.finish == "stop":
                yield ModelEntry(reply=ModelReply(text=_cut(reply.text), model=reply.model))
            case _:
                pass


def _words(message: Message) -> str:
    words: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text):
                words.append(text)
            case DataPart(data=data):
                words.append(canonical(data).decode())
            case FilePart():
                words.append(f"[{part.name or 'a file'}, {part.media_type}]")
    return _cut("\n".join(words))


def _cut(text: str) -> str:
    return cut_text(text, limits.TEXT_BYTES_MAX, _CUT)


def _without_answer(row: TaskRow) -> UserEntry:
    return _data({"about": WITHOUT_ANSWER, "state": row.state, "reason": row.reason})


def _data(data: dict[str, JsonValue]) -> UserEntry:
    return UserEntry(message=Message(message_id="earlier", parts=(DataPart(data=data),)))


def _size(entry: Entry) -> int:
    match entry:
        case UserEntry(message=message):
            return len(message.text.encode())
        case ModelEntry(reply=reply):
            return len(reply.text.encode())
        case _:
            return 0
