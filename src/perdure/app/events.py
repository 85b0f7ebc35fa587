"""A task's events as users see them."""

from dataclasses import dataclass

from pydantic import JsonValue

from perdure.core.content import Entry, ModelEntry, ToolEntry, UserEntry
from perdure.core.log import LogKind
from perdure.core.ports import StoredEvent


@dataclass(frozen=True)
class TaskEvent:
    """One numbered event (P6).

    `at_ms` is in milliseconds since the epoch. `entries` is what came to the transcript with it, `subject` the
    message, reply or result that it is about.
    """

    number: int
    kind: LogKind
    at_ms: int
    run: int
    turn: int
    data: dict[str, JsonValue]
    entries: tuple[Entry, ...] = ()
    subject: Entry | None = None

    @classmethod
    def of(cls, stored: StoredEvent) -> "TaskEvent":
        """Return the event of a stored row."""
        row = stored.event
        return cls(row.number, row.kind, row.at_ms, row.run, row.turn, dict(row.data), stored.entries, stored.subject)

    @property
    def help_id(self) -> str:
        """The help request's id, for `help.*`; empty otherwise."""
        return str(self.data.get("help_id", ""))

    @property
    def needs_approval(self) -> bool:
        """Whether this asks for an approval: `Task.approve` and `Task.decline` answer it."""
        return self.kind == "help.requested" and self.data.get("help_kind") == "approval"

    @property
    def call_digest(self) -> str:
        """The digest of the exact call that an approval is asked for, or was given to; empty otherwise."""
        return str(self.data.get("call_digest", ""))

    @property
    def text(self) -> str:
        """What was said or asked, in words: a message, a reply, a result, a question, a reason."""
        for name in ("text", "message", "reason"):
            if self.data.get(name):
                return str(self.data[name])
        about = (self.subject,) if self.subject is not None else self.entries
        return "\n".join(filter(None, (_text(entry) for entry in about)))


def _text(entry: Entry) -> str:
    match entry:
        case UserEntry(message=message):
            return message.text
        case ModelEntry(reply=reply):
            return reply.text
        case ToolEntry(result=result):
            return result.text
