"""What a worker has in hand: told to a board outside its memory, so that its supervisor knows it after its death.

That is what proves a death against a task (R12): the one that was alone in the worker. And it is faster than to ask
Temporal which tasks may be concerned.
"""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor


class Board(Protocol):
    """Where attempts are noted while they are in hand."""

    def noting(self, task_id: str) -> AbstractContextManager[None]:
        """Note an attempt of the task for as long as the context is open."""
        ...


class InHand(Interceptor):
    """Notes every attempt of a worker on its board."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return what notes one attempt at a time."""
        return _Noting(next, self._board)


class _Noting(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, board: Board) -> None:
        super().__init__(next)
        self._board = board

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Execute the attempt, noted."""
        with self._board.noting(activity.info().workflow_id or ""):
            return await super().execute_activity(input)
