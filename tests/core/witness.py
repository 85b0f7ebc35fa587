"""The witness: a second, simpler account of a task, kept from its events and commands alone.

It shares no code with the machine. It knows the promises and rules as sentences about rows, entries and attempts, and
compares the machine's state with its own account after every step; what breaks one is an AssertionError with the
number. It does not know when anything should happen, only what may not.

Longer than other files: it is one account of a task, and a part of it would witness nothing.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from perdure.core import events
from perdure.core.agent import AgentSpec
from perdure.core.bounds import FIRST
from perdure.core.commands import Append, CallModel, CallTool, Command, Fence, Persist, StopFlights, Wait
from perdure.core.effects import Answer
from perdure.core.failure import Failure
from perdure.core.log import EntryRef, LogEvent
from perdure.core.state import TaskState

TERMINAL = {"completed", "failed", "canceled"}
DEATHS_TO_QUARANTINE = 2
CLOSED_WATCHED = 20
SPENDING = {"model_transient", "timeout", "internal"}
"""Failures of a model call that spend one of its model's attempts, and that another model may do better with."""
SPENDING_CALLS = {"tool_raised", "timeout", "internal"}
"""Failures of a call that spend one of its attempts."""
WAITS_MAX_MS = 60_000

Place = tuple[int, int | None]
"""Turn and index of an operation; index None is the model call."""


@dataclass
class Waiting:
    """A pending message."""

    content: str
    lane: str
    admitted: int
    tail: int
    stored: bool = False


@dataclass
class Asked:
    """Whom the turn's attempts ask, and how often it failed; `last` is its latest failure."""

    turn: int = 0
    attempt: int = 0
    fallback: int = 0
    spent: int = 0
    last: Failure | None = None

    @property
    def elsewhere(self) -> bool:
        """Whether another model may be asked after that failure."""
        last = self.last
        return last is not None and (last.kind in SPENDING or (last.kind == "model_permanent" and last.elsewhere))


@dataclass
class Open:
    """The calls of the latest reply, and the results that they have."""

    turn: int = 0
    reply: str = ""
    calls: Sequence[events.CallSummary] = ()
    results: dict[int, str] = field(default_factory=dict)
    entered: int = 0
    attempts: dict[int, int] = field(default_factory=dict)
    generation: dict[int, int] = field(default_factory=dict)
    fails: dict[int, int] = field(default_factory=dict)
    """Failures of a call's own since its attempts began, anew with each key and each answer to what it asked."""
    faults: dict[int, int] = field(default_factory=dict)
    """All failures of a call's own, those that leave it in doubt too."""
    resolving: dict[int, bool] = field(default_factory=dict)
    asking: dict[int, str] = field(default_factory=dict)
    replies: dict[int, Answer] = field(default_factory=dict)
    """What a call asked a person and goes on with, from its latest question on."""


class Witness:
    """The account of one task."""

    def __init__(self, agent: AgentSpec) -> None:
        self.agent = agent
        self.number, self.entry, self.chain, self.head = 0, 0, "", 0
        self.pending: dict[str, Waiting] = {}
        self.gone: dict[str, str] = {}
        self.unanswered: list[str] = []
        self.run, self.runs, self.fence = 0, 0, 0
        self.winding = self.fed = self.answered = self.stopped = self.canceling = False
        self.told_to_stop, self.unreplied = 0, False
        self.status = ""
        self.turn, self.open = 0, Open()
        self.asked = Asked()
        self.flying: dict[Place, CallModel | CallTool] = {}
        self.waits: set[Place] = set()
        self.keys: dict[str, tuple[int, int]] = {}
        self.doubts: dict[str, tuple[str, str]] = {}
        self.told: dict[str, str] = {}
        self.late: dict[str, str] = {}
        self.closed: list[str] = []
        self.crashes, self.shared, self.dirty, self.dead = 0, 0, False, ""
        self.asks: dict[str, LogEvent] = {}
        self.approved: dict[tuple[int, int], LogEvent] = {}
        self.spent: set[str] = set()
        self.at_ms = 0

    def observe(self, event: events.Event, commands: Sequence[Command], state: TaskState) -> None:
        """Take one step in; raise what it breaks."""
        must(not (self.terminal and commands), "P5", f"after the terminal state came {commands}")
        self.at_ms = event.at_ms
        self._take(event)
        for command in commands:
            match command:
                case Append(event=row):
                    self._row(row, event)
                case CallModel():
                    self._model(command)
                case CallTool():
                    self._tool(command)
                case Wait(turn=turn, index=index):
                    self.waits.add((turn, index))
                case StopFlights():
                    self.winding, self.told_to_stop = True, self.runs
                    self.waits.clear()
                case Fence(run=run):
                    self.fence = max(self.fence, run)
                case Persist(terminal=terminal):
                    must(terminal == self.terminal, "P5", "the state is persisted as what it is not")
                case _:
                    pass
        self._compare(state)

    def rest(self, state: TaskState, waits: bool) -> None:
        """R7: whoever waits for nothing has no open run and no work."""
        if not waits and not state.help:
            must(self.run == 0, "R7", "a run is open and waits for nothing")
            idle = self.terminal or not any(m.tail > self.head for m in self.pending.values())
            must(idle, "R7", "a runnable message waits and no run opens")

    @property
    def terminal(self) -> bool:
        """Whether the log says so."""
        return self.status in TERMINAL

    # --- events -------------------------------------------------------------------------------------------------

    def _take(self, event: events.Event) -> None:
        match event:
            case events.Stored(message_ids=ids):
                for message_id in ids:
                    if message_id in self.pending:
                        self.pending[message_id].stored = True
            case events.CancelRequested():
                self.canceling = True
            case events.BackoffOver(turn=turn, index=index):
                self.waits.discard((turn, index))
            case events.ModelReplied(turn=turn, attempt=attempt):
                self._answers(turn, None, attempt)
            case events.ModelFailed(turn=turn, attempt=attempt):
                self._answers(turn, None, attempt)
                self.asked.last = event.failure
                self.asked.spent += event.failure.kind in SPENDING
                self._count(event)
            case events.ToolFailed(turn=turn, index=index, attempt=attempt):
                self._answers(turn, index, attempt)
                own = event.failure.kind in SPENDING_CALLS
                self.open.fails[index] = self.open.fails.get(index, 0) + own
                doubted = event.failure.kind == "in_doubt"
                self.open.faults[index] = self.open.faults.get(index, 0) + (own or doubted)
                self._count(event)
            case events.ToolFinished():
                self._finished(event)
            case _:
                pass

    def _finished(self, event: events.ToolFinished) -> None:
        index = event.index
        self._answers(event.turn, index, event.attempt)
        self.open.fails.pop(index, None)
        if event.outcome == "closed":
            self.open.generation[index] = self.open.generation.get(index, 1) + 1
        if event.outcome in {"closed", "asks"}:
            self.open.replies.pop(index, None)
        if event.outcome == "asks":
            self.open.asking[index] = event.digest

    def _answers(self, turn: int, index: int | None, attempt: int) -> None:
        flight = self.flying.pop((turn, index), None)
        must(flight is not None and flight.attempt == attempt, "P3", "a result of no attempt under way was taken")

    def _count(self, event: events.ModelFailed | events.ToolFailed) -> None:
        """R12, from the failures alone."""
        failure = event.failure
        again = failure.worker != "" and failure.worker == self.dead
        if failure.kind != "worker_died" or self.winding or again:
            return
        self.dirty, self.dead = True, failure.worker
        if not failure.alone:
            self.shared += 1
        elif self.crashes + 1 < self.agent.crashes_max:
            self.crashes += 1
        else:
            self.crashes, self.shared = 0, DEATHS_TO_QUARANTINE

    def _completed(self) -> None:
        if not self.dirty:
            self.crashes, self.shared = max(0, self.crashes - 1), 0

    # --- attempts -----------------------------------------------------------------------------------------------

    def _begins(self, command: CallModel | CallTool) -> None:
        must(not self.winding and command.run == self.run, "P9", f"{command} begins in a run that ends")
        must(command.run > self.fence, "P9", f"{command} begins behind the fence")
        alone = self.shared >= DEATHS_TO_QUARANTINE or self.crashes > 0
        must(command.quarantine == alone, "R12", f"{command} should run alone: {alone}")

    def _model(self, command: CallModel) -> None:
        self._begins(command)
        must(not self.flying, "R14", "a model call begins beside other attempts")
        must(len(self.open.results) == len(self.open.calls), "R14", "a model call begins before all results are there")
        must(sorted(command.watch) == sorted(self.watched), "P4", f"{command.watch} are watched, not {self.watched}")
        must((command.upto, command.chain) == (self.entry, self.chain), "P11", "another transcript is named")
        self._asks(command)
        self.flying[command.turn, None] = command

    def _asks(self, command: CallModel) -> None:
        """A turn asks its models in order, each while it has attempts; attempts count on over all of them."""
        at, models = self.asked, (self.agent.model, *self.agent.fallbacks)
        if command.turn != at.turn:
            at = self.asked = Asked(turn=command.turn)
        elif command.fallback != at.fallback:
            must(command.fallback == at.fallback + 1 and at.elsewhere, "R10", f"{command} asks out of turn")
            waits_ms = at.last.retry_after_ms if at.last is not None else None
            over = at.spent >= models[at.fallback].retry.attempts_max or (waits_ms or 0) > WAITS_MAX_MS
            over = over or self.agent.budget.wall_s_max is not None
            must(
                over or (at.last is not None and at.last.kind == "model_permanent"), "R10", f"{command} asks too early"
            )
            at.fallback, at.spent = command.fallback, 0
        must(command.fallback == at.fallback, "R10", f"{command} does not begin with the first model")
        must(command.attempt == at.attempt + 1, "P2", f"{command} repeats or skips an attempt")
        at.attempt = command.attempt
        must(at.spent < models[at.fallback].retry.attempts_max, "P7", f"{command} is one attempt too many")
        must(
            command.model == (models[at.fallback].name if self.agent.fallbacks else ""), "P11", f"{command} is another"
        )

    def _tool(self, command: CallTool) -> None:
        self._begins(command)
        at, index = self.open, command.index
        must(command.turn == at.turn and index not in at.results, "R14", f"{command} is not open")
        must((command.turn, index) not in self.flying, "P3", f"{command} begins beside its own attempt")
        must(command.attempt == at.attempts.get(index, 0) + 1, "P3", f"{command} repeats or skips an attempt")
        at.attempts[index], at.resolving[index] = command.attempt, command.resolve_only
        key = self.key_of(index)
        must(command.key == key, "P3", f"{command} has another key than {key}")
        owner = self.keys.setdefault(key, (command.turn, index))
        must(owner == (command.turn, index), "P3", f"{key} belongs to {owner}")
        self._approves(command, at.calls[index])
        self._as_asked(command, at)
        doubted = (command.tool, command.arguments_digest) in self.doubts.values()
        must(not doubted or command.resolve_only, "P4", f"{command} begins while the same call is in doubt")
        must(not doubted or command.attempt > 1, "P4", f"{command} was not begun, and does not get the same answer")
        said = command.word.text if command.word is not None else None
        must(said == self.told.get(key), "P4", f"{command} carries another word than a person gave about {key}")
        must(said is None or command.resolve_only, "P4", f"{command} begins what a person was asked about")
        answer = None if command.resolve_only else at.replies.get(index)
        must(command.answer == answer, "P3", f"{command} goes on with another answer than {answer}")
        others = [f for f in self.flying.values() if isinstance(f, CallTool)]
        must(self.fed or command.resolve_only, "R14", f"{command} begins before its run was fed")
        if self.fed and others:
            must(all(self.parallel(c.tool) for c in (*others, command)), "R14", f"{command} begins beside {others}")
        for earlier in range(index):
            must(self._started(earlier), "R14", f"call {index} begins before call {earlier}")
        self.flying[command.turn, index] = command

    def _as_asked(self, command: CallTool, at: Open) -> None:
        """What is called is what the model asked for, as its tool was declared (P3, P11)."""
        spec = next((tool for tool in self.agent.tools if tool.name == command.tool), None)
        must(spec is not None and command.tool == at.calls[command.index].tool, "R14", f"{command} is another tool")
        if spec is not None:
            declared = (spec.effect, spec.timeout_s, spec.heartbeat_timeout_s, spec.schema_digest)
            called = (command.effect, command.timeout_s, command.heartbeat_timeout_s, command.schema_digest)
            must(called == declared, "P3", f"{command} is {called}, declared {declared}")
            fails = at.fails.get(command.index, 0)
            must(command.resolve_only or fails < spec.retry.attempts_max, "P7", f"{command} is one attempt too many")
        call_id = at.calls[command.index].call_id
        must((command.call_id, command.reply_digest) == (call_id, at.reply), "R14", f"{command} answers another call")

    def _approves(self, command: CallTool, asked: events.CallSummary) -> None:
        """A call that was to be asked about is begun as a person approved it, and no other call is."""
        must(asked.problem is None and not asked.unknown, "R14", f"{command} begins although {asked.problem}")
        then = asked.ruling.then if asked.ruling is not None else "allow"
        must(then != "deny", "P3", f"{command} begins although a rule denies it")
        given = self.approved.get((command.turn, command.index))
        must(then != "ask" or given is not None, "P3", f"{command} begins and nobody approved it")
        must((command.approval is not None) == (given is not None), "P3", f"{command} carries no approval of its own")
        if given is None or command.approval is None:
            must(command.arguments_digest == asked.arguments_digest, "P3", f"{command} has other arguments")
            return
        changed = given.data.get("arguments")
        run = asked.arguments_digest if changed is None else named({"tool": command.tool, "arguments": changed})
        exact = named({"tool": command.tool, "call": run, "key": f"t/{command.turn}/{command.index}"})
        must(command.approval.arguments == changed, "P3", f"{command} runs other arguments than were approved")
        must((command.arguments_digest, command.approval.digest) == (run, exact), "P3", f"{command} is another call")

    def key_of(self, index: int) -> str:
        """The present key of a call of the latest reply."""
        generation = self.open.generation.get(index, 1)
        return f"t/{self.open.turn}/{index}" + (f"/{generation}" if generation > 1 else "")

    def parallel(self, name: str) -> bool:
        """Whether calls of that tool may run beside others."""
        return any(tool.parallel for tool in self.agent.tools if tool.name == name)

    def _started(self, index: int) -> bool:
        at = self.open
        waits = f"t/{at.turn}/{index}" in self.asks
        return waits or index in at.results or index in at.attempts or at.calls[index].question is not None

    # --- rows ---------------------------------------------------------------------------------------------------

    def _row(self, row: LogEvent, event: events.Event) -> None:
        self.number += 1
        must(row.number == self.number, "P6", f"{row.number} comes after {self.number - 1}")
        must(not self.terminal, "P5", f"{row.kind} comes after the terminal state")
        must(row.at_ms == event.at_ms, "P6", f"{row.kind} was written at another time")
        must(row.run == self.run or row.kind == "run.started", "P6", f"{row.kind} names run {row.run}")
        match row.kind.split(".")[0]:
            case "message":
                self._message_row(row, str(row.data["message_id"]))
            case "run":
                self._run_row(row)
            case "model":
                self._model_row(row, event)
            case "tool" | "help":
                self._call_row(row)
            case _:
                if row.kind == "task.status":
                    self._moved_to(row)
        for ref in row.entries:
            self._entered(ref)

    def _message_row(self, row: LogEvent, message_id: str) -> None:
        match row.kind:
            case "message.admitted":
                new = message_id not in self.pending and message_id not in self.gone
                must(new, "P1", f"{message_id} was admitted twice")
                content, lane = str(row.data["digest"]), str(row.data["lane"])
                self.pending[message_id] = Waiting(content, lane, row.number, row.number)
            case "message.moved":
                self.pending[message_id].tail, self.pending[message_id].lane = row.number, "steer"
            case "message.withdrawn":
                del self.pending[message_id]
                self.gone[message_id] = "withdrawn"
            case _:
                self._promoted(message_id, row)

    def _run_row(self, row: LogEvent) -> None:
        match row.kind:
            case "run.started":
                self._run_started(row)
            case "run.stop_requested":
                must(self.run > 0, "R11", "a stop was recorded with nothing to stop")
                self.winding = self.stopped = True
            case "run.stopped_before_start":
                runnable = any(m.tail > self.head for m in self.pending.values())
                must(self.run == 0 and runnable, "R11", "a stop was recorded with nothing to stop")
                self.head = row.number
            case _:
                self._run_ended(row)

    def _model_row(self, row: LogEvent, event: events.Event) -> None:
        if row.kind == "model.started":
            self._model_started(row)
        elif row.kind == "model.answered":
            self._answered(row, event)
            self.unanswered.clear()

    def _call_row(self, row: LogEvent) -> None:
        match row.kind:
            case "tool.started":
                must(not self.winding, "P9", "a tool call begins in a run that ends")
            case "tool.in_doubt":
                index, key = int(str(row.data["index"])), str(row.data["key"])
                if key in self.keys:  # one that was never begun is no doubt of its own
                    self.doubts[key] = str(row.data["tool"]), self._run_digest(row.turn, index)
                self.told.pop(key, None)
            case "tool.key_closed":
                self.doubts.pop(str(row.data["key"]), None)
                self.closed.append(str(row.data["key"]))
            case "tool.late":
                key = str(row.data["key"])
                must(key in self.watched, "P4", f"{key} was late, and nobody waits for it")
                self.late[key] = str(row.data["text"])
            case "tool.finished":
                self._result(row)
            case "help.requested":
                self._asked(row)
            case "help.answered" | "help.closed":
                self._no_longer_asked(row)
                self._heard(row)
            case _:
                pass

    def _heard(self, row: LogEvent) -> None:
        """What was said, or that nothing was, is the call's result, lets it begin, or settles what became of it."""
        if row.data.get("verdict") == "approved":
            self.approved[row.turn, int(str(row.data["index"]))] = row
        elif "digest" in row.data:
            self._result(row)
        elif row.kind == "help.closed":
            must(self.winding, "P4", f"{row.data['help_id']} was closed by a run that goes on")
        else:
            self._told(row)

    def _told(self, row: LogEvent) -> None:
        """A person answered what a call asked, or said what became of one in doubt."""
        key, text = str(row.data["help_id"]), str(row.data["text"])
        if "/ask/" in key:
            index = int(str(row.data["index"]))
            asked = self.open.asking.pop(index, None)
            must(asked is not None, "P3", f"a question of call {index} was answered that it did not ask")
            self.open.replies[index] = Answer(asked=str(asked), text=text)
        else:
            must(key in self.doubts, "P4", f"a person was asked about {key}, which is not in doubt")
            self.told[key] = text.strip()

    def _result(self, row: LogEvent) -> None:
        index = int(str(row.data["index"]))
        self._settled(row)
        must(index not in self.open.results, "R14", f"call {index} got a second result")
        self.open.results[index] = str(row.data["digest"])
        if len(self.open.results) == len(self.open.calls):
            self._completed()

    def _asked(self, row: LogEvent) -> None:
        must(not self.winding, "P9", "a person is asked by a run that ends")
        must(str(row.data["help_id"]) not in self.asks, "P4", f"{row.data['help_id']} is asked twice at once")
        self.asks[str(row.data["help_id"])] = row
        index = int(str(row.data["index"]))
        if self.open.calls[index].question is not None or row.data.get("help_kind") == "approval":
            must(self.fed, "R14", "a run asks for an earlier one, instead of giving its call a result")
        if "/ask/" in str(row.data["help_id"]):
            must(index in self.open.asking, "P3", "a person is asked what no call asks")
            must(row.data["help_id"] not in self.spent, "P4", "two questions of a call have one name")
            self.spent.add(str(row.data["help_id"]))
        elif row.data.get("help_kind") == "approval":
            ruling = self.open.calls[index].ruling
            must(ruling is not None and ruling.then == "ask", "P3", "a person is asked about a call that needs no word")
            must(index not in self.open.attempts, "P3", "a person is asked about a call that was begun")
            twin = (self.open.calls[index].tool, self._run_digest(row.turn, index)) in self.doubts.values()
            must(not twin, "P4", "a person is asked about a call that is not begun in any case")
            must(row.data["help_id"] not in self.spent, "P3", "a person is asked twice about one call")
            self.spent.add(str(row.data["help_id"]))
        elif "choices" in row.data and self.open.calls[index].question is None:
            key, index = str(row.data["help_id"]), int(str(row.data["index"]))
            must(key in self.doubts, "P4", f"a person is asked about {key}, which is not in doubt")
            must(
                self.setting(self.open.calls[index].tool) == "ask", "P4", "a person is asked about another tool's call"
            )

    def _no_longer_asked(self, row: LogEvent) -> None:
        """What is open is closed once: by the first answer, by its expiry and not before it, or by its run's end."""
        request = self.asks.pop(str(row.data["help_id"]), None)
        must(request is not None, "P4", f"{row.data['help_id']} was answered or closed, and was not open")
        if request is not None and row.data.get("reason") == "expired":
            must(self.at_ms >= int(str(request.data["expires_at_ms"])), "P4", f"{row.data['help_id']} expired early")

    def _settled(self, row: LogEvent) -> None:
        """A result other than unknown ends the doubt; unknown is said only where no person is to be asked."""
        key, status = str(row.data.get("key")), row.data["status"]
        of = str(row.data.get("late_of", ""))
        if of:
            index = int(str(row.data["index"]))
            asked = str(row.data["tool"]), self._run_digest(row.turn, index)
            must(of in self.late and self.doubts.get(of) == asked, "P4", f"{key} was given the result of {of}")
            del self.doubts[of]
        if status == "unknown" and key not in self.keys:
            asked = str(row.data["tool"]), self._run_digest(row.turn, int(str(row.data["index"])))
            twin = next((doubt for doubt, call in self.doubts.items() if call == asked), "")
            must(twin not in self.late, "P4", f"{key} was not given the result of {twin}, which is known")
        if key in self.doubts and status == "unknown":
            must(self.setting(str(row.data["tool"])) != "ask", "P4", f"{key} was given up and nobody was asked")
        elif key in self.doubts:
            del self.doubts[key]

    def _run_digest(self, turn: int, index: int) -> str:
        """What a call runs, or would: as the model gave it, or as a person changed it."""
        approved, asked = self.approved.get((turn, index)), self.open.calls[index]
        changed = None if approved is None else approved.data.get("arguments")
        return asked.arguments_digest if changed is None else named({"tool": asked.tool, "arguments": changed})

    @property
    def watched(self) -> list[str]:
        """The keys of which a result may still come: those in doubt, and the latest that were closed."""
        return [key for key in (*self.doubts, *self.closed[-CLOSED_WATCHED:]) if key not in self.late]

    def setting(self, name: str) -> str:
        """Who lives with a doubt of that tool."""
        return next((tool.in_doubt for tool in self.agent.tools if tool.name == name), "tell")

    def _run_started(self, row: LogEvent) -> None:
        must(self.run == 0 and row.run == self.runs + 1, "R8", f"run {row.run} opens in run {self.run}")
        work = any(m.tail > self.head and m.stored for m in self.pending.values())
        must(work, "R7", "a run opens without a runnable message")
        self.run = self.runs = row.run
        self.winding = self.fed = self.answered = self.stopped = self.unreplied = False

    def _run_ended(self, row: LogEvent) -> None:
        must(self.run > 0 and row.run == self.run, "P5", f"run {row.run} ends, open is {self.run}")
        must(not self.flying, "R10", "a run ends while its attempts are under way")
        if row.data["end"] == "answered":
            must(self.answered and not self.winding, "R10", "a run is answered that was not")
            must(not self.pending, "R4", "a run is answered while messages wait")
        else:
            self.head = row.number
        if row.data["reason"] == "model":
            left = self.asked.fallback < len(self.agent.fallbacks) and self.asked.elsewhere
            must(not left, "R10", "a run failed while a fallback could have answered")
        if row.data["reason"] == "stopped":
            must(self.stopped, "R11", "a run was stopped without a stop")
        self.run = 0
        self.open.asking.clear()
        self.open.replies.clear()

    def _promoted(self, message_id: str, row: LogEvent) -> None:
        must(self.run > 0 and not self.winding, "R8", f"{message_id} was promoted outside a run")
        must(message_id in self.pending, "P1", f"{message_id} was promoted and is {self.gone.get(message_id)}")
        message = self.pending.pop(message_id)
        must(message.stored, "R3", f"{message_id} was promoted before it was durable")
        steers = sorted((m for m in self.pending.values() if m.lane == "steer"), key=lambda m: m.tail)
        if message.lane == "steer":
            must(all(message.tail < m.tail for m in steers), "P1", f"{message_id} overtook a steer")
        else:
            ready = bool(steers) and steers[0].stored
            must(not ready, "R4", f"{message_id} was promoted before a steer")
            queue = [m for m in self.pending.values() if m.lane == "queue"]
            must(all(message.admitted < m.admitted for m in queue), "P1", f"{message_id} overtook the queue")
            must(not self.fed or self.answered, "R4", f"{message_id} did not wait for the answer before it")
        must([(e.kind, e.digest) for e in row.entries] == [("user", message.content)], "R3", "promotion is one step")
        self.gone[message_id] = "promoted"
        self.unanswered.append(message_id)
        self.fed, self.answered = True, False

    def _model_started(self, row: LogEvent) -> None:
        must(not self.winding, "P9", "a model call begins in a run that ends")
        if row.data["attempt"] != 1:
            return
        steers = sorted((m for m in self.pending.values() if m.lane == "steer"), key=lambda m: m.tail)
        must(not steers or not steers[0].stored, "R4", "a turn began without a steer")
        must(self.fed and not self.answered, "R7", "a turn began with nothing to answer")
        must(not self.unreplied, "P2", f"turn {row.turn} began before the one before it was answered")
        self.unreplied = True
        self.turn += 1
        must(row.turn == self.turn, "R14", f"turn {row.turn} follows turn {self.turn - 1}")
        self.dirty = False

    def _answered(self, row: LogEvent, event: events.Event) -> None:
        must(isinstance(event, events.ModelReplied), "P2", "an answer without a reply")
        self.unreplied = False
        if isinstance(event, events.ModelReplied):
            self.open = Open(turn=row.turn, reply=event.digest, calls=event.calls)
            self.answered = event.finish == "stop" and not event.calls
            if not event.calls:
                self._completed()

    def _entered(self, ref: EntryRef) -> None:
        self.entry += 1
        self.chain = hashlib.sha256(f"{self.chain}/{ref.digest}".encode()).hexdigest()
        must((ref.entry, ref.chain) == (self.entry, self.chain), "P6", f"entry {ref.entry} breaks the transcript")
        at = self.open
        if ref.kind == "tool":
            must(at.results.get(at.entered) == ref.digest, "R14", f"entry {ref.entry} is not result {at.entered}")
            at.entered += 1
        else:
            done = at.entered == len(at.calls) if ref.kind == "user" else at.entered == 0
            must(done, "R14", f"a {ref.kind} entry came between calls and results")

    def _moved_to(self, row: LogEvent) -> None:
        self.status = str(row.data["state"])
        if self.terminal:
            must(self.run == 0, "P5", "the task ends before its run")
            named = self.unanswered[-FIRST.message_ids_remembered :]
            must(row.data["unprocessed"] == [*named, *self.pending], "P1", "the terminal row names other messages")
            counted = row.data.get("unprocessed_before", 0)
            must(counted == len(self.unanswered) - len(named), "P1", "the terminal row counts other messages")
            left = [f"{self.open.turn}/{i}" for i in range(len(self.open.calls)) if i not in self.open.results]
            must(row.data["open_calls"] == left, "R14", f"the terminal row names the calls {row.data['open_calls']}")

    # --- the machine's own account ------------------------------------------------------------------------------

    def _compare(self, state: TaskState) -> None:
        inbox = {p.message_id: Waiting(p.digest, p.lane, p.admitted, p.tail, p.stored) for p in state.inbox}
        must(inbox == self.pending, "R1", f"inbox {inbox} instead of {self.pending}")
        asks = sorted(h.help_id for h in state.help)
        must(asks == sorted(self.asks), "P4", f"{asks} are open, not {sorted(self.asks)}")
        must(state.head == self.head, "R1", f"head {state.head} instead of {self.head}")
        must(state.last_number == self.number, "P6", f"last number {state.last_number} instead of {self.number}")
        must((state.entries, state.chain) == (self.entry, self.chain), "P6", "another transcript")
        must((state.run.number if state.run else 0) == self.run, "R8", "another run is open")
        must(state.turns == self.turn, "R14", f"turn {state.turns} instead of {self.turn}")
        doubts = {d.key: (d.tool, d.arguments_digest) for d in state.doubts}
        must(doubts == self.doubts, "P4", f"doubts {doubts}, not {self.doubts}")
        count = (state.crashes, state.shared_deaths)
        must(count == (self.crashes, self.shared), "R12", f"count {count} instead of {(self.crashes, self.shared)}")
        must(not self.status or state.status == self.status, "P5", f"{state.status} is not what the log says")


def named(value: object) -> str:
    """Return the digest of a value's one form: keys sorted, no white space."""
    return hashlib.sha256(
        json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    ).hexdigest()


def must(holds: bool, number: str, what: str) -> None:
    """Raise what broke, with its number."""
    if not holds:
        raise AssertionError(f"{number}: {what}")
