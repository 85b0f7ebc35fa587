"""One transition under construction: the state so far and the commands it asks for.

`step` is pure from the outside; inside it, handlers change a draft that is thrown away when one of them raises, so
that an illegal event changes nothing. Every change of the log goes through `log`, the only place that gives numbers
(P6), and every transcript entry through `enter`, the only place that extends the chain.
"""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, JsonValue

from perdure.core.approvals import edited_note
from perdure.core.bounds import Bounds
from perdure.core.commands import Append, Command
from perdure.core.content import EntryKind, ResultStatus, ToolEntry, ToolResult
from perdure.core.digests import body_of, chained, cut_text, digest, safe_json, safe_text
from perdure.core.errors import IllegalEvent, InvariantBroken
from perdure.core.limits import PROBLEM_BYTES_MAX
from perdure.core.log import EntryRef, LogEvent, LogKind
from perdure.core.state import CallState, Outcome, Run, TaskState, TaskStatus, Turn

ModelT = TypeVar("ModelT", bound=BaseModel)


class Draft:
    """The transition from one state to the next."""

    def __init__(self, state: TaskState, at_ms: int) -> None:
        self.state = state
        self.at_ms = at_ms
        self.commands: list[Command] = []
        self.asks_other = False
        """Whether this transition opens or closes a question to a person."""

    @property
    def bounds(self) -> Bounds:
        """The limits that this task decides by."""
        return self.state.agent.bounds

    def ask(self, command: Command) -> None:
        """Ask for a command; commands leave in this order."""
        self.commands.append(command)

    def set(self, **changes: object) -> None:
        """Replace fields of the state."""
        self.state = replaced(self.state, **changes)

    def log(self, kind: LogKind, *, entries: Sequence[EntryRef] = (), **data: JsonValue) -> int:
        """Append a row to the log and return its number."""
        return self.log_row(kind, data, entries)

    def log_row(self, kind: LogKind, data: dict[str, JsonValue], entries: Sequence[EntryRef] = ()) -> int:
        """Append a row whose data is given as a whole; whatever a person or a model wrote is made safe to store."""
        number = self.state.last_number + 1
        run, turn = self.state.run, self.state.turn
        self.set(last_number=number)
        self.ask(
            Append(
                event=LogEvent(
                    number=number,
                    kind=kind,
                    at_ms=self.at_ms,
                    run=run.number if run else 0,
                    turn=turn.number if turn else 0,
                    data={key: safe_json(value) for key, value in data.items()},
                    entries=tuple(entries),
                )
            )
        )
        return number

    def enter(self, kind: EntryKind, content: str, inline: dict[str, JsonValue] | None = None) -> EntryRef:
        """Extend the transcript by the entry named by the digest `content`; the row that carries it is logged next."""
        entry = self.state.entries + 1
        chain = chained(self.state.chain, content)
        self.set(entries=entry, chain=chain)
        return EntryRef(entry=entry, kind=kind, digest=content, chain=chain, inline=inline)

    # --- parts of the state that must be there, or this is a defect ---------------------------------------------

    @property
    def run(self) -> Run:
        """The open run."""
        if self.state.run is None:
            raise InvariantBroken("R8", "there is no open run")
        return self.state.run

    @property
    def turn(self) -> Turn:
        """The current turn."""
        if self.state.turn is None:
            raise InvariantBroken("R14", "there is no turn")
        return self.state.turn

    def set_run(self, **changes: object) -> None:
        """Replace fields of the open run."""
        self.set(run=replaced(self.run, **changes))

    def set_turn(self, **changes: object) -> None:
        """Replace fields of the current turn."""
        self.set(turn=replaced(self.turn, **changes))

    def set_call(self, index: int, **changes: object) -> None:
        """Replace fields of one call of the current turn."""
        calls = list(self.turn.calls)
        calls[index] = replaced(calls[index], **changes)
        self.set_turn(calls=tuple(calls))

    def open_call(self, turn: int, index: int) -> CallState:
        """Return the named call when it is open; refuses every other as illegal."""
        current = self.state.turn
        if current is None or current.number != turn or not 0 <= index < len(current.calls):
            raise IllegalEvent(f"task {self.state.task_id} has no call {turn}/{index} now")
        call = current.calls[index]
        if call.outcome is not None:
            raise IllegalEvent(f"call {turn}/{index} of task {self.state.task_id} is closed already")
        return call

    def set_status(
        self, status: TaskStatus, reason: str = "", message: str = "", extra: dict[str, JsonValue] | None = None
    ) -> None:
        """Move the task's A2A state, logged only when something changed; leaving a terminal state breaks P5.

        A task that waits for other answers than before says so again: whoever answered is told how it stands, and
        everybody for what it waits now.
        """
        if self.state.terminal:
            raise InvariantBroken("P5", f"task {self.state.task_id} is {self.state.status} already")
        if (status, reason) == (self.state.status, self.state.reason) and not (reason == "help" and self.asks_other):
            return
        self.set(status=status, reason=reason)
        data: dict[str, JsonValue] = {"state": status, "reason": reason, "message": message}
        self.log_row("task.status", data | (extra or {}))


def replaced(value: ModelT, **changes: object) -> ModelT:
    """Return a copy with changed fields. Values come from this package's own typed code and are not validated again."""
    unknown = changes.keys() - type(value).model_fields.keys()
    if unknown:
        raise InvariantBroken("R15", f"{type(value).__name__} has no fields {sorted(unknown)}")
    return value.model_copy(update=changes)


def made_result(call: CallState, status: ResultStatus, text: str, bytes_max: int = PROBLEM_BYTES_MAX) -> Outcome:
    """Return the outcome of a call whose result the machine itself words (R14), or takes from a person."""
    shown = edited_note(call.approval) + cut_text(safe_text(text), bytes_max, " [cut]")
    body = body_of(ToolEntry(result=ToolResult(call_id=call.call_id, tool=call.tool, status=status, text=shown)))
    return Outcome(digest=digest(body), status=status, inline=body)


def problem_text(text: str) -> str:
    """Return an error's text as it may stand in rows and in the state: safe, and bounded (P7)."""
    return cut_text(safe_text(text), PROBLEM_BYTES_MAX, " [cut]")
