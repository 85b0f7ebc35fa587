"""The task's workflow: events in, commands out. It decides nothing; `perdure.core.machine` does.

Updates, signals and results of activities become events of the machine; its commands become activities, timers and
rows for the store. Between the two stand the flights (`flights.py`) and the writer (`writer.py`).

Temporal applies updates before activity completions within one activation, and handlers can run before `run`: both
are harmless here, because every event is applied at once, to the state as it is then, and commands are launched by
the one loop in `run`.
"""

import asyncio
from collections.abc import Callable

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from perdure.core import events
from perdure.core.commands import (
    Append,
    AwaitExpiry,
    CallModel,
    CallTool,
    Command,
    DropExpiry,
    Fence,
    Persist,
    StopFlights,
    StoreMessage,
    Wait,
)
from perdure.core.errors import Diverged, InvalidInput, PerdureError
from perdure.core.log import LogEvent
from perdure.core.machine import new_task, outstanding, refuse_admission, resend, step
from perdure.core.state import TaskState
from perdure.temporal.admissible import message_digest, question_for, refusal, words_of
from perdure.temporal.contracts import (
    ROLLING,
    TASK_WORKFLOW,
    AnswerRequest,
    Carried,
    InboxItem,
    InboxReply,
    InboxRequest,
    Monitor,
    OperateRequest,
    Recorded,
    TaskOutcome,
    TaskStart,
)
from perdure.temporal.fault_points import reach
from perdure.temporal.flights import Flights, now_ms
from perdure.temporal.operations import Operations, disagreement, overfull, winds_down
from perdure.temporal.waiting import within
from perdure.temporal.writer import Writer

_POINTS = {
    "message.promoted": "run.promoted",
    "message.moved": "message.changed",
    "message.withdrawn": "message.changed",
    "run.ended": "run.ending",
    "run.stop_requested": "stop.recorded",
    "run.stopped_before_start": "stop.recorded",
    "help.answered": "help.answering",
    "help.closed": "help.closing",
}
"""The rows that stand for a fault point."""


@workflow.defn(name=TASK_WORKFLOW)
class TaskWorkflow:
    """One task. Its workflow id is the task id."""

    @workflow.init
    def __init__(self, start: TaskStart) -> None:
        carried = start.carried
        self._start = start
        self._state: TaskState = carried.state if carried else new_task(start.task_id, start.context_id, start.agent)
        self._todo: list[Command] = []
        self._rolling = False
        self._updates = 0
        self._writer = Writer(start.header, self._state, carried, self._apply, hold=self._about_to_launch)
        self._flights = Flights(start.agent.agent_id, start.task_id, self._writer.outbox, self._apply)
        self._operations = Operations(self._take, self._apply, self._writer)
        if carried is not None:
            self._todo.extend(outstanding(self._state))
            return
        self._apply(events.Created(at_ms=now_ms(), earlier=start.earlier))
        for message in start.messages:
            self._take(InboxItem(message=message))

    @workflow.run
    async def run(self, start: TaskStart) -> TaskOutcome:
        """Launch what the machine asks for, until the task is terminal and its end is in the store (P5)."""
        if not self._state.seen:
            # Nothing can ever wake it, and a task without a message has no sender who could be told.
            raise ApplicationError(
                f"P1: task {start.task_id} was started without a message", type="invalid_input", non_retryable=True
            )
        writer = asyncio.create_task(self._writer.run())
        while not self._done():
            try:
                await workflow.wait_condition(lambda: self._must_act(writer))
                if self._rolls:
                    await self._roll(writer)
            except asyncio.CancelledError:
                # Temporal's own cancel of the workflow is A2A's cancel: recorded, wound down, one terminal state.
                if not self._state.terminal:
                    self._apply(events.CancelRequested(at_ms=now_ms()))
                continue
            self._raise_what_broke(writer)
            if self._can_launch():
                self._launch()
        writer.cancel()
        return TaskOutcome(state=self._state.status, reason=self._state.reason, last_number=self._state.last_number)

    def _must_act(self, writer: "asyncio.Task[None]") -> bool:
        return self._can_launch() or self._done() or self._rolls or self._is_broken(writer)

    def _is_broken(self, writer: "asyncio.Task[None]") -> bool:
        return writer.done() or self._flights.broken is not None or self._writer.refused is not None

    def _raise_what_broke(self, writer: "asyncio.Task[None]") -> None:
        if self._writer.refused is not None:
            # The store holds a terminal task, or another one, under this id: nothing starts again (P5).
            raise ApplicationError(self._writer.refused, type="diverged", non_retryable=True)
        if self._flights.broken is not None:
            raise self._flights.broken
        if writer.done():
            writer.result()

    def _done(self) -> bool:
        persisted = self._state.terminal and self._writer.persisted(self._state.last_number)
        return persisted and not self._todo and workflow.all_handlers_finished()

    # --- events in, commands out --------------------------------------------------------------------------------

    def _apply(self, event: events.Event) -> None:
        """Apply one event. Rows and messages go to the writer now; everything else waits for the loop."""
        self._state, commands = step(self._state, event)
        self._writer.state = self._state
        for command in commands:
            match command:
                case Append(event=row):
                    self._writer.outbox.append(row)
                    if row.kind in _POINTS:
                        reach(_POINTS[row.kind], self._start.task_id, str(row.data.get("message_id", "")))
                case StoreMessage():
                    pass  # `_take` gives the writer its body
                case Fence(run=run):
                    self._writer.fence(run)
                case Persist():
                    self._writer.persist()
                case DropExpiry(help_id=help_id):
                    # At once: what is left to launch says whether the task may continue as new.
                    self._todo = [c for c in self._todo if not (isinstance(c, AwaitExpiry) and c.help_id == help_id)]
                    self._flights.drop_expiry(help_id)
                case _:
                    self._todo.append(command)

    def _about_to_launch(self) -> bool:
        return self._can_launch() and not self._rolling

    def _can_launch(self) -> bool:
        """A model call waits until it can take all unconfirmed rows along; the writer brings them down to that."""
        return bool(self._todo) and (
            self._writer.outbox.fits or not any(isinstance(command, CallModel) for command in self._todo)
        )

    def _launch(self) -> None:
        todo, self._todo = self._todo, []
        for command in todo:
            match command:
                case CallModel():
                    self._flights.call_model(command)
                case CallTool():
                    self._flights.call_tool(command)
                case Wait():
                    self._flights.wait(command)
                case AwaitExpiry():
                    self._flights.await_expiry(command)
                case StopFlights():
                    self._flights.stop()
                case _:
                    raise PerdureError(f"a command of kind {type(command).__name__} has no place in the loop")

    # --- continue-as-new ----------------------------------------------------------------------------------------

    def _history_is_long(self) -> bool:
        info = workflow.info()
        return (
            info.is_continue_as_new_suggested() or info.get_current_history_length() >= self._start.history_events_max
        )

    @property
    def _rolls(self) -> bool:
        return self._rolls_idle() or self._rolls_at(self._todo)

    def _rolls_idle(self) -> bool:
        """Between runs, when nothing is under way."""
        state = self._state
        idle = state.run is None and not state.terminal and not self._todo and not self._flights.any
        return idle and self._history_is_long() and self._writer.idle

    def _rolls_at(self, todo: list[Command]) -> bool:
        """Between turns from a run's second on, when the only thing to launch is a turn's first model attempt."""
        run = self._state.run
        first = len(todo) == 1 and isinstance(todo[0], CallModel) and todo[0].attempt == 1
        return first and run is not None and run.turns > 1 and not self._flights.any and self._history_is_long()

    async def _roll(self, writer: "asyncio.Task[None]") -> None:
        """Continue as new once all handlers have finished; new updates are refused as retryable meanwhile.

        Only rows and the state go over. What else the store is owed is written first. A signal may end what was to
        go over (a cancel winds the run down): then nothing is continued, and the loop goes on here.
        """
        self._rolling = True
        try:
            await workflow.wait_condition(lambda: self._can_hand_over() or not self._rolls or self._is_broken(writer))
        finally:
            self._rolling = False
        if self._rolls and not self._is_broken(writer):
            outbox = self._writer.outbox
            carried = Carried(state=self._state, rows=outbox.unconfirmed(), confirmed=outbox.confirmed)
            workflow.continue_as_new(self._start.model_copy(update={"messages": (), "carried": carried}))

    def _can_hand_over(self) -> bool:
        return workflow.all_handlers_finished() and self._writer.owes_only_rows

    # --- updates ------------------------------------------------------------------------------------------------

    @workflow.update
    async def inbox(self, request: InboxRequest) -> InboxReply:
        """Take messages in; each receipt with a number is durable in the store when this returns (R3).

        Fails as `unavailable` when the store does not take the rows in time: what was admitted stays admitted, and
        a resend under the same ids tells.
        """
        self._begin_update()
        receipts = [await self._operations.receive(item) for item in request.items]
        ids = [receipt.message_id for receipt in receipts if receipt.number is not None]
        await self._within(lambda: self._writer.stored(ids), "the message was admitted, but its row")
        return InboxReply(receipts=tuple(receipts))

    @workflow.update
    async def operate(self, request: OperateRequest) -> InboxReply:
        """Carry out operations of any kind, in order; each receipt without a problem holds whatever is killed now."""
        self._begin_update()
        return await self._operations.carry_out(request.operations)

    @operate.validator
    def refuse_without_a_trace(self, request: OperateRequest) -> None:
        """Refuse before Temporal records it, where the history has no room for it, or it is an answer that is none."""
        try:
            self._operations.refuse_overfull(request.operations, self._updates)
            self._operations.refuse_answer(request.operations)
        except PerdureError as error:
            raise refusal(error) from error

    def _take(self, item: InboxItem) -> int:
        """Admit the message, or let it answer the question that is open; a resend changes nothing (P1)."""
        name, content = item.message.message_id, message_digest(item.message)
        known = resend(self._state, name, content)
        if known is not None:
            return known
        refuse_admission(self._state, count=0)
        question = question_for(self._state, item)
        if question is None:  # an answer needs no room in the inbox, and leads out of a step whose history is full
            refuse_admission(self._state)
            problem = overfull(self._state)
            if problem is not None:
                raise problem
        event: events.Event = events.Admitted(at_ms=now_ms(), message_id=name, digest=content, lane=item.lane)
        if question is not None:
            help_id, text = question.help_id, words_of(item.message)
            event = events.Answered(
                at_ms=now_ms(), help_id=help_id, text=text, message_id=name, digest=content, by=item.by
            )
        self._apply(event)
        self._writer.keep(item.message)
        number = resend(self._state, name, content)
        if number is None:
            raise PerdureError("P1: an admitted message is not remembered")
        return number

    @workflow.update
    async def stop(self) -> Recorded:
        """Stop the run. When this returns no model or tool call of it begins any more (P9)."""
        return await self._wind_down(events.StopRequested(at_ms=now_ms()))

    @workflow.update
    async def cancel(self) -> Recorded:
        """Cancel the task: A2A's cancel, terminal."""
        return await self._wind_down(events.CancelRequested(at_ms=now_ms()))

    async def _wind_down(self, event: events.Event) -> Recorded:
        self._begin_update()
        before = self._state.last_number
        try:
            self._apply(event)
        except InvalidInput as error:
            raise refusal(error) from error
        number = self._state.last_number
        fence = self._writer.fence_owed
        if fence is not None:
            await self._within(lambda: self._writer.fenced >= fence, "the stop was recorded, but its fence")
        return Recorded(recorded=number > before or winds_down(self._state), number=number)

    @workflow.update
    async def cancel_message(self, message_id: str) -> Recorded:
        """Take one pending message back (R6)."""
        return self._change(events.Withdrawn(at_ms=now_ms(), message_id=message_id))

    @workflow.update
    async def steer(self, message_id: str) -> Recorded:
        """Move one pending message to the steer lane (R5)."""
        return self._change(events.Moved(at_ms=now_ms(), message_id=message_id))

    @workflow.update
    async def answer(self, request: AnswerRequest) -> Recorded:
        """Answer a help request; the second answer to one is refused."""
        return self._change(events.Answered(at_ms=now_ms(), help_id=request.help_id, text=request.text, by=request.by))

    def _change(self, event: events.Event) -> Recorded:
        """Apply what needs no row before it is acknowledged: the update itself is durable in Temporal."""
        self._begin_update()
        try:
            self._apply(event)
        except PerdureError as error:
            raise refusal(error) from error
        return Recorded(recorded=True, number=self._state.last_number)

    def _begin_update(self) -> None:
        """Refuse what comes while the task continues in a new run; else the store may be tried once more."""
        if self._rolling:
            raise ApplicationError("the task continues in a new run; send again", ROLLING, type="unavailable")
        self._updates += 1
        self._writer.try_again()

    async def _within(self, condition: Callable[[], bool], what: str) -> None:
        if not await within(lambda: condition() or self._writer.parked, self._state.agent.bounds.acknowledge_within_s):
            raise ApplicationError(f"{what} is not in the store yet; ask again", type="unavailable")
        if not condition():
            text = disagreement(what, self._writer.diverged)
            raise ApplicationError(text, type=Diverged.code, non_retryable=True)

    # --- signals ------------------------------------------------------------------------------------------------

    @workflow.signal(name="cancel")
    def on_cancel(self) -> None:
        """Cancel, from a parent task; one that is terminal already stays so."""
        self._writer.try_again()
        if not self._state.terminal:
            self._apply(events.CancelRequested(at_ms=now_ms()))

    @workflow.signal
    def child_done(self, child_id: str, status: str) -> None:
        """Record that a sub-task reached its terminal state."""
        if not self._state.terminal:
            self._apply(events.ChildDone(at_ms=now_ms(), child_id=child_id, status=status))

    # --- queries ------------------------------------------------------------------------------------------------

    @workflow.query
    def task(self) -> TaskState:
        """Return the state as it is now, also what the store does not have yet."""
        return self._state

    @workflow.query
    def events_since(self, number: int) -> list[LogEvent]:
        """Return the rows after `number` that the store has not confirmed; older ones are read there."""
        return [row for row in self._writer.outbox.unconfirmed() if row.number > number]

    @workflow.query
    def monitor(self) -> Monitor:
        """Return what is under way."""
        return Monitor(
            flights=self._flights.under_way(),
            unwritten=len(self._writer.outbox.unconfirmed()),
            confirmed=self._writer.outbox.confirmed,
            degraded=self._writer.degraded,
            diverged=self._writer.diverged,
            history_events=workflow.info().get_current_history_length(),
        )
