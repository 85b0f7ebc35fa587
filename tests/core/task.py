"""A task to drive by hand: events in, commands kept as flights, waits and rows until a test answers them.

It plays the workflow: it stores messages unless told not to, and nothing else happens by itself. Every step goes past
the witness, and is asked for what it owes, so that each test of a rule is a test of all promises too.
"""

import json
from typing import Any

from perdure.core import events
from perdure.core.agent import AgentSpec, ModelSpec, ToolSpec
from perdure.core.approvals import Ruling
from perdure.core.commands import (
    Append,
    AwaitExpiry,
    CallModel,
    CallTool,
    Command,
    DropExpiry,
    Fence,
    Persist,
    StopFlights,
    StoreMessage,
    Wait,
)
from perdure.core.content import Finish, Lane, Usage
from perdure.core.effects import Late, request_digest
from perdure.core.failure import Failure, FailureKind
from perdure.core.log import LogEvent
from perdure.core.machine import new_task, outstanding, step
from perdure.core.questions import Manner
from perdure.core.state import TaskState
from tests.core.owed import Owed
from tests.core.witness import Place, Witness

TOOLS = (
    ToolSpec(name="get_order", effect="read", parallel=True),
    ToolSpec(name="look_up", effect="read"),
    ToolSpec(name="label", effect="idempotent"),
    ToolSpec(name="refund", effect="once"),
    ToolSpec(name="notify", effect="once", parallel=True),
    ToolSpec(name="pay", effect="once", in_doubt="ask"),
    ToolSpec(name="post", effect="once", in_doubt="ask", parallel=True),
    ToolSpec(name="wire", effect="once", in_doubt="fail", parallel=True),
)


def call(
    tool: str,
    arguments: str = "{}",
    *,
    problem: str | None = None,
    question: str | None = None,
    call_id: str = "c",
    manner: Manner | None = None,
    ruling: Ruling | None = None,
    unknown: bool = False,
) -> events.CallSummary:
    """Return one call of a reply."""
    given = json.loads(arguments) if arguments.startswith("{") else {"text": arguments}
    named = request_digest(tool, given)
    return events.CallSummary(
        call_id=call_id,
        tool=tool,
        arguments_digest=named,
        arguments_json=arguments,
        problem=problem,
        question=question,
        manner=manner,
        ruling=ruling,
        unknown=unknown,
    )


def ask(question: str, **manner: Any) -> events.CallSummary:
    """Return a call that puts a question to a person, with choices, a form or an expiry where they are given."""
    return call("ask_participant", question, question=question, manner=Manner(**manner) if manner else None)


def asking(tool: str, arguments: str = "{}", **ruling: Any) -> events.CallSummary:
    """Return a call that waits for an approval."""
    return call(tool, arguments, ruling=Ruling(then="ask", rule=f"ask {tool}", **ruling))


class Task:
    """One task and everything that it asked for."""

    def __init__(self, *, stores: bool = True, watched: bool = True, **spec: Any) -> None:
        agent = AgentSpec(**({"agent_id": "shop", "model": ModelSpec(name="m"), "tools": TOOLS} | spec))
        self.state: TaskState = new_task("t", "c", agent)
        self.stores = stores
        self.now_ms = 1_000
        self.log: list[LogEvent] = []
        self.asked: list[Command] = []
        self.flights: dict[Place, CallModel | CallTool] = {}
        self.waits: dict[Place, Wait] = {}
        self.expiries: dict[str, AwaitExpiry] = {}
        self.unstored: list[str] = []
        self.witness = Witness(agent) if watched else None
        self.owed = Owed(self.witness) if self.witness else None
        self.apply(events.Created(at_ms=self.now_ms))

    def apply(self, event: events.Event) -> list[Command]:
        """Apply one event twice, see that both come out equal (P11), and keep what it asks for."""
        state, commands = step(self.state, event)
        if step(self.state, event) != (state, commands):
            raise AssertionError(f"P11: two steps with the same {type(event).__name__} differ")
        before = self.owed.look(event) if self.owed is not None else None
        self.state = state
        for command in commands:
            self._keep(command)
        if self.witness is not None:
            self.witness.observe(event, commands, self.state)
        if self.owed is not None and before is not None:
            self.owed.settle(before, event, commands, self.state)
        if self.witness is not None:
            self.witness.rest(self.state, bool(self.flights or self.waits or self.unstored))
        return list(commands)

    def _keep(self, command: Command) -> None:
        self.asked.append(command)
        match command:
            case Append(event=row):
                self.log.append(row)
            case CallModel() | CallTool():
                self.flights[_place(command)] = command
            case Wait():
                self.waits[command.turn, command.index] = command
            case AwaitExpiry(help_id=help_id):
                self.expiries[help_id] = command
            case DropExpiry(help_id=help_id):
                self.expiries.pop(help_id, None)  # a run that ends has stopped it already
            case StopFlights():
                self.waits.clear()
                self.expiries.clear()
            case StoreMessage(message_id=message_id):
                self.unstored.append(message_id)
            case Fence() | Persist():
                pass

    def at(self) -> int:
        """Return the next instant."""
        self.now_ms += 10
        return self.now_ms

    # --- people -------------------------------------------------------------------------------------------------

    def send(self, message_id: str, lane: Lane | None = None, content: str | None = None) -> None:
        """Admit a message, and store it unless this task stores by hand."""
        content = content or f"entry of {message_id}"
        self.apply(events.Admitted(at_ms=self.at(), message_id=message_id, digest=content, lane=lane))
        if self.stores:
            self.store()

    def store(self, *message_ids: str) -> None:
        """Confirm rows of messages; all that wait without ids."""
        ids = message_ids or tuple(self.unstored)
        self.unstored = [m for m in self.unstored if m not in ids]
        if ids:
            self.apply(events.Stored(at_ms=self.at(), message_ids=ids))

    def move(self, message_id: str) -> None:
        """Ask a pending message into the steer lane."""
        self.apply(events.Moved(at_ms=self.at(), message_id=message_id))

    def withdraw(self, message_id: str) -> None:
        """Take a pending message back."""
        self.apply(events.Withdrawn(at_ms=self.at(), message_id=message_id))

    def stop(self) -> None:
        """Stop the run."""
        self.apply(events.StopRequested(at_ms=self.at()))

    def cancel(self) -> None:
        """Cancel the task."""
        self.apply(events.CancelRequested(at_ms=self.at()))

    def answer(self, text: str, help_id: str | None = None, by: str = "") -> None:
        """Answer the first open question, or the one named."""
        name = help_id or self.state.help[0].help_id
        self.apply(events.Answered(at_ms=self.at(), help_id=name, text=text, by=by))

    def expire(self, help_id: str | None = None) -> None:
        """Let the time of the first question that expires be over, or of the one named."""
        expiry = self.expiries.pop(help_id or next(iter(self.expiries)))
        self.now_ms = max(self.now_ms, expiry.at_ms)
        self.apply(events.HelpExpired(at_ms=self.now_ms, help_id=expiry.help_id))

    def diverge(self, message: str = "the store has other rows") -> None:
        """The store refuses a write for good."""
        self.apply(events.StoreDiverged(at_ms=self.at(), message=message))

    # --- attempts -----------------------------------------------------------------------------------------------

    @property
    def model(self) -> CallModel:
        """The model attempt under way."""
        return next(f for f in self.flights.values() if isinstance(f, CallModel))

    @property
    def tools(self) -> list[CallTool]:
        """The tool attempts under way, in call order."""
        return sorted((f for f in self.flights.values() if isinstance(f, CallTool)), key=lambda f: f.index)

    def tool(self, index: int) -> CallTool:
        """Return the attempt under way at the call of that index."""
        return next(f for f in self.tools if f.index == index)

    def reply(
        self,
        *calls: events.CallSummary,
        text: bool = True,
        finish: Finish = "stop",
        tokens: int = 10,
        late: tuple[Late, ...] = (),
    ) -> None:
        """Let the model answer."""
        flight = self.model
        del self.flights[_place(flight)]
        self.apply(
            events.ModelReplied(
                at_ms=self.at(),
                turn=flight.turn,
                attempt=flight.attempt,
                digest=f"reply {flight.turn}",
                finish=finish,
                has_text=text,
                calls=calls,
                usage=Usage(input_tokens=tokens, output_tokens=1),
                model=flight.model,
                late=late,
            )
        )

    def model_fails(self, kind: FailureKind, *, jitter: float = 0.0, **failure: Any) -> None:
        """Let the model attempt fail."""
        flight = self.model
        del self.flights[_place(flight)]
        self.apply(
            events.ModelFailed(
                at_ms=self.at(),
                turn=flight.turn,
                attempt=flight.attempt,
                failure=Failure(kind=kind, message=f"it was {kind}", **failure),
                jitter=jitter,
            )
        )

    def finish(self, index: int, outcome: str = "result", status: str = "ok", reason: str = "", **more: Any) -> None:
        """Let a tool attempt come to something."""
        flight = self.tool(index)
        del self.flights[_place(flight)]
        names = {"result": f"result {flight.key}", "asks": f"question {flight.key} {flight.attempt}"}
        self.apply(
            events.ToolFinished.model_validate(
                {
                    "at_ms": self.at(),
                    "turn": flight.turn,
                    "index": index,
                    "attempt": flight.attempt,
                    "outcome": outcome,
                    "digest": names.get(outcome, ""),
                    "status": status,
                    "reason": reason,
                    **more,
                }
            )
        )

    def tool_fails(self, index: int, kind: FailureKind, *, jitter: float = 0.0, **failure: Any) -> None:
        """Let a tool attempt fail."""
        flight = self.tool(index)
        del self.flights[_place(flight)]
        self.apply(
            events.ToolFailed(
                at_ms=self.at(),
                turn=flight.turn,
                index=index,
                attempt=flight.attempt,
                failure=Failure(kind=kind, message=f"it was {kind}", **failure),
                jitter=jitter,
            )
        )

    def wait_over(self, index: int | None = None) -> int:
        """Let the wait of that operation pass; return how long it was."""
        wait = next(w for w in self.waits.values() if w.index == index)
        del self.waits[wait.turn, wait.index]
        self.now_ms += wait.delay_ms
        self.apply(events.BackoffOver(at_ms=self.at(), turn=wait.turn, index=wait.index))
        return wait.delay_ms

    def restart(self) -> None:
        """Carry the state over as JSON, as continue-as-new and every replay do; nothing is lost, nothing is new."""
        carried = TaskState.model_validate_json(self.state.model_dump_json())
        if carried != self.state:
            raise AssertionError("R15: the state changed when it was carried over")
        owed = {_place(c): c for c in outstanding(carried) if isinstance(c, CallModel | CallTool)}
        # Quarantine is decided when an attempt is scheduled, so it may have been decided anew.
        if {p: c.model_copy(update={"quarantine": False}) for p, c in owed.items()} != {
            p: c.model_copy(update={"quarantine": False}) for p, c in self.flights.items()
        }:
            raise AssertionError(f"a continued task asks for other attempts: {owed} instead of {self.flights}")
        waits = {(c.turn, c.index): c for c in outstanding(carried) if isinstance(c, Wait)}
        if waits != self.waits:
            raise AssertionError(f"a continued task waits for something else: {waits} instead of {self.waits}")
        expiries = {c.help_id: c for c in outstanding(carried) if isinstance(c, AwaitExpiry)}
        if expiries != self.expiries:
            raise AssertionError(f"a continued task lets something else expire: {expiries} instead of {self.expiries}")
        stores = [c.message_id for c in outstanding(carried) if isinstance(c, StoreMessage)]
        if not set(stores) <= set(self.unstored):
            raise AssertionError(f"a continued task stores other messages: {stores} instead of {self.unstored}")
        self.state = carried

    # --- what can be seen ---------------------------------------------------------------------------------------

    def kinds(self, *prefixes: str) -> list[str]:
        """Return the kinds of the log's rows that begin so."""
        return [row.kind for row in self.log if row.kind.startswith(prefixes)]

    def rows(self, kind: str) -> list[LogEvent]:
        """Return the log's rows of one kind."""
        return [row for row in self.log if row.kind == kind]

    @property
    def status(self) -> str:
        """The task's A2A state."""
        return self.state.status

    @property
    def promoted(self) -> list[object]:
        """The ids of promoted messages, in order."""
        return [row.data["message_id"] for row in self.rows("message.promoted")]

    @property
    def parked(self) -> list[str]:
        """The ids of pending messages that no run starts for (R2)."""
        return [p.message_id for p in self.state.inbox if p.tail <= self.state.head]

    @property
    def ends(self) -> list[tuple[object, object]]:
        """End and reason of each run."""
        return [(row.data["end"], row.data["reason"]) for row in self.rows("run.ended")]

    @property
    def transcript(self) -> list[str]:
        """The digests of the transcript's entries; for a text that the machine made, `status: text`."""
        names = []
        for ref in (ref for row in self.log for ref in row.entries):
            body: Any = ref.inline
            names.append(f"{body['result']['status']}: {body['result']['text']}" if body else ref.digest)
        return names


def _place(command: CallModel | CallTool) -> Place:
    return command.turn, command.index if isinstance(command, CallTool) else None
