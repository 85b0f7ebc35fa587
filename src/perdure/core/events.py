"""What happens to a task: the inputs of the state machine.

Each carries `at_ms`, the workflow's clock, because the machine has none; results of attempts also carry `jitter`
from [0, 1), because it has no randomness.
"""

from typing import Literal

from pydantic import Field, JsonValue

from perdure.core.approvals import Ruling
from perdure.core.content import Finish, Frozen, Lane, ResultStatus, Usage
from perdure.core.effects import Late
from perdure.core.failure import Failure
from perdure.core.questions import Manner


class Event(Frozen):
    """Base of all inputs. `at_ms`: milliseconds since the epoch."""

    at_ms: int


class Created(Event):
    """The task exists. `earlier` are the tasks of its context that had ended then, in their order: it sees those."""

    earlier: tuple[str, ...] = ()


class Admitted(Event):
    """A message was taken in. Lane None: `steer` into an open run, else `queue`."""

    message_id: str
    digest: str
    lane: Lane | None = None


class Stored(Event):
    """These messages' rows are durable (R3)."""

    message_ids: tuple[str, ...]


class Moved(Event):
    """A pending message was asked into the steer lane (R5)."""

    message_id: str


class Withdrawn(Event):
    """A pending message was taken back by its sender (R6)."""

    message_id: str


class StopRequested(Event):
    """A person stops the run (R6, R11)."""


class CancelRequested(Event):
    """A2A's cancel: terminal."""


class Answered(Event):
    """A person answered a help request; `message_id` and `digest` name the message that did, where it came as one.

    `by` is who answered, where that is known.
    """

    help_id: str
    text: str
    message_id: str = ""
    digest: str = ""
    by: str = ""


class HelpExpired(Event):
    """The time in which a help request could be answered is over."""

    help_id: str


class CallSummary(Frozen):
    """One call of a reply as the workflow needs it. `problem` when it must not run: malformed or against its schema.

    `arguments_json` repeats small arguments for readers of the log, and those of a call that waits for approval in any
    case, with its values cut where they are too large (`arguments_cut`); `question` is what `ask_participant` asks,
    `manner` how. `ruling` is what the rules came to for a call that may not simply begin; `unknown`: the worker lacks
    its tool, and held it to none.
    """

    call_id: str
    tool: str
    arguments_digest: str
    arguments_json: str | None = None
    arguments_cut: bool = Field(default=False, exclude_if=lambda given: not given)
    problem: str | None = None
    question: str | None = None
    manner: Manner | None = None
    ruling: Ruling | None = None
    unknown: bool = Field(default=False, exclude_if=lambda given: not given)


class ModelReplied(Event):
    """An attempt at a model call brought the recorded reply. `digest` names its entry, `late` what else came."""

    turn: int
    attempt: int
    digest: str
    finish: Finish
    has_text: bool
    calls: tuple[CallSummary, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    late: tuple[Late, ...] = ()


class ModelFailed(Event):
    """An attempt at a model call failed."""

    turn: int
    attempt: int
    failure: Failure
    jitter: float = 0.0


class ToolFinished(Event):
    """An attempt at a tool call came to something.

    `result`: `digest` names the recorded result of status `status`. `in_doubt`: begun, and no check could tell. `asks`:
    it puts `question` to a person, kept under `digest`, and takes one of `choices`, a `form`, or anything without both.
    `closed`: the key is closed, the call may begin under its next one. `not_begun`: a stopped run's call that never
    began. `notes` are what the tool said of its work.
    """

    turn: int
    index: int
    attempt: int
    outcome: Literal["result", "in_doubt", "asks", "closed", "not_begun"]
    digest: str = ""
    status: ResultStatus = "ok"
    reason: str = ""
    question: str = ""
    choices: tuple[str, ...] = ()
    form: dict[str, JsonValue] | None = None
    notes: tuple[str, ...] = ()


class ToolFailed(Event):
    """An attempt at a tool call failed."""

    turn: int
    index: int
    attempt: int
    failure: Failure
    jitter: float = 0.0


class BackoffOver(Event):
    """The wait before the next attempt is over. `index` None: of the model call."""

    turn: int
    index: int | None = None


class StoreDiverged(Event):
    """The store refuses a write for good: it and this task's history disagree. Nothing is called until they agree."""

    message: str


class ChildDone(Event):
    """A sub-task reached its terminal state."""

    child_id: str
    status: str
