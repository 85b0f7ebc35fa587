"""The supervisor: keeps workers running, knows at once and for certain when one has died, and acts on it (P10).

Temporal cannot see a process die; it waits for a timeout. Whoever started the process can see it: workers are children
(of the nursery, `nursery.py`), and a death counts when it was reaped. A worker that is slow, stopped or deaf is never
declared dead: its heartbeat timeout is for that.

On a death, in this order: the nursery kills what the worker had started; the attempts that it had in hand are failed
in its name and its sticky queues cleared (`temporal/deaths.py`), which is what recovery waits for; a replacement is
born; the rest is swept behind.

All of `processes` workers and one more poll, so that there is always one ready to take over: the warm standby. One
that waits without polling was refused: it must be woken first, and costs the same while it waits.

Attempts under suspicion (R12) run in two workers of their own, one at a time each. They are always there: the first
proven death of a task that was alone sends its next attempt to them, and recovery must not wait for their start.

When the supervisor itself dies, its children and what their tools had started die with it; the next start resumes.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from temporalio.client import Client

from perdure.app.births import Child, Nursery, ending_of
from perdure.app.roster import Roster, dead_of
from perdure.core import fleet_limits, limits
from perdure.core.errors import ConfigurationError, Unavailable
from perdure.temporal.deaths import Death, DeathReport
from perdure.temporal.descriptors import close_owned, own
from perdure.temporal.worker import WorkerPart

READY_WITHIN_S: Final = 60.0
RESTART_DELAY_S: Final = 0.5
AFTER_RECOVERY_S: Final = 0.15
"""Where attempts begin again, they go first: a replacement's start and the sweep would take their processor time."""

EARLIER_LOOKS: Final = 20
"""A roster somebody of which is still dying is looked at again for ten seconds; a sibling's stays as it is."""

STARTS_AT_ONCE: Final = 2
"""Starts are processor time, which those who work need."""


@dataclass(frozen=True)
class Fleet:
    """What is to be kept running: workers for `reference` (`module:agent`, found in `folder`) on its queue.

    `processes` work and one more stands by. Workers get `environment` on top of this process's. What they print goes
    to the file `log`, or to standard error. `rosters` is the folder where the names of workers are kept for the next
    start. `reports` False leaves deaths to the heartbeat timeouts, to compare.
    """

    reference: str
    queue: str
    folder: Path
    log: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: int = 1
    drain_s: float = limits.DRAIN_S
    rosters: Path | None = None
    reports: bool = True


@dataclass(frozen=True)
class Change:
    """What happened to a worker. `code` is how it ended, `failed` how many attempts were failed in its name.

    `asked` says that it had been asked to end. `at_ms` is when the supervisor knew it, `text` says it in words.
    """

    kind: Literal["ready", "died", "reported", "not_started", "not_reported"]
    part: WorkerPart
    pid: int
    text: str
    at_ms: int
    code: int | None = None
    failed: int = 0
    asked: bool = False


@dataclass(eq=False)
class _Place:
    """One place in the fleet, and the worker that is in it."""

    part: WorkerPart
    child: Child | None = None
    steady: asyncio.Event = field(default_factory=asyncio.Event)


class Supervisor:
    """A running fleet. Get one from `supervised`."""

    def __init__(self, fleet: Fleet, client: Client, on_change: Callable[[Change], None]) -> None:
        self._fleet = fleet
        self._client = client
        self._on_change = on_change
        calls = [_Place("calls") for _ in range(fleet.processes + 1)]
        self._places = [*calls, *(_Place("quarantine") for _ in range(fleet_limits.QUARANTINE_PROCESSES))]
        self._nursery: Nursery | None = None
        self._opening = asyncio.Lock()
        self._starting = asyncio.Semaphore(STARTS_AT_ONCE)
        self._keepers: list[asyncio.Task[None]] = []
        self._sweeps: set[asyncio.Task[None]] = set()
        self._ending = asyncio.Event()
        self._untold: list[Death] = []
        self._roster: Roster | None = None
        self._log_fd = -1
        self._leash_fd = -1
        self._leash_end_fd = -1

    # --- what users of it see -----------------------------------------------------------------------------------

    @property
    def workers(self) -> tuple[Child, ...]:
        """The workers that are ready, those on calls first; `pid`, `identity` and `part` are what they are known by."""
        children = [place.child for place in self._places]
        return tuple(child for child in children if child is not None and _is_ready(child))

    @property
    def nursery_pid(self) -> int | None:
        """The process number of the nursery."""
        return None if self._nursery is None else self._nursery.pid

    async def full(self) -> None:
        """Wait until every place has a worker that is ready."""
        for place in self._places:
            await place.steady.wait()

    async def watch(self) -> None:
        """Return never; raise what ended the supervision: `Unavailable` when workers do not start any more."""
        await asyncio.wait(self._keepers, return_when=asyncio.FIRST_EXCEPTION)
        for keeper in self._keepers:
            if keeper.done() and not keeper.cancelled():
                keeper.result()
        raise Unavailable("the workers were ended")

    async def roll(self) -> None:
        """Replace one worker after the other: each drains, and the next follows when its replacement is ready."""
        for place in self._places:
            child = place.child
            if child is not None and _is_ready(child):
                place.steady.clear()
                await self._ask(child)
                await place.steady.wait()

    # --- life ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the first worker and return when it is ready; the others follow. Raises as `supervised` does."""
        log = self._fleet.log
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._log_fd = os.dup(2) if log is None else await asyncio.to_thread(os.open, log, flags, 0o600)
        self._leash_end_fd, leash_fd = os.pipe()
        self._leash_fd = own(leash_fd)
        if self._fleet.rosters is not None:
            self._roster = await asyncio.to_thread(Roster.open, self._fleet.rosters, self._fleet.queue)
            self._sweep_behind(self._tell_of_earlier(self._fleet.rosters))
        first = self._places[0]
        await self._fill(first)
        for place in self._places:
            self._keepers.append(asyncio.create_task(self._keep(place), name=f"perdure: keep {place.part}"))

    async def end(self) -> None:
        """Let all workers drain and end; one that does not in time is killed. All are reaped when this returns."""
        self._ending.set()
        try:
            for place in self._places:
                if place.child is not None:
                    await self._ask(place.child)
            if self._keepers:
                await asyncio.wait(self._keepers, timeout=self._fleet.drain_s + fleet_limits.WORKER_GRACE_S)
        finally:
            for keeper in self._keepers:
                keeper.cancel()
            await asyncio.gather(*self._keepers, return_exceptions=True)
            if self._nursery is not None:
                await self._nursery.close()
            told = await self._tell_the_last()
            for sweep in self._sweeps:
                sweep.cancel()
            await asyncio.gather(*self._sweeps, return_exceptions=True)
            if self._leash_fd >= 0:
                close_owned(self._leash_fd)
                os.close(self._leash_end_fd)
                os.close(self._log_fd)
                self._leash_fd = -1
            if self._roster is not None:
                self._roster.close(told=told)
                self._roster = None

    async def _tell_the_last(self) -> bool:
        """Report the last (each may hold an attempt it never saw) and the untold; return whether Temporal heard."""
        left = [child for place in self._places if (child := place.child) is not None]
        deaths = [*self._untold, *(Death(child.identity, "shutdown", child.board.held()) for child in left)]
        if not deaths or not self._fleet.reports:
            return True
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(fleet_limits.DEATH_LAST_WORD_S):
                await DeathReport(self._client, self._fleet.queue, *deaths).go_through()
                return True
        return False

    async def _ask(self, child: Child) -> None:
        child.asked = True
        with contextlib.suppress(Unavailable):
            await self._nursery_now.signal(child, signal.SIGTERM)

    @property
    def _nursery_now(self) -> Nursery:
        if self._nursery is None:
            raise Unavailable("no worker was started yet")
        return self._nursery

    # --- one place ----------------------------------------------------------------------------------------------

    async def _keep(self, place: _Place) -> None:
        """Fill the place again whenever its worker has died; one that does not start ends none that work."""
        failures = 0
        while not self._ending.is_set():
            if place.child is None:
                try:
                    await self._fill(place)
                except (Unavailable, ConfigurationError) as error:
                    failures += 1
                    self._changed("not_started", place, 0, f"a worker did not start ({error})")
                    await self._give_up_or_wait(failures, f"{error}")
                    continue
            child = place.child
            if child is None:
                continue
            code = await asyncio.shield(child.died)
            place.steady.clear()
            lived_s = time.monotonic() - child.born_s
            held = child.board.held()
            place.child = None
            await self._act_on(place, child, code, held)
            quick = lived_s < fleet_limits.WORKER_STEADY_S and not held and not child.asked
            failures = failures + 1 if quick else 0
            if failures > 1:
                await self._give_up_or_wait(failures, f"it {ending_of(code)}")

    async def _give_up_or_wait(self, failures: int, why: str) -> None:
        if failures > fleet_limits.WORKER_RESTARTS_MAX and not self.workers:
            log = f"; see {self._fleet.log}" if self._fleet.log else ""
            raise Unavailable(f"the worker died {failures} times in a row, the last time because {why}{log}")
        delay_s = RESTART_DELAY_S * 2 ** min(failures - 1, 16)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(delay_s, fleet_limits.WORKER_RESTART_DELAY_MAX_S)):
                await self._ending.wait()

    async def _fill(self, place: _Place) -> None:
        fleet = self._fleet
        async with self._starting:
            nursery = await self._open_nursery()
            child = await nursery.bear(
                fleet.reference,
                fleet.folder,
                {**os.environ, **fleet.environment},
                place.part,
                fleet.drain_s,
                self._log_fd,
            )
            if self._roster is not None:
                self._roster.add(child.identity)
            place.child = child
            if self._ending.is_set():
                await self._ask(child)
            try:
                async with asyncio.timeout(READY_WITHIN_S):
                    await asyncio.shield(child.ready)
            except (Unavailable, ConfigurationError, TimeoutError) as error:
                await nursery.signal(child, signal.SIGKILL)
                code = await asyncio.shield(child.died)
                place.child = None
                await self._act_on(place, child, code, child.board.held())
                if isinstance(error, ConfigurationError):
                    raise
                late = isinstance(error, TimeoutError)
                raise Unavailable("it was not ready in time" if late else str(error)) from error
        place.steady.set()
        self._changed("ready", place, child.pid, f"worker {child.pid} is ready")

    async def _open_nursery(self) -> Nursery:
        async with self._opening:
            if self._nursery is not None and self._nursery.broken.is_set():
                await self._nursery.close()
                self._nursery = None
            if self._nursery is None:
                kept = () if self._roster is None else (self._roster.fd,)
                self._nursery = await Nursery.open(self._leash_end_fd, kept)
            return self._nursery

    # --- a death ------------------------------------------------------------------------------------------------

    async def _act_on(self, place: _Place, child: Child, code: int, held: frozenset[str]) -> None:
        """Report a death that was reaped, as far as recovery waits for it; what may be left is swept behind."""
        text = f"worker {child.pid} {ending_of(code)}"
        self._changed("died", place, child.pid, text, code, asked=child.asked)
        child.board.close()
        if not self._fleet.reports:
            return
        own_end = child.asked or child.ended
        death = Death(child.identity, "shutdown" if own_end else "worker_died", held)
        self._untold.append(death)
        if self._ending.is_set():
            return
        report = DeathReport(self._client, self._fleet.queue, death)
        problem = ""
        try:
            if held:
                await report.at_once()
        except Unavailable as error:
            problem = str(error)
        if problem:
            self._changed("not_reported", place, child.pid, f"worker {child.pid}'s death was not told yet: {problem}")
        elif held:
            failed = report.reported.failed
            text = f"worker {child.pid}: attempts that begin again elsewhere: {failed}"
            self._changed("reported", place, child.pid, text, code, failed)
        self._sweep_behind(self._sweep(report, place, child.pid, f"worker {child.pid}'s death was", death))
        if held:
            await asyncio.sleep(AFTER_RECOVERY_S)

    def _sweep_behind(self, sweeping: Coroutine[Any, Any, None]) -> None:
        sweep = asyncio.create_task(sweeping)
        self._sweeps.add(sweep)
        sweep.add_done_callback(self._sweeps.discard)

    async def _tell_of_earlier(self, rosters: Path) -> None:
        """Report the workers of earlier supervisors of this queue that died with them."""
        for _ in range(EARLIER_LOOKS if self._fleet.reports else 0):
            dead, lives = await asyncio.to_thread(dead_of, rosters, self._fleet.queue)
            deaths = [Death(identity, "worker_lost") for identity in dead]
            if deaths:
                report = DeathReport(self._client, self._fleet.queue, *deaths)
                await self._sweep(report, self._places[0], 0, "the deaths of earlier workers were")
            for path in set(dead.values()):
                path.unlink(missing_ok=True)
            if not lives:
                return
            await asyncio.sleep(RESTART_DELAY_S)

    async def _sweep(self, report: DeathReport, place: _Place, pid: int, what: str, *deaths: Death) -> None:
        if report.reported.failed:
            await asyncio.sleep(AFTER_RECOVERY_S)
        while True:
            try:
                await report.sweep()
            except Unavailable as error:
                # Temporal is down, and everything waits for it anyway; the report is due as soon as it answers.
                self._changed("not_reported", place, pid, f"{what} not told yet: {error}")
                await asyncio.sleep(RESTART_DELAY_S)
                continue
            self._untold = [death for death in self._untold if death not in deaths]
            return

    def _changed(
        self,
        kind: Literal["ready", "died", "reported", "not_started", "not_reported"],
        place: _Place,
        pid: int,
        text: str,
        code: int | None = None,
        failed: int = 0,
        asked: bool = False,
    ) -> None:
        at_ms = time.time_ns() // 1_000_000
        self._on_change(Change(kind, place.part, pid, text, at_ms, code, failed, asked))


@contextlib.asynccontextmanager
async def supervised(fleet: Fleet, client: Client, on_change: Callable[[Change], None]) -> AsyncIterator[Supervisor]:
    """Keep a fleet running while the context is open; on leaving, workers drain and are reaped.

    The first worker is ready when this gives the supervisor. `on_change` is called on the event loop, and must not
    block. `client` is a connection to the Temporal that the workers work for.

    Raises:
        ConfigurationError: The workers refuse the agent or a setting; names it.
        Unavailable: The first worker did not start; the text says why.
    """
    supervisor = Supervisor(fleet, client, on_change)
    try:
        await supervisor.start()
        yield supervisor
    finally:
        await supervisor.end()


def _is_ready(child: Child) -> bool:
    return child.ready.done() and child.ready.exception() is None and not child.died.done()
