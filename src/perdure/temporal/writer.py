"""The writer: brings to the store what no model or tool call takes along.

One write at a time, each carrying all that waits: rows, messages, a fence, the state. Its activity is named by what
it is mainly for: `intake` (messages), `persist` (state, fence) or `emit_event` (rows). Only normal activities write:
a local one would write before its workflow task commits, and a kill in between would leave rows of a past that did
not happen.

A store that fails is retried without end, with a backoff of up to a minute; the task is shown as degraded meanwhile.
Who asks something of the task cuts that short, to a few seconds after the last try: the store may be well again, and
they wait for it; but each try stands in the history.

A store that *refuses* is another matter: it holds other rows than this task's history, or lacks some that it had
confirmed (one of the two was restored from another moment). Writing again changes nothing, so nothing is written again
by itself: the task is parked, which calls nothing and costs nothing (P8), and says why to whoever asks. The next thing
that a person does to the task tries once more; by then the right files may be back, and it goes on.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from perdure.core import events
from perdure.core.content import Message
from perdure.core.digests import body_of
from perdure.core.log import Batch, TaskHeader
from perdure.core.ports import Admission
from perdure.core.retry import after_loss
from perdure.core.state import TaskState
from perdure.temporal.contracts import Carried, WriteInput, WriteOutput
from perdure.temporal.failures import failure_of
from perdure.temporal.flights import ONE_ATTEMPT
from perdure.temporal.outbox import Outbox
from perdure.temporal.waiting import within


def store_queue(task_queue: str) -> str:
    """Return the queue of an agent's store writes."""
    return f"{task_queue}:store"


class Writer:
    """What the store is owed, and the loop that pays it.

    `hold` says that commands are about to be launched, which will take the rows along. `refused` is set when the
    store refuses the task's very first write for good.
    """

    def __init__(
        self,
        header: TaskHeader,
        state: TaskState,
        carried: Carried | None,
        apply: Callable[[events.Event], None],
        hold: Callable[[], bool],
    ) -> None:
        self.state = state
        self._bounds = state.agent.bounds
        self.outbox = Outbox(self._bounds.events_per_write_max)
        if carried is not None:
            self.outbox.go_on(carried.rows, carried.confirmed, state.last_number)
        self.refused: str | None = None
        self.fenced = 0
        self._header = header
        self._apply = apply
        self._hold = hold
        self._kept: dict[str, Message] = {}
        self._fence = 0
        self._persist_owed = False
        self._persisted = 0
        self._writing = False
        self._failures = 0
        self._asked = False
        self._soonest_s = 0.0
        self.next_try_s = 0.0
        """When it tries again, by the workflow's time, after a write that failed; 0 while none waits."""
        self.diverged = ""
        """Why the store refused a write, until it takes one."""
        self.parked = False

    # --- what is owed -------------------------------------------------------------------------------------------

    def keep(self, message: Message) -> None:
        """Hold a message's body until it is stored."""
        self._kept[message.message_id] = message

    def fence(self, run: int) -> None:
        """Owe the fence of this run."""
        self._fence = max(self._fence, run)

    def persist(self) -> None:
        """Owe the state as it is when the write begins."""
        self._persist_owed = True

    @property
    def fence_owed(self) -> int | None:
        """The fence that is not in the store yet."""
        return self._fence if self._fence > self.fenced else None

    def stored(self, message_ids: Iterable[str]) -> bool:
        """Whether these messages are durable in the store."""
        return not any(message_id in self._kept for message_id in message_ids)

    def persisted(self, number: int) -> bool:
        """Whether the state at that number, and every row up to it, are in the store (P5)."""
        return self._persisted >= number and self.outbox.confirmed >= number

    @property
    def owes_only_rows(self) -> bool:
        """Whether nothing but rows is owed, and no write is under way."""
        return not (self._kept or self.fence_owed or self._persist_owed or self._writing)

    @property
    def writing(self) -> bool:
        """Whether a write of its own is under way."""
        return self._writing

    @property
    def idle(self) -> bool:
        """Whether nothing at all is owed."""
        return self.owes_only_rows and not self.outbox.unconfirmed()

    @property
    def degraded(self) -> bool:
        """Whether the latest write failed."""
        return self._failures > 0 or bool(self.diverged)

    def try_again(self) -> None:
        """Try once more, and now, what the store refused or did not take: somebody asks for something."""
        self.parked = False
        self._asked = True
        if self.next_try_s:
            self.next_try_s = min(self.next_try_s, max(self._soonest_s, workflow.time()))

    # --- paying it ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write whatever is owed, for ever."""
        while True:
            await workflow.wait_condition(lambda: self._owes() and not self.parked and not self._hold())
            await self._write()

    def _owes(self) -> bool:
        return bool(self.outbox.waiting or self._kept or self.fence_owed or self._persist_owed)

    async def _write(self) -> None:
        rows = self.outbox.take()
        messages = self._some_messages()
        fence, number, persist = self.fence_owed, self.state.last_number, self._persist_owed
        batch = Batch(
            task_id=self._header.task_id,
            header=self._header,
            rows=rows,
            messages=messages,
            confirmed=self.outbox.confirmed,
            fence=fence,
            snapshot=body_of(self.state.snapshot()) if persist else None,
        )
        name = "persist" if persist or fence else "intake" if messages else "emit_event"
        self._writing, self._persist_owed, self._asked = True, False, False
        try:
            await self._execute(name, WriteInput(batch=batch))
        except ActivityError as error:
            self.outbox.give_back(rows)
            self._persist_owed = self._persist_owed or persist
            await self._back_off(error)
            return
        finally:
            self._writing = False
        self._failures, self.diverged = 0, ""
        self.outbox.confirm(rows)
        self.fenced = fence or self.fenced
        if persist:
            self._persisted = number
        if messages:
            for message in messages:
                del self._kept[message.message_id]
            ids = tuple(message.message_id for message in messages)
            self._apply(events.Stored(at_ms=int(workflow.time() * 1000), message_ids=ids))

    def _some_messages(self) -> tuple[Message, ...]:
        """Return the first messages that are owed, as many as one write may hold and one at least."""
        some: list[Message] = []
        size = 0
        for message in self._kept.values():
            size += len(message.model_dump_json().encode())
            if some and size > self._bounds.messages_per_write_bytes_max:
                break
            some.append(message)
        return tuple(some)

    async def _back_off(self, error: ActivityError) -> None:
        failure = failure_of(error)
        if failure.kind == "diverged":
            self._park(failure.message)
            return
        again = after_loss("store", self._failures, workflow.random().random(), self._bounds)
        self._failures += 1
        await self._pause(again.delay_ms / 1000)

    async def _pause(self, delay_s: float) -> None:
        """Wait, and if somebody asks meanwhile, or did while the write failed, no longer than a moment."""
        now_s = workflow.time()
        self._soonest_s = now_s + min(delay_s, self._bounds.store_asked_again_s)
        self.next_try_s = self._soonest_s if self._asked else now_s + delay_s
        try:
            if not self._asked:
                await within(lambda: self._asked, delay_s)
            rest_s = self._soonest_s - workflow.time()
            if rest_s > 0:
                await asyncio.sleep(rest_s)
        finally:
            self.next_try_s = 0.0

    def _park(self, message: str) -> None:
        if self.outbox.confirmed == 0:
            self.refused = message
            return
        self.diverged, self.parked = message, True
        self._apply(events.StoreDiverged(at_ms=int(workflow.time() * 1000), message=message))

    async def look_up(self, message_id: str) -> Admission | None:
        """Ask the store how an old message id was admitted; fails as the store does."""
        batch = Batch(task_id=self._header.task_id)
        output = await self._execute("intake", WriteInput(batch=batch, look_up=message_id))
        return output.known

    async def _execute(self, name: str, given: WriteInput) -> WriteOutput:
        output: WriteOutput = await workflow.execute_activity(
            name,
            given,
            task_queue=store_queue(workflow.info().task_queue),
            result_type=WriteOutput,
            start_to_close_timeout=timedelta(seconds=self._bounds.store_write_timeout_s),
            heartbeat_timeout=timedelta(seconds=self._bounds.store_write_heartbeat_timeout_s),
            retry_policy=ONE_ATTEMPT,
        )
        return output
