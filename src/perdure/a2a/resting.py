"""Whether a task waits for its sender, as its log tells it: what ends a request that waits for an answer. Pure.

The state alone does not say it. A task is INPUT_REQUIRED while a question is open, and then nothing happens until
somebody answers: a message that was sent into a lane waits behind it, and nothing of it is written in a new status. It
is INPUT_REQUIRED as well when its latest run has ended, and then a message that came opens the next run, whose first
rows are yet to follow. And a message may be parked before it was ever at work, by a stop, without the status moving.

So it is decided by what stands after each row: is a question open, and is there a message that a run opens for (rules
R1, R2, R7)? The rows of one step of the task belong together: between the end of a run and the status after it, say,
nothing is decided.
"""

from dataclasses import dataclass, field, replace

from perdure.core.inbox import Inbox
from perdure.core.log import LogEvent
from perdure.core.state import TERMINAL


@dataclass(frozen=True)
class Standing:
    """How a task stands as of an event: what waits in its inbox, and the ids of the questions that are `asked`.

    `told` once it was given a message, `moving` between the rows of a step whose status is still to come.
    """

    state: str = "submitted"
    reason: str = ""
    inbox: Inbox = field(default_factory=Inbox)
    asked: frozenset[str] = frozenset()
    told: bool = False
    moving: bool = False

    @property
    def rests(self) -> bool:
        """Whether it has ended, or nothing happens until somebody answers, sends, or moves a message."""
        if self.state in TERMINAL:
            return True
        if self.moving or self.state == "working":
            return False
        if (self.state, self.reason) == ("input_required", "help"):
            return bool(self.asked)
        return self.told and not self.inbox.runnable

    def after(self, row: LogEvent) -> "Standing":
        """Return how it stands after the next row of the log."""
        stands, question = replace(self, inbox=self.inbox.after(row)), str(row.data.get("help_id", ""))
        match row.kind:
            case "message.admitted" | "message.moved":  # it begins a step: what was before it is whole
                return replace(stands, told=True, moving=False)
            case "help.requested":
                return replace(stands, asked=self.asked | {question})
            case "help.answered" | "help.closed":  # what is still asked, or that the run goes on, is said next
                return replace(stands, asked=self.asked - {question}, moving=True)
            case "run.stop_requested":
                return replace(stands, moving=True)
            case "run.ended":
                return replace(stands, asked=frozenset(), moving=True)
            case "run.stopped_before_start":  # a task that was stopped already is not said to be so again
                return replace(stands, moving=(self.state, self.reason) != ("input_required", "stopped"))
            case "task.status":
                state, reason = str(row.data.get("state")), str(row.data.get("reason") or "")
                return replace(stands, state=state, reason=reason, moving=False)
            case _:
                return stands
