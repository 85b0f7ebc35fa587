"""Contexts as the store has them: groups of tasks that are one conversation of one principal."""

from typing import Protocol

from perdure.core.content import Frozen


class ContextRow(Frozen):
    """A context; `newest_task_revision` is read at query time and orders lists."""

    context_id: str
    principal: str
    revision: int
    newest_task_revision: int


class ContextStore(Protocol):
    """What of contexts outlives a workflow."""

    async def contexts(self, limit: int) -> tuple[ContextRow, ...]:
        """Return contexts, the one with the newest task first."""
        ...

    async def ended_tasks(self, context_id: str, principal: str, agent_id: str, limit: int) -> tuple[str, ...]:
        """Return the ids of the latest tasks of a context that have ended, the one that ended last at the end."""
        ...

    async def claim_context(self, context_id: str, principal: str, at_ms: int) -> None:
        """Keep a context for a principal; raises `InvalidInput` where it is another's. One without tasks is unseen."""
        ...
