"""When a client that follows a task is done, and with what; pure.

`MessageEnd` is for one that sent a message. Its run is the one that its message was promoted into (or whose question it
answered); what counts is that run's one end, and nothing that ends beside it: not the run before, which may fail just
then, and not the next. While the message waits, an end without an answer parks it (R9), and so does a stop before its
run: then it is not lost, and nothing happens to it until somebody sends another. Behind a question that was open before
it came it waits for who answers that.

`TaskEnd` is for one that watches: the task's terminal state, or the end of the run that was open.

`StateEnd` is for servers that do not number. They have states and no runs, so the first rest after the message is its
end; INPUT_REQUIRED is taken for a question, which is what A2A says it is.

Each is fed in order. `end` is for good. `rest` is how it stands as long as nothing follows: whoever reads an old log
sees rests that are long over, so it counts only at the last number that there is.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol

from perdure.cli.client.said import ASKING, TERMINAL, Said


@dataclass(frozen=True)
class End:
    """How it came out; `accepted` where only that was waited for.

    `reason` is the run's reason code, `message` says it in words, or what is asked.
    """

    outcome: Literal["answered", "unanswered", "waiting", "accepted"]
    state: str = ""
    reason: str = ""
    message: str = ""
    answer: str = ""


class Ending(Protocol):
    """Decides when a client is done."""

    end: End | None
    rest: End | None

    def take(self, said: Said) -> None:
        """Take the next thing that was said."""
        ...


class MessageEnd:
    """What becomes of one message."""

    def __init__(self, message_id: str) -> None:
        self.end: End | None = None
        self.rest: End | None = None
        self._message_id = message_id
        self._run = 0
        self._tail = 0
        self._answer = ""
        self._ended: End | None = None
        self._questions: dict[str, str] = {}
        self._asks: str | None = None

    def take(self, said: Said) -> None:
        """Take the next event."""
        if said.number is None:
            return
        if said.data.get("message_id") == self._message_id:
            self._take_own(said)
        match said.kind:
            case "run.ended":
                self._run_ended(said)
            case "run.stopped_before_start" if self._waits:
                self.rest = End("unanswered", said.state, "stopped", "stopped before the run began")
            case "help.requested":
                self._questions[str(said.data.get("help_id"))] = said.text or str(said.data.get("text", ""))
            case "help.answered" | "help.closed":
                self._questions.pop(str(said.data.get("help_id")), None)
            case "task":  # as of the event before what follows
                self._note_asking(said)
            case "task.status":
                self._note_asking(said)
                self._status(said)
            case "model.answered" if said.artifact and said.run == self._run:
                self._answer = self._answer or said.text

    @property
    def _waits(self) -> bool:
        return bool(self._tail) and not self._run

    def _take_own(self, said: Said) -> None:
        match said.kind:
            case "message.admitted" | "message.moved":
                self._tail, self.rest = said.number or 0, self._asking(said.state)  # behind an open question it waits
            case "message.withdrawn":
                self.end = End("unanswered", said.state, "withdrawn", "the message was taken back")
            case "message.promoted" | "help.answered":
                self._run, self._answer, self.rest = said.run, "", None

    def _note_asking(self, said: Said) -> None:
        asks = said.state == "input_required" and said.data.get("reason") == "help"
        self._asks = said.text if asks else None

    def _asking(self, state: str) -> End | None:
        """Return how it stands while the task asks something; None while it does not."""
        if self._asks is None:
            return None
        return End("waiting", state, "help", next(filter(None, self._questions.values()), self._asks))

    def _run_ended(self, said: Said) -> None:
        answered = said.data.get("end") == "answered"
        reason = str(said.data.get("reason", ""))
        ended = End("answered" if answered else "unanswered", reason=reason or str(said.data.get("end")))
        if self._run and said.run == self._run:
            self._ended = ended  # its state and its words are in the status that follows
        elif self._waits and not answered:
            self.rest = ended

    def _status(self, said: Said) -> None:
        self.rest = None if self.rest is None else replace(self.rest, state=said.state, message=said.text)
        if self._ended is not None:
            if self._ended.outcome == "answered":
                self.end = End("answered", said.state, answer=self._answer)
            else:
                self.end = replace(self._ended, state=said.state, message=said.text)
        elif said.state in TERMINAL:
            listed = said.data.get("unprocessed")
            unprocessed = isinstance(listed, list) and self._message_id in listed
            reason = "unprocessed" if unprocessed else str(said.data.get("reason", ""))
            self.end = End("unanswered", said.state, reason, said.text)
        elif self._asks is not None and (self._run or self._tail):
            self.rest = self._asking(said.state)
        elif said.state == "input_required" and self._waits:
            self.rest = self.rest or End("unanswered", said.state, str(said.data.get("reason", "")), said.text)
        elif said.state == "working":
            self.rest = None


class TaskEnd:
    """What becomes of a task."""

    def __init__(self) -> None:
        self.end: End | None = None
        self.rest: End | None = None
        self._answer = ""

    def take(self, said: Said) -> None:
        """Take the next event."""
        if said.number is None:
            return
        match said.kind:
            case "task" if "reason" in said.data:  # how it stood at the number from which on it is watched
                self._answer = said.text if said.data["reason"] == "answered" else self._answer
                self._rest_by(said)
            case "message.promoted" | "run.started":
                self._answer = ""
            case "task.status":
                self.end = self._stands(said) if said.state in TERMINAL else None
                self._rest_by(said)
            case "model.answered" if said.artifact:
                self._answer = said.text

    def _rest_by(self, said: Said) -> None:
        waits = said.state == "input_required" and said.data.get("reason") != "help"
        self.rest = self._stands(said) if waits else None

    def _stands(self, said: Said) -> End:
        reason = str(said.data.get("reason", ""))
        if said.state == "completed" or reason == "answered":
            return End("answered", said.state, answer=self._answer)
        return End("unanswered", said.state, reason, said.text)


class StateEnd:
    """What becomes of a task of a server that does not number.

    With `sent`, the task as it stood when the message came does not count, unless nothing follows.
    """

    def __init__(self, *, sent: bool) -> None:
        self.end: End | None = None
        self.rest: End | None = None
        self._sent = sent
        self._artifacts: dict[str, str] = {}
        self._words = ""

    def take(self, said: Said) -> None:
        """Take what was said next."""
        if said.artifact:
            before = self._artifacts.get(said.artifact, "") if said.appends else ""
            self._artifacts[said.artifact] = before + said.text
            return
        self._words = said.text or self._words
        stands = self._stands(said)
        if said.state in ASKING and said.kind == "task" and self._sent:
            self.rest, stands = stands, None
        self._sent = False
        if stands is not None:
            self.end = stands

    def _stands(self, said: Said) -> End | None:
        if said.state == "completed":
            return End("answered", said.state, answer="\n".join(self._artifacts.values()) or self._words)
        if said.state in ASKING:
            return End("waiting", said.state, "help", said.text)
        return End("unanswered", said.state, said.state, said.text) if said.state in TERMINAL else None
