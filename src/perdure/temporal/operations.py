"""What people ask of a task, carried out in the order in which it came: messages, moves, withdrawals, answers, stops.

One update carries a batch of any kinds, and each operation has a receipt of its own, so that one that is refused says
so and takes nothing else with it. A receipt without a problem holds, whatever is killed afterwards: a message has its
row in the store (R3), a stop its fence (P9); the others stand in Temporal's history by the update itself.

A task whose tool runs for hours cannot continue as new meanwhile, and its history must stay short enough to be replayed
elsewhere. So it takes in a bounded number of single operations in one step (some hundred; a batch counts as one), and
refuses more before anything of it is recorded. That is long before Temporal's own limits, and never keeps out what
leads out of there.
"""

from collections.abc import Callable, Sequence

from temporalio import workflow
from temporalio.exceptions import ActivityError

from perdure.core import events, limits
from perdure.core.bounds import Bounds
from perdure.core.digests import safe_text
from perdure.core.errors import Diverged, InvalidInput, PerdureError, TaskClosed, Unavailable
from perdure.core.machine import step
from perdure.core.ports import Admission
from perdure.core.state import TaskState
from perdure.temporal.admissible import message_digest, question_for, refuse_unstorable, words_of
from perdure.temporal.contracts import AnswerRequest, InboxItem, InboxReply, Operation, Receipt
from perdure.temporal.flights import now_ms
from perdure.temporal.writer import Writer


class Operations:
    """Carries out what is asked of one task. `take` admits a message and returns its number."""

    def __init__(
        self,
        take: Callable[[InboxItem], int],
        apply: Callable[[events.Event], None],
        writer: Writer,
    ) -> None:
        self._take = take
        self._apply = apply
        self._writer = writer

    # --- messages -----------------------------------------------------------------------------------------------

    async def receive(self, item: InboxItem) -> Receipt:
        """Take a message in, or say why not. It is durable once the writer has stored it."""
        message_id = item.message.message_id
        try:
            refuse_unstorable(item.message, self._bounds)
            if self._forgets(message_id):
                known = await self._look_up(message_id)
                if known is not None and known.digest != message_digest(item.message):
                    return Receipt(message_id=message_id, code="message_conflict", problem="used with other content")
                if known is not None:
                    return Receipt(message_id=message_id, number=known.number)
            return Receipt(message_id=message_id, number=self._take(item))
        except (InvalidInput, Unavailable) as error:
            return refused(message_id, error)
        except ValueError as error:
            return Receipt(message_id=message_id, code=InvalidInput.code, problem=unrecordable(error))

    async def _look_up(self, message_id: str) -> Admission | None:
        try:
            return await self._writer.look_up(message_id)
        except ActivityError as error:
            raise Unavailable("the store does not answer; send again") from error

    def _forgets(self, message_id: str) -> bool:
        """Whether this id may have been seen so long ago that only the store remembers (P1)."""
        seen = self._writer.state.seen
        full = len(seen) >= self._bounds.message_ids_remembered
        return full and all(seen_id != message_id for seen_id, _, _ in seen)

    # --- batches ------------------------------------------------------------------------------------------------

    async def carry_out(self, operations: Sequence[Operation]) -> InboxReply:
        """Carry out all of them, and return when what is acknowledged holds; one receipt each, in order."""
        receipts = [await self._carry_out(each) for each in operations]
        fence = self._writer.fence_owed if any(each.stop or each.cancel for each in operations) else None
        waiting = {pending.message_id for pending in self._writer.state.inbox}
        changed = {o.withdraw for o in operations if o.withdraw} | {o.steer for o in operations if o.steer in waiting}
        stored = [r.message_id for o, r in zip(operations, receipts, strict=True) if o.message and r.number is not None]

        def is_durable() -> bool:
            return self._writer.stored(stored) and (fence is None or self._writer.fenced >= fence)

        await self._until(is_durable)
        found = [self._as_it_stands(o, r, fence) for o, r in zip(operations, receipts, strict=True)]
        await self._shown([r.number for r in found if r.number is not None and r.message_id in changed])
        return InboxReply(receipts=tuple(found))

    async def _carry_out(self, asked: Operation) -> Receipt:
        if asked.message is not None:
            return await self.receive(asked.message)
        name, before = asked.steer or asked.withdraw or "", self._writer.state.last_number
        try:
            if asked.stop:
                refuse_stop(self._writer.state)
            self._apply(_event(asked))
        except PerdureError as error:
            return refused(name, error)
        except ValueError as error:
            return Receipt(message_id=name, code=InvalidInput.code, problem=unrecordable(error))
        recorded = self._writer.state.last_number > before
        done = recorded or (asked.stop and winds_down(self._writer.state))
        return Receipt(message_id=name, number=before + 1 if recorded else before, recorded=done)

    def _as_it_stands(self, asked: Operation, receipt: Receipt, fence: int | None) -> Receipt:
        """Return the receipt; where what it stands for is not in the store, one that says so."""
        if receipt.code is not None:
            return receipt
        if asked.message is not None and not self._writer.stored([receipt.message_id]):
            return self._not_stored(receipt, "the message was admitted, but its row")
        if (asked.stop or asked.cancel) and fence is not None and self._writer.fenced < fence:
            return self._not_stored(receipt, "the stop was recorded, but its fence")
        return receipt

    def _not_stored(self, receipt: Receipt, what: str) -> Receipt:
        code, problem = Unavailable.code, f"{what} is not in the store yet; ask again"
        if self._writer.parked:
            code, problem = Diverged.code, disagreement(what, self._writer.diverged)
        return Receipt(message_id=receipt.message_id, code=code, problem=problem)

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds, for `acknowledge_within_s` or until the store refuses.

        Without a timer, which would cost every operation two events of the history. A write that does not end is timed
        out by then, and its failure brings the workflow here; and where the next try comes later, there is nothing to
        wait for.
        """
        writer, until_s = self._writer, workflow.time() + self._bounds.acknowledge_within_s

        def over() -> bool:
            return writer.parked or workflow.time() >= until_s or writer.next_try_s > until_s

        await workflow.wait_condition(lambda: holds() or over())

    async def _shown(self, numbers: Sequence[int]) -> None:
        """Wait until these rows, of what changed the inbox, can be read by whoever asked.

        Not for a store that fails, and not for a row that rides with a model call: it is written when that begins, and
        confirmed only when it ends.
        """
        outbox, writer = self._writer.outbox, self._writer
        await self._until(
            lambda: outbox.written(numbers) or writer.degraded or (outbox.carried(numbers) and not writer.writing)
        )

    def refuse_overfull(self, operations: Sequence[Operation], updates: int) -> None:
        """Raise where the history has no room and none of these leads out of there (a stop, a cancel, an answer).

        A message that is known already is told so, full or not (P1). Of the updates that Temporal takes in one history
        the last are for stops and cancels alone: the task can only continue as new once its run has ended (P9).
        """
        if all(each.stop or each.cancel for each in operations):
            return
        state = self._writer.state
        if updates >= limits.UPDATES_TAKEN_MAX:
            raise Unavailable(
                f"task {state.task_id} was asked {updates} things within one step; stop it, or ask again later"
            )
        problem = overfull(state)
        if problem is None:
            return
        for each in operations:
            if each.stop or each.cancel or each.answer:
                return
            if each.message is not None and self._leads_out(each.message):
                return
        raise problem

    def _leads_out(self, item: InboxItem) -> bool:
        """Whether a message adds nothing to the history but its own update: it is known, or answers a question.

        One that is known and still owed to the store could be told nothing else than to ask again.
        """
        if item.message.message_id in self._known:
            return self._writer.stored([item.message.message_id])
        try:
            return question_for(self._writer.state, item) is not None
        except InvalidInput:
            return False  # refused for what it is, or for want of room: either way nothing of it is recorded

    @property
    def _bounds(self) -> Bounds:
        return self._writer.state.agent.bounds

    @property
    def _known(self) -> set[str]:
        state = self._writer.state
        return {seen_id for seen_id, _, _ in state.seen} | {pending.message_id for pending in state.inbox}

    def refuse_answer(self, operations: Sequence[Operation]) -> None:
        """Raise for an answer alone that the task does not take: a wrong one leaves no trace, ever."""
        if len(operations) != 1:
            return
        given, item, state = operations[0].answer, operations[0].message, self._writer.state
        name = "" if item is None else item.message.message_id
        if item is not None and name not in self._known and not self._forgets(name):
            question = question_for(state, item)
            given = None if question is None else AnswerRequest(help_id=question.help_id, text=words_of(item.message))
        if given is not None:
            try:
                step(state, events.Answered(at_ms=now_ms(), help_id=given.help_id, text=given.text, by=given.by))
            except ValueError as error:
                raise InvalidInput("text", unrecordable(error)) from error


def refused(message_id: str, error: PerdureError) -> Receipt:
    """Return the receipt that says why something was not done."""
    closed = error.state if isinstance(error, TaskClosed) else None
    return Receipt(message_id=message_id, code=error.code, problem=safe_text(str(error)), closed=closed)


def winds_down(state: TaskState) -> bool:
    """Whether a run is being stopped: who asks once more is told that it is, and not that nothing ran."""
    ending = None if state.run is None else state.run.ending
    return ending is not None and ending.end == "stopped" and not state.canceling


def refuse_stop(state: TaskState) -> None:
    """Raise where a task is being canceled: after a stop the next message would go on, and here none will."""
    if state.canceling:
        raise TaskClosed(state.task_id, state.status if state.terminal else "being canceled")


def unrecordable(error: ValueError) -> str:
    """Say that what was asked for holds something that no row can: an exception would fail the task's every step."""
    return f"text: cannot be recorded ({safe_text(str(error))})"


def _event(asked: Operation) -> events.Event:
    at_ms = now_ms()
    if asked.steer is not None:
        return events.Moved(at_ms=at_ms, message_id=asked.steer)
    if asked.withdraw is not None:
        return events.Withdrawn(at_ms=at_ms, message_id=asked.withdraw)
    if asked.answer is not None:
        given = asked.answer
        return events.Answered(at_ms=at_ms, help_id=given.help_id, text=given.text, by=given.by)
    if asked.stop:
        return events.StopRequested(at_ms=at_ms)
    if asked.cancel:
        return events.CancelRequested(at_ms=at_ms)
    raise InvalidInput("operation", "says nothing that this worker knows; use workers of the version that sent it")


def overfull(state: TaskState) -> Unavailable | None:
    """Return the refusal while the history has no room for more: Temporal ends a workflow whose history is too large.

    It is continued as new between turns, which may be hours away while a tool runs. What leads out of there (a stop, a
    cancel, an answer) is always taken.
    """
    info, bounds = workflow.info(), state.agent.bounds
    size, count = info.get_current_history_size(), info.get_current_history_length()
    if size > bounds.history_bytes_max or count > bounds.history_events_taken_max:
        return Unavailable(
            f"task {state.task_id} has taken in as much as fits before its present step ends ({count} events and "
            f"{size // limits.KIB} KiB of history); send it again later"
        )
    return None


def disagreement(what: str, diverged: str) -> str:
    """Say that something is not in the store because that refuses this task's rows for good."""
    return (
        f"{what} is not in the store, which disagrees with this task ({diverged}); nothing is called. Put store and "
        "Temporal back from one moment, then ask again"
    )
