"""Push notifications as they are kept: which of a task's events go where, and how far that has come.

A configuration's *cursor* is the number of the last event that its receiver took. The next one goes out until it is
taken, or until the configuration is given up; only then does the cursor move. So each event after a configuration's
creation is delivered at least once and in order, and a receiver that was told twice sees the same number twice. This
is what the ledger is for other effects: under the key (task, configuration, number) the cursor says what is done.

One process at a time delivers, by a *lease*: its holder counts a beat up, and whoever sees the same beat for long
enough takes it over. No clock of another host is asked. What a holder writes down stands only while it holds it.

What is secret (the address too, which often carries a key of its own) is sealed before it comes here; `key_id` names
the key it is sealed with. Who lacks that key leaves the configuration to those who have it.
"""

from typing import Literal, Protocol

from pydantic import Field

from perdure.core.content import Frozen
from perdure.core.log import TaskHeader

PushState = Literal["active", "done", "given_up"]
"""`done`: the task's terminal event was taken. `given_up`: what came next failed for too long."""


class PushConfig(Frozen):
    """One configuration. `attempts` count the failures in a row of what comes next, tried again at `next_at_ms`."""

    task_id: str
    config_id: str
    key_id: str
    sealed: bytes
    state: PushState = "active"
    cursor: int = 0
    attempts: int = 0
    next_at_ms: int = 0


class Lease(Frozen):
    """Who may deliver. An empty `holder` is nobody."""

    holder: str = ""
    beat: int = 0


class Pulse(Frozen):
    """What a deliverer looks at between its rounds: whether anything is active or has changed, and who delivers."""

    active: bool
    revision: int
    lease: Lease


class DuePushes(Frozen):
    """Configurations with something to deliver now, in turn over principals, and when the next retry is due.

    `principals` are those whose tasks they are, by task.
    """

    configs: tuple[PushConfig, ...]
    wake_at_ms: int | None
    principals: dict[str, str] = Field(default_factory=dict)


class PushStore(Protocol):
    """What keeps configurations, cursors and leases. Raises what every store does (`ports.Store`)."""

    async def save(self, config: PushConfig, header: TaskHeader, after: int | None, at_ms: int) -> PushConfig:
        """Keep a configuration and return it as it stands.

        A new one delivers what comes after event `after` (None: after the task's last one). One that stands keeps its
        cursor and is active again. Raises `InvalidInput` where the task has too many.
        """
        ...

    async def find(self, task_id: str, config_id: str) -> PushConfig | None:
        """Return the configuration, or None."""
        ...

    async def of_task(self, task_id: str) -> tuple[PushConfig, ...]:
        """Return a task's configurations in the order of their ids."""
        ...

    async def delete(self, task_id: str, config_id: str, at_ms: int) -> None:
        """Delete a configuration; one that is not there is no error."""
        ...

    async def pulse(self, key_id: str) -> Pulse:
        """Return what to look at between rounds."""
        ...

    async def due(self, key_id: str, now_ms: int, limit: int) -> DuePushes:
        """Return what is to be delivered now: of each principal something before of any one more."""
        ...

    async def standing(self, config: PushConfig, holder: str) -> bool:
        """Whether the configuration stands as it was read, and `holder` still delivers: ask before every delivery."""
        ...

    async def settle(self, was: PushConfig, now: PushConfig, holder: str) -> bool:
        """Write down what a delivery came to; False, and nothing is, where `standing` would say no."""
        ...

    async def beat(self, key_id: str, holder: str, seen: Lease) -> Lease:
        """Take the lease, or count one's own beat up, if it is as it was `seen`; return it as it stands."""
        ...

    async def release(self, key_id: str, holder: str) -> None:
        """Give the lease up, so that another need not wait for it."""
        ...


class PushKeeper(Protocol):
    """A store that keeps push notifications."""

    @property
    def pushes(self) -> PushStore:
        """What it keeps of them."""
        ...
