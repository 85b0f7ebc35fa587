"""The state of one task, as the state machine holds it and as continue-as-new carries it.

Positions, not flags, decide what may run (design rules R1, R2): every message has the number of its admission or of
its latest move as its `tail`; `head` is the number of the latest end that left no answer. What is derived from them
(`runnable`, `parked`, the mode) is computed here and stored nowhere.

Bounded: the transcript is a count and a digest, the inbox is limited, results of a turn are digests (P7).
"""

from typing import Final, Literal

from pydantic import Field, JsonValue

from perdure.core.agent import AgentSpec
from perdure.core.approvals import Approval, Ruling
from perdure.core.content import Frozen, Lane, Usage
from perdure.core.effects import Late, Word
from perdure.core.questions import HelpKind, Manner

STATE_SCHEMA: Final = 1

TaskStatus = Literal["submitted", "working", "input_required", "completed", "failed", "canceled"]
TERMINAL: frozenset[TaskStatus] = frozenset({"completed", "failed", "canceled"})

End = Literal["answered", "failed", "stopped"]

OpStatus = Literal["flying", "waiting"]
"""An operation's attempt is scheduled, or waits for its next one."""


class Pending(Frozen):
    """An admitted message that was neither promoted nor withdrawn (R2). `stored` once its row is durable (R3)."""

    message_id: str
    digest: str
    lane: Lane
    admitted: int
    tail: int
    stored: bool = False


class Attempts(Frozen):
    """An operation in progress: `attempt` counts all tries, `spent` those that count against the retry policy.

    `losses` are failures in a row that were nobody's fault (a worker, the store); they only stretch the backoff.
    `delay_ms` is how long a waiting one waits, so that a continued workflow keeps a provider's floor.
    """

    attempt: int = 1
    spent: int = 0
    losses: int = 0
    status: OpStatus = "flying"
    delay_ms: int = 0


class Outcome(Frozen):
    """A closed call's result by digest; `inline` is its body where the machine made it."""

    digest: str
    status: str
    inline: dict[str, JsonValue] | None = None


class Asking(Frozen):
    """What a call asked a person, by its digest, as the `rounds`th of its questions; `answer` once there is one."""

    asked: str
    rounds: int
    answer: str | None = None


class CallState(Frozen):
    """One tool call of a turn. Open until `outcome` is set.

    `generation` counts its keys, `failures` the failed attempts that were its own fault.
    `ops` is None before its first attempt and while it rests (a person is asked, or its run ended). `asked` holds
    the id of the help request that it waits for. `resolving` once its attempts only find out what became of it.
    `problem` is why its latest attempt failed. `shown` is the call as a person is asked about it, where that is its
    tool's setting; `word` is what the person said. `asking` is the latest that the call itself asked, under its present
    key. `manner` is how its question is put. A call whose `ruling` asks begins with an `approval` only.
    """

    index: int
    call_id: str
    tool: str
    arguments_digest: str
    question: str | None = None
    generation: int = 1
    failures: int = 0
    attempts: int = 0
    ops: Attempts | None = None
    asked: str | None = None
    resolving: bool = False
    problem: str = ""
    shown: str = ""
    word: Word | None = None
    asking: Asking | None = Field(default=None, exclude_if=lambda given: given is None)
    outcome: Outcome | None = None
    recorded: bool = False
    manner: Manner | None = Field(default=None, exclude_if=lambda given: given is None)
    ruling: Ruling | None = Field(default=None, exclude_if=lambda given: given is None)
    approval: Approval | None = Field(default=None, exclude_if=lambda given: given is None)


class Turn(Frozen):
    """One model call (`ops` while it is under way) and then its calls.

    `fallback` is whom its attempts ask: 0 the agent's model, n its nth fallback. The next turn begins with 0 again.
    """

    number: int
    ops: Attempts | None = None
    fallback: int = Field(default=0, exclude_if=lambda given: given == 0)
    reply_digest: str = ""
    calls: tuple[CallState, ...] = ()

    def call(self, index: int) -> CallState:
        """Return the call of that index."""
        return self.calls[index]


class Ending(Frozen):
    """How an open run is about to end: decided, while attempts that were told to stop still fly."""

    end: Literal["failed", "stopped"]
    reason: str
    message: str = ""


class Spent(Frozen):
    """What a run had used when the model last answered a message in it: its budget begins anew with the next one."""

    turns: int
    usage: Usage
    at_ms: int
    idle_ms: int


class Run(Frozen):
    """The open run. `answered` when the model's latest reply asked for nothing more; `fed` once it got a message.

    `idle_ms` is the time in which it waited for nothing but a person, `idle_since_ms` when it began to do so: such
    waiting is free (P8) and spends no wall time of the budget. `spent` is None before its first answer.
    """

    number: int
    started_at_ms: int
    turns: int = 0
    usage: Usage = Usage()
    fed: bool = False
    answered: bool = False
    answer_entry: int = 0
    idle_ms: int = 0
    idle_since_ms: int | None = None
    ending: Ending | None = None
    spent: Spent | None = Field(default=None, exclude_if=lambda given: given is None)


class HelpRequest(Frozen):
    """An open question to a person. `choices` are the answers that it takes; empty where it takes any.

    `form` is the JSON schema of its answer; of a question that a tool asks the tool judges the answer. An approval's
    `digest` names the exact call that it is asked for.
    """

    help_id: str
    text: str
    turn: int
    index: int
    choices: tuple[str, ...] = ()
    kind: HelpKind = Field(default="question", exclude_if=lambda given: given == "question")
    form: dict[str, JsonValue] | None = Field(default=None, exclude_if=lambda given: given is None)
    expires_at_ms: int | None = Field(default=None, exclude_if=lambda given: given is None)
    digest: str = Field(default="", exclude_if=lambda given: given == "")


class Doubt(Frozen):
    """A call whose outcome is unknown; the same call is not begun again under a new key (P4).

    `late` is its result where that came after the call was closed: nobody was told yet.
    """

    key: str
    tool: str
    arguments_digest: str
    late: Late | None = None


class TaskState(Frozen):
    """Everything that the machine decides by."""

    schema_version: Literal[1] = STATE_SCHEMA
    task_id: str
    context_id: str
    agent: AgentSpec
    status: TaskStatus = "submitted"
    reason: str = ""
    last_number: int = 0
    head: int = 0
    inbox: tuple[Pending, ...] = ()
    seen: tuple[tuple[str, str, int], ...] = Field(
        default=(), description="(message id, digest, number) of the latest admissions, for resends (P1)"
    )
    unanswered: tuple[str, ...] = Field(
        default=(),
        exclude_if=lambda given: not given,
        description="ids of the messages in the transcript that no reply of the model came after (P1)",
    )
    unanswered_before: int = Field(
        default=0, exclude_if=lambda given: given == 0, description="further ones before these, too many to name"
    )
    run: Run | None = None
    runs: int = 0
    turn: Turn | None = None
    turns: int = 0
    entries: int = 0
    chain: str = ""
    help: tuple[HelpRequest, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    closed_keys: tuple[str, ...] = ()
    canceling: bool = False
    approvals: int = Field(
        default=0,
        exclude_if=lambda given: given == 0,
        description="asked for so far: where there are several, a word must say which it is about",
    )
    crashes: int = 0
    shared_deaths: int = 0
    crashed_this_turn: bool = False
    last_death: str = ""
    usage: Usage = Usage()

    @property
    def terminal(self) -> bool:
        """Whether the task has reached its one terminal state (P5)."""
        return self.status in TERMINAL

    @property
    def mode(self) -> "Mode":
        """Where the task stands; the transition table's key."""
        if self.terminal:
            return "terminal"
        if self.run is None:
            return "idle"
        if self.run.ending is not None:
            return "ending"
        if self.turn is not None and self.turn.ops is not None:
            return "model"
        if self.turn is not None and any(call.outcome is None for call in self.turn.calls):
            return "calls"
        return "between"

    def snapshot(self) -> "TaskState":
        """Return what the store keeps of the state for readers: with the latest `snapshot_ids_max` message ids only."""
        ids_max = self.agent.bounds.snapshot_ids_max
        seen, unanswered = self.seen, self.unanswered
        shorter = {"seen": seen[max(0, len(seen) - ids_max) :], "unanswered": unanswered[-ids_max:] if ids_max else ()}
        return self.model_copy(update=shorter)

    def runnable(self, pending: Pending) -> bool:
        """R2: pending with its tail past the head."""
        return pending.tail > self.head

    @property
    def has_work(self) -> bool:
        """R7: the predicate that opens a run, from positions only. Runnable and durably admitted (R3)."""
        return any(self.runnable(p) and p.stored for p in self.inbox)

    @property
    def about_to_open(self) -> bool:
        """R11: a stop has something to stop before the run opened."""
        return any(self.runnable(p) for p in self.inbox)

    @property
    def quarantined(self) -> bool:
        """R12: this task's attempts run alone."""
        return self.shared_deaths >= self.agent.bounds.shared_deaths_before_quarantine or self.crashes > 0


Mode = Literal["idle", "between", "model", "calls", "ending", "terminal"]
