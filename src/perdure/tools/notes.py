"""What a tool says of its work while it works: progress, and words meant for people.

They are for whoever reads the task's log, never for the model, and stand in one row after their attempt: numbered
events are the workflow's alone, and one for each word would make a task's history grow with a tool's talk (P7). The
latest are kept, and how many there were.
"""

from contextvars import ContextVar

from perdure.core.digests import cut_text, safe_text
from perdure.core.mcp_limits import NOTE_BYTES_MAX, NOTES_PER_ATTEMPT_MAX


class Notes:
    """The notes of one attempt. `count` counts those that were let go, too."""

    def __init__(self) -> None:
        self.count = 0
        self._latest: dict[str, str] = {}

    def say(self, text: str, about: str = "") -> None:
        """Note `text`; a later note `about` the same (progress, say) takes the place of the one before."""
        self.count += 1
        name = about or f"#{self.count}"
        self._latest.pop(name, None)
        self._latest[name] = cut_text(safe_text(text), NOTE_BYTES_MAX, "…")
        while len(self._latest) > NOTES_PER_ATTEMPT_MAX:
            del self._latest[next(iter(self._latest))]

    @property
    def latest(self) -> tuple[str, ...]:
        """What is kept, in order."""
        return tuple(self._latest.values())


_current: ContextVar[Notes | None] = ContextVar("perdure_notes", default=None)


def taken() -> Notes:
    """Return the notes of the attempt that this code runs in; elsewhere, some that nobody reads."""
    return _current.get() or Notes()


def take(notes: Notes) -> None:
    """Let the attempt that runs in this context note what is said into `notes`."""
    _current.set(notes)
