"""Whose turn it is to deliver: of all servers over a store exactly one, or for a moment none.

The holder counts a beat up in the store. Another server takes the lease when it has looked at the same beat for
LEASE_S, by its own clock; the holder counts the same time from before it wrote its latest beat, by its own. So the
holder's time is over first, whatever their clocks say and however long a write took: a holder that was stopped, or that
the store does not answer, knows by itself that its turn may be another's. What it writes down is refused then, too
(`core/pushes.py`). Where there is nothing to deliver nobody holds it, and nothing is written.
"""

import time

from perdure.core import push_limits
from perdure.core.pushes import Lease, PushStore


class Turn:
    """This process's part in the lease of one key."""

    def __init__(self, store: PushStore, key_id: str, holder: str, lease_s: float = push_limits.LEASE_S) -> None:
        self.holder = holder
        self._store = store
        self._key_id = key_id
        self._lease_s = lease_s
        self._seen = Lease()
        self._seen_at_s = time.monotonic()
        self._until_s = 0.0

    @property
    def is_ours(self) -> bool:
        """Whether this process may deliver now; without asking the store."""
        return time.monotonic() < self._until_s

    async def hold(self, standing: Lease) -> bool:
        """Take the lease, or keep it, given how it stands in the store; return whether it is ours now."""
        now_s = time.monotonic()
        if standing != self._seen:
            self._seen, self._seen_at_s = standing, now_s
        if standing.holder == self.holder:
            if now_s < self._until_s - self._lease_s + push_limits.BEAT_S:
                return True
        elif standing.holder and now_s < self._seen_at_s + self._lease_s:
            self._until_s = 0.0
            return False
        taken = await self._store.beat(self._key_id, self.holder, standing)
        self._until_s = now_s + self._lease_s if taken.holder == self.holder else 0.0
        return self.is_ours

    async def rest(self, standing: Lease) -> None:
        """Give the lease up instead of counting it up: there is nothing to deliver."""
        if self._until_s and time.monotonic() >= self._until_s - self._lease_s + push_limits.BEAT_S:
            await self.give_up(standing)

    async def give_up(self, standing: Lease | None = None) -> None:
        """Let another have its turn, at once; does nothing where it is not ours."""
        if self._until_s and (standing is None or standing.holder == self.holder):
            await self._store.release(self._key_id, self.holder)
        self._until_s = 0.0
