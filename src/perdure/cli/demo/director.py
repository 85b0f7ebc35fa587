"""The director: has workers supervised, kills them at the chosen moments, and plays the customer.

With a front door the server is killed together with the worker, and started again before the play goes on.

It waits for the moment itself, never for a time: a call is open when the outside world has logged it and its tool is
held, and the task waits when Temporal has nothing open for it. What was open meanwhile is judged later, from the
history. A worker that dies unasked ends the demo.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue
from temporalio.client import Client

from perdure.app.app import App
from perdure.app.births import ending_of
from perdure.app.events import TaskEvent
from perdure.app.supervisor import Change, Fleet, Supervisor, supervised
from perdure.cli.demo.agent import AGENT_ID, REFERENCE
from perdure.cli.demo.customer import Beside, Customer
from perdure.cli.demo.evidence import Kill, Notes, Waiting, pid_in, waiting, working_pids
from perdure.cli.demo.front_door import FrontDoor, open_door, visiting
from perdure.cli.demo.script import ANSWER, COMPLAINT
from perdure.cli.demo.stage import Stage
from perdure.cli.demo.telling import Teller
from perdure.cli.demo.world import World
from perdure.core.errors import Unavailable
from perdure.core.state import TERMINAL
from perdure.temporal.history import read_history

LOOK_EVERY_S: Final = 0.05
"""How often the world and Temporal are looked at: they are other processes, and neither calls back."""


@dataclass(frozen=True)
class Plan:
    """What is to be played. `model` None means the scripted one.

    With `a2a` the customer comes to a server, which is killed as well; no answer at all is borne for `patience_s`. With
    `mcp` the tools are those of two MCP servers.
    """

    kill: Kill = "twice"
    a2a: bool = False
    patience_s: float = 60.0
    by_hand: bool = False
    model: str | None = None
    mcp: bool = False


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
    _killed: list[int] = field(default_factory=list)
    _killed_at_ms: list[int] = field(default_factory=list)
    _died: dict[int, Change] = field(default_factory=dict)
    _follower: "asyncio.Task[None] | None" = None
    _door: FrontDoor | None = None
    _told: str = ""

    async def play(self) -> Notes:
        """Play until the task is terminal and its workflow closed; return the notes. Every worker is reaped.

        Raises `Unavailable` when a worker does not start, or dies without being killed by the demo.
        """
        orders: list[dict[str, JsonValue]] = self.world.snapshot()["orders"]
        try:
            if self.plan.kill == "twice":
                self.stage.hold.touch(mode=0o600)
            fleet = Fleet(
                REFERENCE,
                AGENT_ID,
                Path.cwd(),
                log=self.stage.worker_log,
                environment={
                    **self.stage.environment(self.plan.model, mcp=self.plan.mcp),
                    "PERDURE_HOME": str(self.stage.folder),
                },
                drain_s=0,
            )
            self.waits_for = "a worker to be ready"
            async with (
                supervised(fleet, self.client, self._changed) as supervisor,
                self._customer(dict(fleet.environment)) as customer,
            ):
                await supervisor.full()
                task_id = await customer.complain(COMPLAINT)
                self._follower = asyncio.create_task(self._follow(customer))
                if self.plan.kill == "twice":
                    await self._kill_in_the_call(task_id)
                await self._be_the_customer(customer, task_id, supervisor)
                await self._until("the workflow's end", self._closed(task_id))
                self._told = await customer.told() if self.plan.a2a else ""
        finally:
            await self._leave()
        return Notes(
            task_id=task_id,
            kill=self.plan.kill,
            scripted=self.plan.model is None,
            by_hand=self.plan.by_hand,
            orders_before=tuple(orders),
            workers=tuple(self._pids),
            deaths=tuple(self._deaths),
            killed=tuple(self._killed),
            killed_at_ms=tuple(self._killed_at_ms),
            held_key=self._held_key,
            seen=tuple(event.number for event in self.events),
            waiting=self._waiting,
            a2a=self.plan.a2a,
            servers=tuple(self._door.pids) if self._door else (),
            server_deaths=tuple(self._door.deaths) if self._door else (),
            told=self._told,
        )

    @contextlib.asynccontextmanager
    async def _customer(self, environment: dict[str, str]) -> AsyncIterator[Customer]:
        if not self.plan.a2a:
            yield Beside(self.app)
            return
        self.waits_for = "the server to answer"
        async with (
            open_door(environment, self.stage.worker_log, self._opened) as door,
            visiting(door, self.plan.patience_s) as visitor,
        ):
            self._door = door
            yield visitor

    def _opened(self, pid: int) -> None:
        self.teller.worker("started", pid, self._now_s(), f"the server (pid {pid}) answers")

    # --- the play ------------------------------------------------------------------------------------------------

    async def _kill_in_the_call(self, task_id: str) -> None:
        """Kill the worker while `get_order`, and nothing else, is open.

        A real model that never calls it is not waited for.
        """

        async def held_or_past() -> bool:
            # A refused call returned at once; an answered one is in the world's log before it is held.
            open_calls = [c for c in self.world.calls() if c.tool == "get_order" and c.outcome == "answered"]
            self._held_key = open_calls[0].key if open_calls else ""
            if not open_calls:
                return self._question() is not None or self._ended()
            now = await waiting(self.client, task_id)
            return now.activities == 1 and not now.workflow_task

        await self._until("get_order to be open", held_or_past)
        if self._held_key:
            (victim,) = await working_pids(self.client, task_id)
            await self._kill(victim, "get_order is open")
        self.stage.hold.unlink()

    async def _be_the_customer(self, customer: Customer, task_id: str, supervisor: Supervisor) -> None:
        """Answer each question; before the first answer the worker is killed once the task waits quietly.

        Not before the one that was killed earlier has a successor: a fleet has one worker more than it was asked for,
        and with two of them gone an answer would find nobody while a new one still starts its servers.
        """

        async def asked_or_ended() -> bool:
            return self._question() is not None or self._ended()

        async def quiet() -> bool:
            self._waiting = await waiting(self.client, task_id)
            return self._waiting.quiet

        while True:
            await self._until("a question or the end", asked_or_ended)
            question = self._question()
            if question is None:
                return
            if self._waiting is None:
                self.waits_for = "a worker in the killed one's place"
                await supervisor.full()
                await self._until("the task to wait quietly", quiet)
                history = await read_history(self.client, task_id)
                await self._kill(pid_in(history.attempts[-1].worker), "the task waits for the customer")
            await customer.answer(question.help_id, await self._answer(question))
            await self._until("the answer in the log", self._answered(question))

    async def _kill(self, victim: int, when: str) -> None:
        """Kill the worker that holds the task, by its number, and wait until its supervisor has seen it."""
        number = self._pids.index(victim) + 1
        self._killed.append(victim)
        at_ms = time.time_ns() // 1_000_000
        if self.plan.by_hand:
            said = f"{when}. Now kill worker {number}:  kill -9 {victim}"
            self.teller.worker("kill_me", victim, self._now_s(), said)
        else:
            os.kill(victim, signal.SIGKILL)
        if self._door is not None and not self.plan.by_hand:
            os.kill(self._door.pid, signal.SIGKILL)
        self.waits_for = f"your kill -9 {victim}" if self.plan.by_hand else f"the death of worker {victim}"
        while victim not in self._died:
            self._look_at_follower()
            await asyncio.sleep(LOOK_EVERY_S)
        death = self._died[victim]
        code = death.code or 0
        self._killed_at_ms.append(death.at_ms if self.plan.by_hand else at_ms)
        self._deaths.append(code)
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        self.teller.worker("killed", victim, self._now_s(), f"worker {number} (pid {victim}): {how} while {when}")
        if self._door is not None:
            await self._open_again(self._door, when)

    async def _open_again(self, door: FrontDoor, when: str) -> None:
        """Wait for the server's death too, and start it again where it was."""
        if self.plan.by_hand:
            said = f"{when}. Now kill the server:  kill -9 {door.pid}"
            self.teller.worker("kill_me", door.pid, self._now_s(), said)
            self.waits_for = f"your kill -9 {door.pid}"
        code = await door.death()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        self.teller.worker("killed", door.pid, self._now_s(), f"the server (pid {door.pid}): {how} while {when}")
        self.waits_for = "the server to answer again"
        await door.open()

    def _changed(self, change: Change) -> None:
        """Take note of what the supervisor tells."""
        if change.kind == "ready":
            self._pids.append(change.pid)
            number, kind = len(self._pids), "" if change.part == "calls" else ", for suspects,"
            self.teller.worker(
                "started", change.pid, self._now_s(), f"worker {number} (pid {change.pid}){kind} is ready"
            )
        elif change.kind == "died" and not change.asked:
            self._died[change.pid] = change

    async def _answer(self, question: TaskEvent) -> str:
        """Return the customer's line: the scripted one, or what is typed where somebody is there to type."""
        if not (self.plan.by_hand and sys.stdin.isatty()):
            return ANSWER
        statuses = [str(event.data.get("text", "")) for event in self.events if event.kind == "task.status"]
        self.teller.note(f"{question.text or statuses[-1]}\nYour answer (Enter for “{ANSWER}”):")
        self.waits_for = "your answer"
        return (await _line_from_stdin()).strip() or ANSWER

    # --- what has happened ---------------------------------------------------------------------------------------

    async def _follow(self, customer: Customer) -> None:
        async for event in customer.events():
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

    def _closed(self, task_id: str) -> Callable[[], Awaitable[bool]]:
        """The last row is in the store before the workflow knows it, so the workflow's own end is waited for."""

        async def closed() -> bool:
            described = await self.client.get_workflow_handle(task_id).describe()
            return self._ended() and described.close_time is not None

        return closed

    async def _until(self, what: str, happened: Callable[[], Awaitable[bool]]) -> None:
        self.waits_for = what
        while True:
            if await happened():
                return
            for pid, death in self._died.items():
                if pid not in self._killed:
                    raise Unavailable(
                        f"worker {pid} {ending_of(death.code or 0)} unasked, while the demo waited for {what}; "
                        f"its last words are in {self.stage.worker_log}"
                    )
            if self._door is not None and self._door.ended:
                raise Unavailable(
                    f"the server ended unasked, while the demo waited for {what}; its last words are in "
                    f"{self.stage.worker_log}"
                )
            self._look_at_follower()
            await asyncio.sleep(LOOK_EVERY_S)

    def _look_at_follower(self) -> None:
        if self._follower is not None and self._follower.done():
            self._follower.result()

    def _now_s(self) -> float:
        return time.time() - self._began_s

    async def _leave(self) -> None:
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower


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
