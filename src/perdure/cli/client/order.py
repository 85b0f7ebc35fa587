"""Putting what was said of a task in the order of its numbers, whatever the order in which it came; pure.

Numbers have no gap (P6), so the next one is always known. What comes too early waits for it, what comes again is
dropped. Nothing is decided by arrival.
"""

from perdure.cli.client.said import Said
from perdure.core import limits
from perdure.core.errors import StoreBehind


class InOrder:
    """Hands on each number once, in order. `seen` is the last one that was handed on."""

    def __init__(self, seen: int) -> None:
        self.seen = seen
        self._early: dict[int, Said] = {}

    def take(self, said: Said) -> list[Said]:
        """Take one in; return what can be handed on now. What has no number is handed on as it comes."""
        if said.number is None:
            return [said]
        if said.number > self.seen:
            self._early[said.number] = said
        ready = []
        while self.seen + 1 in self._early:
            self.seen += 1
            ready.append(self._early.pop(self.seen))
        return ready

    @property
    def gapes(self) -> bool:
        """Whether more came too early than a reordering explains: ask again from `seen`."""
        return len(self._early) > limits.CLIENT_EARLY_MAX

    def start(self, number: int) -> None:
        """A stream begins with the task as of `number`.

        Raises `StoreBehind` when that is before what was seen: the numbers after it will mean other events.
        """
        if number < self.seen:
            raise StoreBehind(
                f"the server knows this task up to event {number} only, and {self.seen} were seen here: its store was "
                "put back to an older moment; look at the task anew, with --after 0"
            )
        self.seen = number
        self._early = {early: said for early, said in self._early.items() if early > number}
