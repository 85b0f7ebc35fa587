"""The `Store` port over a SQL database: each method is one transaction, whose work stands in the modules beside.

Nothing is decided here. What a refusal leaves behind is decided by where it is raised: inside the transaction, so
nothing of it stands.
"""

from collections.abc import AsyncIterator, Callable

from sqlalchemy import Connection

from perdure.core import faults, limits
from perdure.core.access import ApiKey
from perdure.core.content import Entry, ModelReply
from perdure.core.contexts import ContextRow
from perdure.core.effects import EffectRequest, Late
from perdure.core.log import Batch
from perdure.core.ports import (
    Admission,
    EffectRow,
    Ledgered,
    ModelCallRow,
    RecordedReply,
    StoredEvent,
    TaskPage,
    TaskQuery,
    TaskRow,
)
from perdure.core.state import TERMINAL
from perdure.store import blobs, effect_ledger, key_rows, model_ledger, reading
from perdure.store.backend import Backend, T
from perdure.store.bodies import identifier
from perdure.store.channel import Channel, NoChannel, written, written_in
from perdure.store.drafts import Drafts
from perdure.store.log_rows import check_batch, write_batch
from perdure.store.message_rows import read_admission
from perdure.store.push_rows import PushRows
from perdure.store.task_lists import ended_tasks, find_tasks
from perdure.store.task_rows import claim_context, sync_point, task_write
from perdure.store.transcripts import Prefix, TranscriptCache, read_prefix
from perdure.store.watcher import Watcher


class SqlStore:
    """A store in SQLite or PostgreSQL; get one from `open_store`.

    Implements `perdure.core.ports.Store`, with its errors; besides, every method may raise `InvalidInput` for what
    no database could hold. Belongs to the event loop that opened it.
    """

    def __init__(self, backend: Backend, channel: Channel | None = None) -> None:
        self._backend = backend
        self._channel = channel or NoChannel()
        self._transcripts = TranscriptCache()
        self.pushes = PushRows(backend, self._write)
        """Push notifications: configurations, cursors, leases."""
        self._watcher = Watcher(
            lambda: backend.read(reading.read_revision),
            lambda task_ids: backend.read(lambda connection: reading.read_reached(connection, task_ids)),
        )
        self._drafts = Drafts(self._channel, self._listen)

    # --- beside the log -----------------------------------------------------------------------------------------

    @property
    def drafts(self) -> Drafts:
        """The texts of replies that are being made."""
        return self._drafts

    def _listen(self) -> None:
        self._channel.listen(self._hear)

    def _hear(self, data: bytes) -> None:
        task_ids = written_in(data)
        if task_ids is None:
            self._drafts.hear(data)
        for task_id in task_ids or ():
            self._watcher.tell(task_id)

    # --- writes -------------------------------------------------------------------------------------------------

    async def _write(self, work: Callable[[Connection], T], batch: Batch | None = None, *, synced: bool = True) -> T:
        """Run `work`; where the batch that it writes has rows, tell those who follow its task."""
        if batch is None or not batch.rows:
            result = await self._backend.write(work, synced=synced)
        else:
            # Others are told where the commit is: this process may be busy.
            task_id = batch.task_id
            result = await self._backend.write(work, synced=synced, committed=lambda: self._tell_others(task_id))
            self._watcher.tell(task_id)
        faults.reach("store.committed")
        return result

    def _tell_others(self, task_id: str) -> None:
        for peer in self._channel.peers():
            self._channel.send(peer, written([task_id]))

    async def _begin(
        self, work: Callable[[Connection], T], batch: Batch, begun: Callable[[T], bool], *, synced: bool
    ) -> T:
        """Run a beginning, whose rows need not outlast a power cut before its end is recorded, synced.

        A sync is a third of a turn's cost in the store. What needs no end (something is recorded already) has no
        later write to wait for, and is synced by one of its own.
        """
        result = await self._write(work, batch, synced=synced)
        if not synced and not begun(result):
            await self._write(sync_point)
        return result

    async def write(self, batch: Batch, at_ms: int) -> None:
        """Write a batch: log rows, entries, messages, fence, snapshot; moves the task's `updated_at` and revision.

        A batch that changes nothing moves nothing. Synced to disk when this returns.
        """
        check_batch(batch)

        def work(connection: Connection) -> None:
            with task_write(connection, batch.task_id, at_ms, batch.header) as task:
                write_batch(connection, task, batch, at_ms)

        await self._write(work, batch)

    async def begin_model(
        self,
        batch: Batch,
        run: int,
        turn: int,
        attempt: int,
        worker: str,
        at_ms: int,
        upto: int = 0,
        chain: str = "",
        model: str = "",
    ) -> RecordedReply | tuple[Entry, ...]:
        """Write the batch and the call's start row, and return the transcript to answer: entries 1 to `upto`.

        Where a reply is recorded already it is returned instead (P2). Raises `Fenced` when a stop stands for `run`, a
        later attempt of the turn began, or the task has ended; what `read_transcript` raises, too. Then nothing of
        the batch is written.
        """
        check_batch(batch)
        known = self._transcripts.get(batch.task_id)

        def work(connection: Connection) -> RecordedReply | Prefix:
            recorded = model_ledger.begin_model(connection, batch, run, turn, attempt, worker, at_ms, model)
            return recorded or read_prefix(connection, batch.task_id, upto, chain, known)

        begun = await self._begin(work, batch, lambda begun: isinstance(begun, Prefix), synced=attempt > 1)
        return begun if isinstance(begun, RecordedReply) else self._remember(batch.task_id, begun)

    async def record_reply(self, task_id: str, turn: int, attempt: int, reply: ModelReply, at_ms: int) -> RecordedReply:
        """Record a reply unless one is recorded; return the one that stands (P2)."""
        identifier("task_id", task_id)
        return await self._write(
            lambda connection: model_ledger.record_reply(connection, task_id, turn, attempt, reply, at_ms)
        )

    async def begin_effect(self, batch: Batch, request: EffectRequest, at_ms: int) -> Ledgered:
        """Write the batch, judge the request and write what was decided, in one transaction.

        Raises `Fenced` or `KeyReused` when nothing may begin; then nothing of the batch is written.
        """
        check_batch(batch)
        return await self._begin(
            lambda connection: effect_ledger.begin_effect(connection, batch, request, at_ms),
            batch,
            lambda ledgered: ledgered.verdict == "begin",
            # Whether anything else was begun is what a resolution asks later (P3, P4); a read has nothing to resolve.
            synced=request.effect != "read" or request.attempt > 1,
        )

    async def finish_effect(self, key: str, attempt: int, entry: Entry, at_ms: int) -> Ledgered:
        """Record a call's result unless an outcome is recorded; return what stands. On a closed key it is late."""
        identifier("key", key)
        return await self._write(lambda connection: effect_ledger.finish_effect(connection, key, attempt, entry, at_ms))

    async def ask_effect(self, key: str, attempt: int, asked: str, at_ms: int) -> Ledgered:
        """Record that an attempt ended by asking; what stands already wins."""
        identifier("key", key)
        return await self._write(lambda connection: effect_ledger.ask_effect(connection, key, attempt, asked, at_ms))

    async def close_effect(self, key: str, at_ms: int) -> Ledgered:
        """Close a key whose check said that it did not happen and never will; a recorded `done` wins."""
        identifier("key", key)
        return await self._write(lambda connection: effect_ledger.close_effect(connection, key, at_ms))

    async def claim_context(self, context_id: str, principal: str, at_ms: int) -> None:
        """Keep a context for a principal; raises `InvalidInput` where it is another's. One without tasks is unseen."""
        identifier("context_id", context_id)
        identifier("principal", principal)
        await self._write(lambda connection: claim_context(connection, context_id, principal, at_ms))

    async def add_key(self, key: ApiKey) -> None:
        """Keep a new key; raises `InvalidInput` where its id is taken."""
        await self._write(lambda connection: key_rows.add_key(connection, key))

    async def revoke_key(self, key_id: str, at_ms: int) -> ApiKey | None:
        """Revoke the key, for good, and return it; the first time stands. None where there is none."""
        identifier("key_id", key_id)
        return await self._write(lambda connection: key_rows.revoke_key(connection, key_id, at_ms))

    async def put_blob(self, data: bytes, media_type: str) -> str:
        """Store bytes and return their SHA-256 digest."""
        return await self._write(lambda connection: blobs.put_blob(connection, data, media_type))

    # --- reads --------------------------------------------------------------------------------------------------

    async def late_results(self, task_id: str, keys: tuple[str, ...]) -> tuple[Late, ...]:
        """Return what was recorded under those of these keys whose calls were closed without a result."""
        identifier("task_id", task_id)
        return await self._backend.read(lambda connection: effect_ledger.late_results(connection, task_id, keys))

    async def read_transcript(self, task_id: str, upto: int, chain: str) -> tuple[Entry, ...]:
        """Return entries 1 to `upto`; raises `StoreBehind` when fewer stand, `StoreAhead` when the chain differs."""
        identifier("task_id", task_id)
        known = self._transcripts.get(task_id)
        prefix = await self._backend.read(lambda connection: read_prefix(connection, task_id, upto, chain, known))
        return self._remember(task_id, prefix)

    def _remember(self, task_id: str, prefix: Prefix) -> tuple[Entry, ...]:
        if prefix.entries:
            self._transcripts.put(task_id, prefix)
        return prefix.entries

    async def read_entry(self, task_id: str, digest: str) -> Entry:
        """Return the entry of that digest, in the transcript or not; raises `StoreBehind` when there is none."""
        identifier("task_id", task_id)
        identifier("digest", digest)
        return await self._backend.read(lambda connection: reading.read_entry(connection, task_id, digest))

    async def admission(self, task_id: str, message_id: str) -> Admission | None:
        """Return how the message of that id was admitted, or None; knows all ids, whatever workflows forget (P1)."""
        identifier("task_id", task_id)
        identifier("message_id", message_id)
        return await self._backend.read(lambda connection: read_admission(connection, task_id, message_id))

    async def events_after(self, task_id: str, number: int, limit: int) -> tuple[StoredEvent, ...]:
        """Return the contiguous events number+1, number+2, …; stops at the first gap (P6).

        Each brings the entries that came to stand with it; an admission brings its message, once that is stored.
        """
        identifier("task_id", task_id)
        return await self._backend.read(lambda connection: reading.events_after(connection, task_id, number, limit))

    async def tail(self, task_id: str, after: int) -> AsyncIterator[StoredEvent]:
        """Yield events from `after` + 1 on as they come, until the one with a terminal state has been yielded.

        Waits for a task that is not there yet; ends at once when `after` is the last event of an ended one. Another
        process's event comes within a tenth of a second of its commit, and mostly at once.
        """
        self._listen()
        with self._watcher.following(task_id) as log:
            while True:
                log.told = False
                page = await self.events_after(task_id, after, limits.EVENTS_PER_PAGE_MAX)
                for stored in page:
                    yield stored
                    after = stored.event.number
                    if stored.event.kind == "task.status" and stored.event.data.get("state") in TERMINAL:
                        return
                # A page that is not full reached to the end of the log, as it was then.
                if len(page) < limits.EVENTS_PER_PAGE_MAX and not await log.past(after):
                    return

    async def task(self, task_id: str) -> TaskRow | None:
        """Return the task, or None. Its `last_number` is that of the contiguous log."""
        identifier("task_id", task_id)
        return await self._backend.read(lambda connection: reading.read_task(connection, task_id))

    async def tasks(self, limit: int, before_revision: int | None = None) -> tuple[TaskRow, ...]:
        """Return tasks, the latest changed first, without snapshots."""
        return await self._backend.read(lambda connection: reading.read_tasks(connection, limit, before_revision))

    async def find_tasks(self, query: TaskQuery) -> TaskPage:
        """Return a page of the tasks that a principal sees."""
        return await self._backend.read(lambda connection: find_tasks(connection, query))

    async def ended_tasks(self, context_id: str, principal: str, agent_id: str, limit: int) -> tuple[str, ...]:
        """Return the ids of the latest tasks of a context that have ended, the one that ended last at the end."""
        return await self._backend.read(
            lambda connection: ended_tasks(connection, context_id, principal, agent_id, limit)
        )

    async def contexts(self, limit: int) -> tuple[ContextRow, ...]:
        """Return contexts, the one with the latest changed task first."""
        return await self._backend.read(lambda connection: reading.read_contexts(connection, limit))

    async def effects(self, task_id: str) -> tuple[EffectRow, ...]:
        """Return the task's ledger in the order of turn, index and key."""
        identifier("task_id", task_id)
        return await self._backend.read(lambda connection: reading.read_effects(connection, task_id))

    async def model_calls(self, task_id: str) -> tuple[ModelCallRow, ...]:
        """Return the start rows of the task's model calls, in the order of turn and attempt."""
        identifier("task_id", task_id)
        return await self._backend.read(lambda connection: model_ledger.read_model_calls(connection, task_id))

    async def key(self, key_id: str) -> ApiKey | None:
        """Return the key, revoked or not, or None."""
        identifier("key_id", key_id)
        return await self._backend.read(lambda connection: key_rows.read_key(connection, key_id))

    async def keys(self) -> tuple[ApiKey, ...]:
        """Return all keys, the oldest first."""
        return await self._backend.read(key_rows.read_keys)

    async def get_blob(self, digest: str) -> bytes:
        """Return a blob; raises `KeyError` when there is none."""
        identifier("digest", digest)
        return await self._backend.read(lambda connection: blobs.get_blob(connection, digest))

    async def close(self) -> None:
        """Release connections, after running transactions ended. The store may not be used afterwards."""
        await self._watcher.close()
        self._drafts.close()
        await self._channel.close()
        await self._backend.close()
