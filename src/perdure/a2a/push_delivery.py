"""Delivering: every event after a configuration's creation, at least once, in order, across restarts of everything.

Nothing is held here that is not in the store: which events there are (the log), how far each receiver is (its cursor),
whose turn it is to deliver (`push_lease.py`). A round looks at those and starts what is due. For each notification:

1. ask the store whether the configuration still stands and the turn is still ours;
2. POST;
3. write the cursor down, or when to try again.

Killed between 2 and 3, the next deliverer sends the same again: at least once, under the same delivery id. A
configuration that is deleted meanwhile gets nothing more than what was on its way. A receiver that fails holds up its
own configuration only; one that is slow for ever is cut off at TIMEOUT_S, and gives its place to others after each
SLICE_S. However many slow ones a principal's tasks have, they take its share of the places and no more. One that fails
for about a day is given up, which the log of this process says.

Refused: deliveries as activities of the task's workflow. They would have to be scheduled by it, and a task that waits
for a person, or has ended, would be kept alive by a receiver that does not answer.
"""

import asyncio
import contextlib
import functools
import json
import logging
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from a2a.types.a2a_pb2 import StreamResponse, TaskStatusUpdateEvent
from google.protobuf.json_format import MessageToDict

from perdure.a2a.push_lease import Turn
from perdure.a2a.push_posting import Outcome, Target
from perdure.a2a.tasks import Found, TaskReader
from perdure.a2a.translate import TaskView, Update
from perdure.app.clock import now_ms
from perdure.core import faults, push_limits
from perdure.core.agent import RetryPolicy
from perdure.core.bounds import bounds_now
from perdure.core.errors import Diverged, StoreUnavailable
from perdure.core.failure import Failure
from perdure.core.ports import Store
from perdure.core.pushes import DuePushes, Pulse, PushConfig
from perdure.core.retry import Again, after_failure

_log = logging.getLogger(__name__)

Key = tuple[str, str]
Post = Callable[[Target, bytes, str], Awaitable[Outcome]]

RETRIES: Final = RetryPolicy(
    attempts_max=push_limits.ATTEMPTS_MAX,
    first_ms=push_limits.BACKOFF_FIRST_MS,
    delay_max_ms=push_limits.BACKOFF_MAX_MS,
)


@dataclass(frozen=True)
class Means:
    """What a deliverer works with: `target` opens a configuration, `post` sends one notification once."""

    store: Store
    reader: TaskReader
    key_id: str
    turn: Turn
    target: Callable[[PushConfig], Target]
    post: Post
    retries: RetryPolicy = RETRIES


class Deliverer:
    """Delivers what is due while it is this process's turn. Run it once, beside the app."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._pushes = means.store.pushes
        self._views = _Views(means.store, means.reader)
        self._under_way: dict[Key, asyncio.Task[None]] = {}
        self._shares: Counter[str] = Counter()
        self._kick = asyncio.Event()
        self._failing: set[Key] = set()
        self._revision = -1
        self._wake_at_ms: int | None = None
        self._calm_until_s = 0.0

    def kick(self) -> None:
        """Look now: this process has created a configuration."""
        self._kick.set()

    async def forget(self, task_id: str, config_id: str) -> None:
        """Cut off what is on its way for a configuration that was deleted; when this returns nothing is."""
        running = self._under_way.get((task_id, config_id))
        if running is not None:
            running.cancel()
            await asyncio.wait([running])

    async def run(self) -> None:
        """Deliver until cancelled."""
        told = False
        try:
            while True:
                self._kick.clear()
                try:
                    pause_s, told = await self._round(), False
                except StoreUnavailable as error:
                    pause_s, self._revision = push_limits.IDLE_S, -1
                    if not told:
                        _log.warning("push notifications wait for the store: %s", error)
                    told = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._kick.wait()
        finally:
            await self._cut_off()
            with contextlib.suppress(StoreUnavailable):
                await self._means.turn.give_up()

    # --- what is due ----------------------------------------------------------------------------------------------

    async def _round(self) -> float:
        """Start what is due; return how long to wait before the next round."""
        pulse = await self._pushes.pulse(self._means.key_id)
        due = await self._due(pulse)
        if due is None and not self._under_way:  # quiet: nothing is written, and another may have the turn
            await self._means.turn.rest(pulse.lease)
            return push_limits.POLL_S if pulse.active else push_limits.IDLE_S
        if not await self._means.turn.hold(pulse.lease):
            await self._cut_off()
            self._revision = -1
            return push_limits.BEAT_S / 4
        if due is not None:
            self._begin(due)
        return push_limits.POLL_S

    async def _due(self, pulse: Pulse) -> DuePushes | None:
        """Return what is to be delivered and was not looked at yet."""
        is_time = self._wake_at_ms is not None and now_ms() >= self._wake_at_ms
        if not pulse.active or time.monotonic() < self._calm_until_s:
            return None
        if pulse.revision == self._revision and not is_time:
            return None
        due = await self._pushes.due(self._means.key_id, now_ms(), 2 * push_limits.AT_ONCE_MAX)
        self._revision, self._wake_at_ms = pulse.revision, due.wake_at_ms
        return due if due.configs else None

    def _begin(self, due: DuePushes) -> None:
        for config in due.configs:
            key, principal = _key(config), due.principals.get(config.task_id, "")
            share = push_limits.AT_ONCE_PER_PRINCIPAL_MAX if principal else push_limits.AT_ONCE_OF_NOBODY_MAX
            full = len(self._under_way) >= push_limits.AT_ONCE_MAX or self._shares[principal] >= share
            half = config.attempts > 0 and len(self._failing) >= push_limits.AT_ONCE_MAX // 2
            if key in self._under_way or full or half:
                continue
            if config.attempts > 0:
                self._failing.add(key)
            self._shares[principal] += 1
            running = asyncio.create_task(self._deliver(config), name=f"perdure: push of {config.task_id}")
            self._under_way[key] = running
            running.add_done_callback(functools.partial(self._ended, key, principal))

    def _ended(self, key: Key, principal: str, ended: "asyncio.Task[None]") -> None:
        self._under_way.pop(key, None)
        self._failing.discard(key)
        self._shares[principal] -= 1
        if not self._shares[principal]:
            del self._shares[principal]
        self._revision = -1  # there may be more for it, or for one that had no place
        self._kick.set()
        error = None if ended.cancelled() else ended.exception()
        if error is not None:  # what was taken may not be written down: sending on would only repeat it
            self._calm_until_s = time.monotonic() + push_limits.IDLE_S
        if isinstance(error, StoreUnavailable):
            _log.warning("a push of task %s waits for the store: %s", key[0], error)
        elif error is not None:
            _log.error("a push of task %s was cut off by a defect", key[0], exc_info=error)

    async def _cut_off(self) -> None:
        running = tuple(self._under_way.values())
        for each in running:
            each.cancel()
        if running:
            await asyncio.wait(running)

    # --- one configuration ----------------------------------------------------------------------------------------

    async def _deliver(self, config: PushConfig) -> None:
        """Deliver what there is for one configuration, until one fails or its time is over."""
        over_s = time.monotonic() + push_limits.SLICE_S
        while True:
            now = await self._one(config)
            if now is None or not await self._pushes.settle(config, now, self._means.turn.holder):
                return
            if now.state != "active" or now.attempts or time.monotonic() >= over_s:
                return
            config = now

    async def _one(self, config: PushConfig) -> PushConfig | None:
        """Send the next event; return what the configuration becomes, None where there is nothing to send."""
        try:
            update, number, terminal = await self._views.after(config)
            target = self._means.target(config)
        except _NothingMore:
            return None
        except Diverged as error:
            return self._failed(config, "", Outcome(str(error)))
        if not self._means.turn.is_ours or not await self._pushes.standing(config, self._means.turn.holder):
            return None
        outcome = await self._means.post(target, _payload(update), f"{config.task_id}/{config.config_id}/{number}")
        if outcome.problem:
            return self._failed(config, target.url, outcome)
        faults.reach("push.taken", config.task_id, config.config_id)
        return config.model_copy(
            update={
                "cursor": number,
                "attempts": 0,
                "next_at_ms": now_ms(),
                "state": "done" if terminal else "active",
            }
        )

    def _failed(self, config: PushConfig, url: str, outcome: Outcome) -> PushConfig:
        failure = Failure(kind="internal", message=outcome.problem, retry_after_ms=outcome.retry_after_ms)
        jitter = random.random()  # noqa: S311 - spreads retries, guards nothing
        verdict = after_failure(failure, config.attempts, 0, self._means.retries, jitter, bounds_now())
        again = isinstance(verdict, Again) and not outcome.gone
        if config.attempts == 0 or not again:
            _log.warning(
                "push %s of task %s to %s: event %d %s: %s",
                config.config_id,
                config.task_id,
                _place(url),
                config.cursor + 1,
                "is tried again" if again else f"failed {config.attempts + 1} times, given up",
                outcome.problem,
            )
        delay_ms = verdict.delay_ms if isinstance(verdict, Again) else 0
        return config.model_copy(
            update={
                "attempts": config.attempts + 1,
                "next_at_ms": now_ms() + delay_ms,
                "state": "active" if again else "given_up",
            }
        )


class _NothingMore(Exception):
    """The log reaches to the cursor and no further."""


class _Views:
    """Tasks as of the cursors of those who follow them."""

    def __init__(self, store: Store, reader: TaskReader) -> None:
        self._store = store
        self._reader = reader
        self._kept: OrderedDict[Key, TaskView] = OrderedDict()

    async def after(self, config: PushConfig) -> tuple[Update, int, bool]:
        """Return the update after the configuration's cursor, its number, and whether it is the task's last."""
        view = self._kept.pop(_key(config), None)
        if view is None or view.number != config.cursor:
            view = await self._as_of(config)
        following = await self._store.events_after(config.task_id, view.number, 1)
        if not following:
            self._keep(config, view)
            raise _NothingMore
        update = view.take(following[0])
        self._keep(config, view)
        return update, view.number, view.terminal

    async def _as_of(self, config: PushConfig) -> TaskView:
        row = await self._store.task(config.task_id)
        if row is None:
            raise _NothingMore
        return await self._reader.view(Found(row.header, created_at_ms=row.created_at_ms), config.cursor)

    def _keep(self, config: PushConfig, view: TaskView) -> None:
        self._kept[_key(config)] = view
        if len(self._kept) > push_limits.VIEWS_KEPT_MAX:
            self._kept.popitem(last=False)


def _key(config: PushConfig) -> Key:
    return config.task_id, config.config_id


def _payload(update: Update) -> bytes:
    if isinstance(update, TaskStatusUpdateEvent):
        response = StreamResponse(status_update=update)
    else:
        response = StreamResponse(artifact_update=update)
    return json.dumps(MessageToDict(response), ensure_ascii=False, separators=(",", ":")).encode()


def _place(url: str) -> str:
    """Return what of an address may be told: no path, no query, which often carry a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else "its receiver"
