"""The drafts that a process knows, and telling them to the processes that follow.

What is told is kept in step, not sent once: for each listener it is noted how much of each draft it has been sent, and
the rest follows with the next round. So a listener that reads slowly gets fewer and longer pieces, and one that comes
in the middle gets the beginning.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator

from perdure.core import limits
from perdure.core.deltas import Delta, Draft, joined, packed, pieces, unpacked
from perdure.store.channel import Channel

Sent = tuple[int, int, int]
"""Turn, attempt, and how many characters."""


class Drafts:
    """Implements `perdure.core.deltas.DraftBoard` over a channel."""

    def __init__(self, channel: Channel, listen: Callable[[], None]) -> None:
        self._channel = channel
        self._listen = listen
        self._board: OrderedDict[str, Draft] = OrderedDict()
        self._chars = 0
        self._watchers: dict[str, list[Callable[[], None]]] = {}
        self._own: OrderedDict[str, Draft] = OrderedDict()
        self._sent: dict[str, dict[str, Sent]] = {}
        self._round: asyncio.TimerHandle | None = None

    def say(self, task_id: str, turn: int, attempt: int, text: str) -> None:
        """Take the next piece of a reply that is made here, and tell it to whoever listens; never blocks or fails."""
        before = self._own.pop(task_id, None)
        at = len(before.text) if before is not None and before[:2] == (turn, attempt) else 0
        delta = Delta(task_id, turn, attempt, at, text[: limits.DRAFT_CHARS_MAX - at])
        draft = joined(before, delta)
        if draft is None:
            return
        self._own[task_id] = draft
        if len(self._own) > limits.DRAFTS_OWN_MAX:
            self._own.popitem(last=False)
        self._show(task_id, draft)
        if self._round is None:
            self._round = asyncio.get_running_loop().call_later(limits.DELTA_EVERY_MS / 1000, self._tell)

    def of(self, task_id: str) -> Draft | None:
        """Return what is known of the latest draft of a task."""
        return self._board.get(task_id)

    def watch(self, task_id: str, changed: Callable[[], None]) -> Callable[[], None]:
        """Listen, and call `changed` when there is more of a task's draft, until what this returns is called."""
        self._listen()
        watchers = self._watchers.setdefault(task_id, [])
        watchers.append(changed)

        def leave() -> None:
            watchers.remove(changed)
            if not watchers and self._watchers.get(task_id) is watchers:
                del self._watchers[task_id]

        return leave

    def hear(self, data: bytes) -> None:
        """Take a datagram of another process."""
        for delta in unpacked(data):
            draft = joined(self._board.get(delta.task_id), delta)
            if draft is None:
                self._drop(delta.task_id)
            elif draft is not self._board.get(delta.task_id):
                self._show(delta.task_id, draft)

    def close(self) -> None:
        """Tell nothing more."""
        if self._round is not None:
            self._round.cancel()

    # --- the board ------------------------------------------------------------------------------------------------

    def _show(self, task_id: str, draft: Draft) -> None:
        self._drop(task_id)
        self._board[task_id] = draft
        self._chars += len(draft.text)
        while self._chars > limits.DRAFTS_KEPT_CHARS_MAX and len(self._board) > 1:
            self._drop(next(iter(self._board)))
        for changed in tuple(self._watchers.get(task_id, ())):
            changed()

    def _drop(self, task_id: str) -> None:
        before = self._board.pop(task_id, None)
        self._chars -= 0 if before is None else len(before.text)

    # --- telling --------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        self._round = None
        peers = self._channel.peers()
        self._sent = {peer: self._sent.get(peer, {}) for peer in peers}
        slow = [peer for peer in peers if not self._bring_up(peer, self._sent[peer])]
        if slow:
            self._round = asyncio.get_running_loop().call_later(limits.DELTA_EVERY_MS / 1000, self._tell)

    def _bring_up(self, peer: str, sent: dict[str, Sent]) -> bool:
        """Send a listener what it lacks; return whether it took all of it."""
        for gone in sent.keys() - self._own.keys():
            del sent[gone]
        for data, deltas in _datagrams(self._lacking(sent)):
            if not self._channel.send(peer, data):
                return False
            for delta in deltas:
                sent[delta.task_id] = (delta.turn, delta.attempt, delta.at + len(delta.text))
        return True

    def _lacking(self, sent: dict[str, Sent]) -> Iterator[Delta]:
        for task_id, draft in self._own.items():
            turn, attempt, chars = sent.get(task_id, (0, 0, 0))
            yield from pieces(task_id, draft, chars if (turn, attempt) == draft[:2] else 0)


def _datagrams(deltas: Iterator[Delta]) -> Iterator[tuple[bytes, list[Delta]]]:
    """Yield as many deltas as fit into one datagram, and those that are in it."""
    batch: list[Delta] = []
    size_bytes = 2
    for delta in deltas:
        delta_bytes = len(packed([delta]))
        if batch and size_bytes + delta_bytes > limits.DATAGRAM_BYTES_MAX:
            yield packed(batch), batch
            batch, size_bytes = [], 2
        batch.append(delta)
        size_bytes += delta_bytes
    if batch:
        yield packed(batch), batch
