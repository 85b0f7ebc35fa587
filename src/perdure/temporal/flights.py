"""Flights: the attempts and waits under way, each answered by exactly one event of the machine."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy as ServerRetries
from temporalio.exceptions import ActivityError
from temporalio.workflow import ActivityCancellationType

from perdure.core import events
from perdure.core.commands import AwaitExpiry, CallModel, CallTool, Wait
from perdure.core.failure import Failure
from perdure.core.log import Batch, LogEvent
from perdure.core.ports import Execution
from perdure.temporal.contracts import Flight, ModelInput, ModelOutput, ToolInput
from perdure.temporal.failures import failure_of
from perdure.temporal.outbox import Outbox

ResultT = TypeVar("ResultT", ModelOutput, Execution)

ONE_ATTEMPT = ServerRetries(maximum_attempts=1)
"""Every attempt is scheduled by the workflow, so that each is an event in the log with its number."""


def quarantine_queue(task_queue: str) -> str:
    """Return the queue of an agent's attempts that run alone (R12)."""
    return f"{task_queue}:quarantine"


EXPIRY = "expiry"
"""How the monitor calls the wait for a help request's expiry."""

NOT_BEGUN = Failure(kind="cancelled", message="told to stop before it was scheduled")


class Flights:
    """Schedules attempts. Waiting rows are taken along at the moment of the launch."""

    def __init__(self, agent_id: str, task_id: str, outbox: Outbox, apply: Callable[[events.Event], None]) -> None:
        self._agent_id = agent_id
        self._task_id = task_id
        self._outbox = outbox
        self._apply = apply
        self._tasks: dict[Flight, asyncio.Task[None]] = {}
        self._expiries: dict[str, asyncio.Task[None]] = {}
        self.broken: BaseException | None = None

    @property
    def any(self) -> bool:
        """Whether anything is under way."""
        return bool(self._tasks)

    def under_way(self) -> tuple[Flight, ...]:
        """Return what is under way, for the monitor."""
        return tuple(self._tasks)

    def call_model(self, command: CallModel) -> None:
        """Schedule an attempt at a model call."""
        flight = Flight(name="invoke_llm", turn=command.turn, attempt=command.attempt, status="flying")
        rows = self._outbox.take_all()
        self._launch(flight, self._model(command, rows), lambda: self._model_failed(command, rows, NOT_BEGUN))

    def call_tool(self, command: CallTool) -> None:
        """Schedule an attempt at a tool call."""
        flight = Flight(
            name="invoke_tool", turn=command.turn, index=command.index, attempt=command.attempt, status="flying"
        )
        rows = self._outbox.take()
        self._launch(flight, self._tool(command, rows), lambda: self._tool_failed(command, rows, NOT_BEGUN))

    def wait(self, command: Wait) -> None:
        """Wait before the next attempt."""
        flight = Flight(name="wait", turn=command.turn, index=command.index, attempt=0, status="waiting")
        self._launch(flight, self._wait(command), lambda: None)

    def await_expiry(self, command: AwaitExpiry) -> None:
        """Wait until a help request expires."""
        flight = Flight(name=EXPIRY, turn=command.turn, index=command.index, attempt=0, status="waiting")
        self._launch(flight, self._expiry(command), lambda: None)
        waiting = self._expiries[command.help_id] = self._tasks[flight]
        waiting.add_done_callback(lambda _: self._expiries.pop(command.help_id, None))

    def drop_expiry(self, help_id: str) -> None:
        """Wait for it no longer; its timer goes with it (P8)."""
        waiting = self._expiries.get(help_id)
        if waiting is not None:
            waiting.cancel()

    def stop(self) -> None:
        """Tell everything under way to stop: attempts still answer, waits are over without an event."""
        for task in list(self._tasks.values()):
            task.cancel()

    def _launch(self, flight: Flight, flying: Coroutine[Any, Any, None], cancelled: Callable[[], None]) -> None:
        task = asyncio.create_task(flying)
        self._tasks[flight] = task

        def landed(task: asyncio.Task[None]) -> None:
            del self._tasks[flight]
            if task.cancelled():
                # Stopped in the very activation of its launch, before anything was scheduled.
                cancelled()
            elif task.exception() is not None:
                # Tasks beside the main one fail in silence; the loop raises this as a failure of the workflow task.
                self.broken = task.exception()

        task.add_done_callback(landed)

    async def _model(self, command: CallModel, rows: tuple[LogEvent, ...]) -> None:
        given = ModelInput(agent_id=self._agent_id, batch=self._batch(rows), command=command)
        try:
            output = await _attempt("invoke_llm", given, ModelOutput)
        except ActivityError as error:
            self._model_failed(command, rows, failure_of(error))
            return
        self._outbox.confirm(rows)
        self._apply(
            events.ModelReplied(
                at_ms=now_ms(),
                turn=command.turn,
                attempt=command.attempt,
                digest=output.digest,
                finish=output.finish,
                has_text=output.has_text,
                calls=output.calls,
                usage=output.usage,
                model=output.model,
                late=output.late,
            )
        )

    def _model_failed(self, command: CallModel, rows: tuple[LogEvent, ...], failure: Failure) -> None:
        self._outbox.give_back(rows)
        jitter = workflow.random().random()
        self._apply(
            events.ModelFailed(
                at_ms=now_ms(), turn=command.turn, attempt=command.attempt, failure=failure, jitter=jitter
            )
        )

    async def _tool(self, command: CallTool, rows: tuple[LogEvent, ...]) -> None:
        given = ToolInput(agent_id=self._agent_id, batch=self._batch(rows), command=command)
        try:
            output = await _attempt("invoke_tool", given, Execution)
        except ActivityError as error:
            self._tool_failed(command, rows, failure_of(error))
            return
        self._outbox.confirm(rows)
        self._apply(
            events.ToolFinished(
                at_ms=now_ms(),
                turn=command.turn,
                index=command.index,
                attempt=command.attempt,
                outcome=output.outcome,
                digest=output.digest,
                status=output.status,
                reason=output.reason,
                question=output.question,
                choices=output.choices,
                form=output.form,
                notes=output.notes,
            )
        )

    def _tool_failed(self, command: CallTool, rows: tuple[LogEvent, ...], failure: Failure) -> None:
        self._outbox.give_back(rows)
        jitter = workflow.random().random()
        self._apply(
            events.ToolFailed(
                at_ms=now_ms(),
                turn=command.turn,
                index=command.index,
                attempt=command.attempt,
                failure=failure,
                jitter=jitter,
            )
        )

    async def _wait(self, command: Wait) -> None:
        await asyncio.sleep(command.delay_ms / 1000)
        self._apply(events.BackoffOver(at_ms=now_ms(), turn=command.turn, index=command.index))

    async def _expiry(self, command: AwaitExpiry) -> None:
        await asyncio.sleep(max(0, command.at_ms - now_ms()) / 1000)
        self._apply(events.HelpExpired(at_ms=max(now_ms(), command.at_ms), help_id=command.help_id))

    def _batch(self, rows: tuple[LogEvent, ...]) -> Batch:
        return Batch(task_id=self._task_id, rows=rows, confirmed=self._outbox.confirmed)


async def _attempt(name: str, given: ModelInput | ToolInput, result: type[ResultT]) -> ResultT:
    """Make one attempt; one that must run alone (R12) has a queue of its own."""
    command = given.command
    answer: ResultT = await workflow.execute_activity(
        name,
        given,
        task_queue=quarantine_queue(workflow.info().task_queue) if command.quarantine else None,
        result_type=result,
        start_to_close_timeout=timedelta(seconds=command.timeout_s),
        heartbeat_timeout=timedelta(seconds=command.heartbeat_timeout_s),
        retry_policy=ONE_ATTEMPT,
        cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
    return answer


def now_ms() -> int:
    """Return the workflow's clock in milliseconds since the epoch."""
    return int(workflow.time() * 1000)
