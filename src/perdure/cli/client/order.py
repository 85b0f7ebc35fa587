"""Putting what was said of a task in the order of its numbers, whatever the order in which it came; pure.

Numbers have no gap (P6), so the next one is always known. What comes too early waits for it, what comes again is
dropped. Nothing is decided by arrival.

A status stands until the next one and is repeated with every update, its text too: a text is handed on once.
"""

from dataclasses import replace

from perdure.cli.client.said import Said
from perdure.core import client_limits
from perdure.core.errors import StoreBehind


class InOrder:
    """Hands on each number once, in order. `seen` is the last one that was handed on."""

    def __init__(self, seen: int) -> None:
        self.seen = seen
        self._early: dict[int, Said] = {}
        self._text_id = ""

    def take(self, said: Said) -> list[Said]:
        """Take one in; return what can be handed on now. What has no number is handed on as it comes."""
        if said.number is None:
            return [self._fresh(said)]
        if said.number > self.seen:
            self._early[said.number] = said
        ready = []
        while self.seen + 1 in self._early:
            self.seen += 1
            ready.append(self._fresh(self._early.pop(self.seen)))
        return ready

    @property
    def gapes(self) -> bool:
        """Whether more came too early than a reordering explains: ask again from `seen`."""
        return len(self._early) > client_limits.EARLY_MAX

    def start(self, task: Said) -> None:
        """A stream begins with the task as of some number.

        Raises `StoreBehind` when that is before what was seen: the numbers after it will mean other events.
        """
        number = self.seen if task.number is None else task.number
        if number < self.seen:
            raise StoreBehind(
                f"the server knows this task up to event {number} only, and {self.seen} were seen here: its store was "
                "put back to an older moment; look at the task anew, with --after 0"
            )
        self.seen = number
        self._early = {early: said for early, said in self._early.items() if early > number}
        self._text_id = task.text_id

    def _fresh(self, said: Said) -> Said:
        if said.text_id and said.text_id == self._text_id:
            return replace(said, text="")
        self._text_id = said.text_id or self._text_id
        return said
