"""What crosses between clients, the workflow and activities: the payloads, all pydantic models.

These are durable formats: they stand in histories. A field may be added with a default, never renamed or removed.
No input grows with the conversation (P7): a transcript is named by its length and its digest.
"""

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from perdure.core import limits
from perdure.core.agent import AgentSpec
from perdure.core.commands import CallModel, CallTool
from perdure.core.content import Finish, Frozen, Lane, Message, Usage
from perdure.core.effects import Late
from perdure.core.events import CallSummary
from perdure.core.log import Batch, LogEvent, TaskHeader
from perdure.core.ports import Admission
from perdure.core.state import TaskState

TASK_WORKFLOW = "TaskWorkflow"

ROLLING = "rolling"
"""Detail of an update's refusal while its task continues in a new run, which takes milliseconds: worth asking again."""


class Carried(Frozen):
    """What continue-as-new hands over: the state, and the rows that no write has confirmed."""

    state: TaskState
    rows: tuple[LogEvent, ...] = ()
    confirmed: int = 0


class TaskStart(Frozen):
    """A task's start. The first message travels here, so that a durable start is a durable message (P1).

    Everything that the workflow decides by is recorded here; workers may change under a running task. `earlier` are the
    tasks of its context that had ended by then.
    """

    schema_version: Literal[1] = 1
    task_id: str
    context_id: str
    principal: str = ""
    agent: AgentSpec
    messages: tuple[Message, ...] = ()
    earlier: tuple[str, ...] = ()
    history_events_max: int = Field(default=limits.HISTORY_EVENTS_MAX, ge=1)
    carried: Carried | None = None
    shared_with: tuple[str, ...] = ()

    @property
    def header(self) -> TaskHeader:
        """What the store knows of the task from its first row on."""
        return TaskHeader(
            task_id=self.task_id,
            context_id=self.context_id,
            agent_id=self.agent.agent_id,
            principal=self.principal,
            shared_with=self.shared_with,
        )

    @model_serializer(mode="wrap")
    def _as_before_sharing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what is not there, so that workers of before take tasks that nobody shares."""
        body: dict[str, Any] = handler(self)
        if not self.shared_with:
            body.pop("shared_with", None)
        return body


class TaskOutcome(Frozen):
    """How a task ended; the answer's text is read from the store."""

    state: str
    reason: str = ""
    last_number: int


# --- updates ----------------------------------------------------------------------------------------------------


class InboxItem(Frozen):
    """One message and the lane that its sender asked for.

    With `answers` it answers the open question `help_id` (without one: the oldest), and is an ordinary message where
    none is open, unless it decides about a call that does not wait any more: that is refused. The task decides, in the
    step in which it takes the message in. `by` is who sent it.
    """

    message: Message
    lane: Lane | None = None
    answers: bool = False
    help_id: str | None = None
    by: str = ""


class InboxRequest(Frozen):
    """Messages to take in, in order. One update carries a batch: Temporal allows ten updates in flight."""

    items: tuple[InboxItem, ...] = Field(min_length=1)


class Receipt(Frozen):
    """What became of one message or operation: its number in the log, or why it was refused.

    `recorded` False: there was nothing to do (a stop of what does not run), and `number` is the log's last. `closed` is
    the task's state where that is why.
    """

    message_id: str
    number: int | None = None
    code: str | None = None
    problem: str | None = None
    closed: str | None = None
    recorded: bool = True


class InboxReply(Frozen):
    """One receipt per message, in order. A receipt with a number is durable."""

    receipts: tuple[Receipt, ...]


class AnswerRequest(Frozen):
    """A person's answer to the help request of that id; `by` is who they are, where that is known."""

    help_id: str
    text: str
    by: str = ""


class Operation(Frozen):
    """One thing that is asked of a task. Exactly one of the fields says what.

    `steer` and `withdraw` name a message that waits. `stop` ends the run, `cancel` the task.
    """

    message: InboxItem | None = None
    steer: str | None = None
    withdraw: str | None = None
    answer: AnswerRequest | None = None
    stop: bool = False
    cancel: bool = False


class OperateRequest(Frozen):
    """Operations of any kinds, carried out in order; answered by an `InboxReply` with a receipt each."""

    operations: tuple[Operation, ...] = Field(min_length=1)


class Recorded(Frozen):
    """What an update recorded, by its number; `recorded` False when there was nothing to do, and the log's last one."""

    recorded: bool
    number: int


# --- activities -------------------------------------------------------------------------------------------------


class WriteInput(Frozen):
    """`intake`, `emit_event`, `persist`: one batch. `look_up` asks for the admission of an old message id."""

    batch: Batch
    look_up: str | None = None


class WriteOutput(Frozen):
    """The batch is in the store; `known` is the admission that was asked for."""

    known: Admission | None = None


class ModelInput(Frozen):
    """`invoke_llm`: rows to write first, and the attempt."""

    agent_id: str
    batch: Batch
    command: CallModel


class ModelOutput(Frozen):
    """`invoke_llm`: the recorded reply, by digest, with what the workflow decides by."""

    digest: str
    finish: Finish
    has_text: bool
    calls: tuple[CallSummary, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    late: tuple[Late, ...] = ()


class ToolInput(Frozen):
    """`invoke_tool`: rows to write first, and the attempt. Arguments are read from the reply in the store."""

    agent_id: str
    batch: Batch
    command: CallTool


# --- queries ----------------------------------------------------------------------------------------------------


class Flight(Frozen):
    """An attempt or a wait under way."""

    name: str
    turn: int
    index: int | None = None
    attempt: int
    status: str


class Monitor(Frozen):
    """What the workflow is doing: attempts under way, rows that wait for the store, whether the store fails.

    `diverged` says how the store and this task disagree, from the refused write on until one is taken again.
    """

    flights: tuple[Flight, ...] = ()
    unwritten: int = 0
    confirmed: int = 0
    degraded: bool = False
    diverged: str = ""
    history_events: int = 0
