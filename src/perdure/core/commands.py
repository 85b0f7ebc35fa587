"""What the state machine asks for: its outputs. Each operation's command is answered by exactly one event."""

from pydantic import Field

from perdure.core.agent import EffectClass
from perdure.core.approvals import Approval
from perdure.core.content import Frozen
from perdure.core.effects import Answer, Word
from perdure.core.log import LogEvent


class Append(Frozen):
    """Write this row to the log; rows leave in the order of their numbers."""

    event: LogEvent


class StoreMessage(Frozen):
    """Make an admitted message durable; answered by `Stored`."""

    message_id: str


class CallModel(Frozen):
    """Schedule an attempt at the turn's model call over the transcript up to `upto`, named by `chain`.

    `watch`: the keys of closed calls under which a result may still come late. Where the agent has fallbacks, `model`
    names the one to ask and `fallback` says which it is: 0 the agent's model, n its nth fallback.
    """

    run: int
    turn: int
    attempt: int
    upto: int
    chain: str
    timeout_s: float
    heartbeat_timeout_s: float
    quarantine: bool = False
    watch: tuple[str, ...] = ()
    model: str = Field(default="", exclude_if=lambda given: given == "")
    fallback: int = Field(default=0, exclude_if=lambda given: given == 0)


class CallTool(Frozen):
    """Schedule an attempt at a tool call. `resolve_only`: find out what became of it, begin nothing.

    `word` is what a person said of it, for when neither the ledger nor a check could tell. `answer` is what a person
    answered to what the call asked, which it goes on with. `schema_digest` is the tool's schema as the task knows it.
    `approval` is a person's of a call that needs one, with the arguments to run where they changed them.
    """

    run: int
    turn: int
    index: int
    attempt: int
    key: str
    tool: str
    effect: EffectClass
    call_id: str
    arguments_digest: str
    reply_digest: str
    timeout_s: float
    heartbeat_timeout_s: float
    resolve_only: bool = False
    quarantine: bool = False
    word: Word | None = None
    answer: Answer | None = Field(default=None, exclude_if=lambda given: given is None)
    schema_digest: str | None = Field(default=None, exclude_if=lambda given: given is None)
    approval: Approval | None = Field(default=None, exclude_if=lambda given: given is None)


class Wait(Frozen):
    """Wait before the next attempt; answered by `BackoffOver`."""

    turn: int
    index: int | None
    delay_ms: int


class AwaitExpiry(Frozen):
    """Wait until a help request expires; answered by `HelpExpired`. `at_ms` is absolute, whoever goes on with it."""

    help_id: str
    turn: int
    index: int
    at_ms: int


class DropExpiry(Frozen):
    """Wait no longer for a help request to expire: it is not open any more (P8)."""

    help_id: str


class StopFlights(Frozen):
    """Tell every attempt and every wait under way to stop. Attempts still answer; waits do not."""


class Fence(Frozen):
    """Refuse in the store every call of runs up to this one; a stop is acknowledged after it (P9)."""

    run: int


class Persist(Frozen):
    """Write the state; `terminal` before the workflow returns (P5)."""

    terminal: bool


Command = Append | StoreMessage | CallModel | CallTool | Wait | AwaitExpiry | DropExpiry | StopFlights | Fence | Persist
