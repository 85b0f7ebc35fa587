"""The director: starts workers, kills them at the chosen moments, and plays the customer.

It waits for the moment itself, never for a time: a call is open when the outside world has logged it and its tool is
held, and the task waits when Temporal has nothing open for it. A worker that dies unasked ends the demo.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue
from temporalio.client import Client

from perdure.app.app import App
from perdure.app.events import TaskEvent
from perdure.app.processes import WorkerProcess
from perdure.app.task import Task
from perdure.cli.demo.agent import REFERENCE
from perdure.cli.demo.evidence import Kill, Notes, Waiting, waiting
from perdure.cli.demo.script import ANSWER, COMPLAINT
from perdure.cli.demo.stage import Stage
from perdure.cli.demo.telling import Teller
from perdure.cli.demo.world import World
from perdure.core.errors import Unavailable
from perdure.core.state import TERMINAL

LOOK_EVERY_S: Final = 0.05
"""How often the world and Temporal are looked at: they are other processes, and neither calls back."""


@dataclass(frozen=True)
class Plan:
    """What is to be played. `model` None means the scripted one."""

    kill: Kill = "twice"
    by_hand: bool = False
    model: str | None = None


@dataclass
class Director:
    """One play. Give it an app without a worker of its own."""

    stage: Stage
    world: World
    app: App
    client: Client
    teller: Teller
    plan: Plan
    waits_for: str = "the first worker"
    events: list[TaskEvent] = field(default_factory=list)
    _began_s: float = field(default_factory=time.time)
    _pids: list[int] = field(default_factory=list)
    _deaths: list[int] = field(default_factory=list)
    _held_key: str = ""
    _waiting: Waiting | None = None
    _worker: WorkerProcess | None = None
    _follower: "asyncio.Task[None] | None" = None

    async def play(self) -> Notes:
        """Play until the task is terminal and its workflow closed; return the notes. Every worker is reaped.

        Raises `Unavailable` when a worker does not start, or dies without being killed by the demo.
        """
        orders: list[dict[str, JsonValue]] = self.world.snapshot()["orders"]
        try:
            if self.plan.kill == "twice":
                self.stage.hold.touch(mode=0o600)
            await self._start_worker()
            task = await self.app.send(COMPLAINT)
            self._follower = asyncio.create_task(self._follow(task))
            if self.plan.kill == "twice":
                await self._kill_in_the_call(task)
            await self._be_the_customer(task)
            await self._until("the workflow's end", self._closed(task))
        finally:
            await self._leave()
        return Notes(
            task_id=task.id,
            kill=self.plan.kill,
            scripted=self.plan.model is None,
            by_hand=self.plan.by_hand,
            orders_before=tuple(orders),
            workers=tuple(self._pids),
            deaths=tuple(self._deaths),
            held_key=self._held_key,
            seen=tuple(event.number for event in self.events),
            waiting=self._waiting,
        )

    # --- the play ------------------------------------------------------------------------------------------------

    async def _kill_in_the_call(self, task: Task) -> None:
        """Kill the worker while `get_order`, and nothing else, is open.

        A real model that never calls it is not waited for.
        """

        async def held_or_past() -> bool:
            # A refused call returned at once; an answered one is in the world's log before it is held.
            open_calls = [c for c in self.world.calls() if c.tool == "get_order" and c.outcome == "answered"]
            self._held_key = open_calls[0].key if open_calls else ""
            if not open_calls:
                return self._question() is not None or self._ended()
            now = await waiting(self.client, task.id)
            return now.activities == 1 and not now.workflow_task

        await self._until("get_order to be open", held_or_past)
        if self._held_key:
            await self._kill("get_order is open")
        self.stage.hold.unlink()
        if self._held_key:
            await self._start_worker()

    async def _be_the_customer(self, task: Task) -> None:
        """Answer each question; before the first answer the worker is killed once the task waits quietly."""

        async def asked_or_ended() -> bool:
            return self._question() is not None or self._ended()

        async def quiet() -> bool:
            self._waiting = await waiting(self.client, task.id)
            return self._waiting.quiet

        while True:
            await self._until("a question or the end", asked_or_ended)
            question = self._question()
            if question is None:
                return
            if self._waiting is None:
                await self._until("the task to wait quietly", quiet)
                await self._kill("the task waits for the customer")
                await self._start_worker()
            await task.answer(question.help_id, await self._answer(question))
            await self._until("the answer in the log", self._answered(question))

    async def _kill(self, when: str) -> None:
        worker = self._running()
        number = len(self._pids)
        if self.plan.by_hand:
            self.teller.worker(
                "kill_me", worker.pid, self._now_s(), f"{when}. Now kill worker {number}:  kill -9 {worker.pid}"
            )
            self.waits_for = f"your kill -9 {worker.pid}"
            status = await worker.wait()
        else:
            status = await worker.kill()
        self._worker = None
        self._deaths.append(status)
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        self.teller.worker(
            "killed", worker.pid, self._now_s(), f"worker {number} (pid {worker.pid}): {how} while {when}"
        )

    async def _start_worker(self) -> None:
        self.waits_for = "a worker to be ready"
        self._worker = await WorkerProcess.start(
            REFERENCE,
            self.stage.folder,
            environment=self.stage.environment(self.plan.model),
            log=self.stage.worker_log,
        )
        self._pids.append(self._worker.pid)
        number, pid = len(self._pids), self._worker.pid
        self.teller.worker("started", pid, self._now_s(), f"worker {number} (pid {pid}) is ready")

    async def _answer(self, question: TaskEvent) -> str:
        """Return the customer's line: the scripted one, or what is typed where somebody is there to type."""
        if not (self.plan.by_hand and sys.stdin.isatty()):
            return ANSWER
        self.teller.note(f"{question.text}\nYour answer (Enter for “{ANSWER}”):")
        self.waits_for = "your answer"
        return (await _line_from_stdin()).strip() or ANSWER

    # --- what has happened ---------------------------------------------------------------------------------------

    async def _follow(self, task: Task) -> None:
        async for event in task.events():
            self.events.append(event)
            self.teller.event(event, event.at_ms / 1000 - self._began_s)

    def _question(self) -> TaskEvent | None:
        """Return the question that the task waits with, once its state says so."""
        closed = {event.help_id for event in self.events if event.kind in {"help.answered", "help.closed"}}
        asked = [event for event in self.events if event.kind == "help.requested" and event.help_id not in closed]
        states = [event.data["state"] for event in self.events if event.kind == "task.status"]
        return asked[0] if asked and states[-1] == "input_required" else None

    def _ended(self) -> bool:
        return bool(self.events) and self.events[-1].data.get("state") in TERMINAL

    def _answered(self, question: TaskEvent) -> Callable[[], Awaitable[bool]]:
        async def answered() -> bool:
            return self._ended() or any(
                event.kind == "help.answered" and event.help_id == question.help_id for event in self.events
            )

        return answered

    def _closed(self, task: Task) -> Callable[[], Awaitable[bool]]:
        """The last row is in the store before the workflow knows it, so the workflow's own end is waited for."""

        async def closed() -> bool:
            described = await self.client.get_workflow_handle(task.id).describe()
            return self._ended() and described.close_time is not None

        return closed

    async def _until(self, what: str, happened: Callable[[], Awaitable[bool]]) -> None:
        self.waits_for = what
        while True:
            if await happened():
                return
            worker = self._running()
            if worker.returncode is not None:
                raise Unavailable(
                    f"worker {worker.pid} ended with {worker.returncode} unasked, while the demo waited for {what}; "
                    f"its last words are in {self.stage.worker_log}"
                )
            if self._follower is not None and self._follower.done():
                self._follower.result()
            await asyncio.sleep(LOOK_EVERY_S)

    def _running(self) -> WorkerProcess:
        if self._worker is None:
            raise Unavailable("the demo has no worker")
        return self._worker

    def _now_s(self) -> float:
        return time.time() - self._began_s

    async def _leave(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower
        if self._worker is not None:
            await self._worker.kill()


async def _line_from_stdin() -> str:
    """Return the next line that is typed; a cancelled wait leaves no thread behind that still reads."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def on_line() -> None:
        if not typed.done():
            typed.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin.fileno(), on_line)
    try:
        return await typed
    finally:
        loop.remove_reader(sys.stdin.fileno())
