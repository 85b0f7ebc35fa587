"""The soak: several clients talk to many tasks at once, in every way there is, while processes are killed at random.

Everything that a client asks for is asked until it is acknowledged or refused, under one id, and noted with the moments
of both. Who stops a task leaves it alone for a while, and so do the others: only then can be seen that nothing happens.
Some clients queue several messages at once and change one that must still wait: most others were acted on by then.

When clients and deaths are done, tasks that nobody stopped come to rest by themselves: what a lost wake left lying must
not be hidden by what comes next. Only then a last message goes to each task, which takes along what is parked.
"""

import asyncio
import contextlib
import os
import random
import re
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure import App, TaskEvent
from perdure.app.supervisor import Supervisor
from perdure.core.content import Lane
from tests.races.doors import Door, PythonDoor, Refused, Unknown
from tests.races.known import owed
from tests.races.notes import Notes, now_s
from tests.races.soaking import ASKS, PAYS
from tests.races.subscribing import Subscriber

CLIENTS = 6
PAUSE_S = (0.02, 0.6)
QUIET_S, LONG_QUIET_S, LONG_SHARE = 2.0, 6.0, 0.25
"""How long a stopped task is left alone; of the stops so many for long: something may go on by itself only later."""

KILL_EVERY_S = (1.5, 4.0)
BURST = 3
"""Messages queued at once: each waits for two turns of every one before it."""

WAYS = {"send": 44, "burst": 32, "steer": 8, "withdraw": 8, "stop": 8}
"""What clients do, and how often."""

THEN = {"steer": 2, "withdraw": 2, "stop": 1}
"""What they do with a burst. Who stops then stops a task that has work for seconds: it shows whether that went on."""

LOOK_EVERY_S = 0.5
LATEST = 2
"""Who moves or takes back picks among a task's latest messages: older ones do not wait any more."""

SETTLED_S = 120.0
NUDGE, LAST = "nudge", "last"
"""The first goes to the task that nobody stops, once it rests: one message must wake it. The other goes to each."""


@dataclass
class Soak:
    """One soak over one app. `doors` are what clients come in by, in turn; `victims` says who can be killed now."""

    app: App
    doors: Sequence[Door]
    subscribers: Sequence[Subscriber]
    clients: Notes
    outside: Notes
    seed: int
    tasks: tuple[str, ...]
    victims: Callable[[random.Random], "Awaitable[Victim | None]"]
    sent: dict[str, list[str]] = field(default_factory=dict)
    quiet: dict[str, float] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    over_s: float = 0.0
    rested: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """Of each task: its follower has seen the end of the run that the last message came into."""

    ended: dict[str, int] = field(default_factory=dict)
    """Of each task: the number of the latest end that its follower has seen."""

    async def run(self, for_s: float, enough: Callable[[], bool] | None = None) -> None:
        """Begin all tasks, let clients and deaths at them, and bring every task to its rest.

        That goes on for so long, or until there was `enough` of it.
        """
        async with asyncio.TaskGroup() as following:
            followers = [following.create_task(self._follow(task)) for task in self.tasks]
            followers += [following.create_task(each.follow(self.clients)) for each in self.subscribers]
            await asyncio.gather(*(self._begin(task) for task in self.tasks))
            self.over_s = now_s() + for_s
            async with asyncio.TaskGroup() as group:
                group.create_task(self._kill())
                for number in range(CLIENTS):
                    group.create_task(self._client(number))
                while now_s() < self.over_s:
                    await asyncio.sleep(LOOK_EVERY_S)
                    if enough is not None and enough():
                        self.over_s = now_s()
            await self._come_to_rest()
            await self._asked("send", self.tasks[0], f"{self.tasks[0]}.{NUDGE}", "queue")
            await self._come_to_rest()
            await asyncio.gather(*(self._asked("send", task, f"{task}.{LAST}", "queue") for task in self.tasks))
            async with asyncio.timeout(SETTLED_S):
                await asyncio.gather(*(self.rested[task].wait() for task in self.tasks))
                for each in self.subscribers:
                    await each.seen(self.ended[each.task])
                for follower in followers:
                    follower.cancel()

    async def _come_to_rest(self) -> None:
        """Wait until everything is told that must be, or its time is over, and until no task is to be left alone."""
        quiet = max(self.quiet.values(), default=0.0)
        while True:
            due = owed(self.clients.all(), self.outside.all()).values()
            if now_s() > max([quiet, *due]):
                return
            if not due:
                await asyncio.sleep(max(0.0, quiet - now_s()))
            await asyncio.sleep(LOOK_EVERY_S)

    async def _begin(self, task: str) -> None:
        name, sent = f"{task}.first", now_s()
        await self.app.send(name, task_id=task, message_id=name)
        self.clients.note(op="send", task=task, name=name, lane="queue", outcome="ok", sent=sent, acked=now_s())
        self.sent[task] = [name]

    # --- clients ------------------------------------------------------------------------------------------------

    async def _client(self, number: int) -> None:
        dice = random.Random(f"{self.seed} client {number}")
        count = 0
        while now_s() < self.over_s:
            await asyncio.sleep(dice.uniform(*PAUSE_S))
            task = dice.choice(self.tasks)
            if self.quiet.get(task, 0.0) > now_s():
                continue
            match dice.choices(tuple(WAYS), tuple(WAYS.values()))[0]:
                case "send":
                    count += 1
                    (mark,) = dice.choices(("", ASKS, PAYS), (75, 10, 15))
                    name = self._named(task, f"{number}-{count}{mark}")
                    await self._asked("send", task, name, dice.choice(("steer", "queue")), number)
                case "burst":
                    count += 1
                    names = [self._named(task, f"{number}-{count}{letter}") for letter in "abc"[:BURST]]
                    await asyncio.gather(*(self._asked("send", task, name, "queue", number) for name in names))
                    match dice.choices(tuple(THEN), tuple(THEN.values()))[0]:
                        case "stop":
                            await self._stopped(task, number, dice)
                        case op:
                            await self._asked(op, task, dice.choice(names[1:]), "", number)
                case "stop":
                    await self._stopped(task, number, dice)
                case op:
                    await self._asked(op, task, dice.choice(self.sent[task][-LATEST:]), "", number)

    async def _stopped(self, task: str, number: int, dice: random.Random) -> None:
        """Stop a task, and see to it that everybody leaves it alone then. The first is never stopped.

        Whatever is said there must be acted on, and nothing there excuses that it was not.
        """
        if task == self.tasks[0]:
            return
        quiet_s = LONG_QUIET_S if dice.random() < LONG_SHARE else QUIET_S
        self.quiet[task] = now_s() + 60
        await self._asked("stop", task, "", "", number)
        self.quiet[task] = now_s() + quiet_s

    def _named(self, task: str, what: str) -> str:
        name = f"{task}.{what}"
        self.sent[task].append(name)
        return name

    async def _asked(self, op: str, task: str, name: str, lane: Lane | str, number: int = 0) -> None:
        """Ask until it is acknowledged or refused, and note it. A withdrawal whose answer was lost stays unknown."""
        door, sent, lost, why = self.doors[number % len(self.doors)], now_s(), False, ""
        while True:
            try:
                await self._ask(door, op, task, name, lane)
                outcome = "ok"
            except Refused as refused:
                outcome, why = "unknown" if lost else "refused", str(refused)
            except Unknown:
                lost = True
                continue
            break
        answered = {"outcome": outcome, "why": why, "sent": sent, "acked": now_s()}
        self.clients.note(client=number, op=op, task=task, name=name, lane=lane, **answered)

    @staticmethod
    async def _ask(door: Door, op: str, task: str, name: str, lane: Lane | str) -> None:
        match op:
            case "send":
                await door.send(task, name, "steer" if lane == "steer" else "queue")
            case "steer":
                await door.steer(task, name)
            case "withdraw":
                await door.withdraw(task, name)
            case _:
                await door.stop(task)

    # --- who follows, and answers -------------------------------------------------------------------------------

    async def _follow(self, task: str) -> None:
        """Note every event of a task up to the end of its last run, and answer its questions, two at a time."""
        dice, answering, last = random.Random(f"{self.seed} {task}"), set[asyncio.Task[None]](), False
        while await self.app.store.task(task) is None:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(PAUSE_S[0])
        async for event in self.app.task(task).events():
            how = {name: event.data[name] for name in ("end", "reason") if event.kind == "run.ended"}
            self.clients.note(op="event", task=task, number=event.number, kind=event.kind, run=event.run, **how)
            last = last or (event.kind == "message.promoted" and event.data["message_id"] == f"{task}.{LAST}")
            if event.kind == "run.ended":
                self.ended[task] = event.number
                if last:
                    self.rested[task].set()
            if event.kind == "help.requested":
                for who in ("one", "two"):
                    word = self._decide if event.needs_approval else self._answer
                    answer = asyncio.create_task(word(task, event, who, dice.random() < 0.6, dice.uniform(0.0, 0.5)))
                    answering.add(answer)
                    answer.add_done_callback(answering.discard)

    async def _answer(self, task: str, event: TaskEvent, who: str, agrees: bool, after_s: float) -> None:
        door, text = PythonDoor(self.app), f"{who} says so to {event.help_id}"
        said = await _until_heard(lambda: door.answer(task, event.help_id, text), after_s)
        self.clients.note(op="answer", task=task, help=event.help_id, text=text, **said)

    async def _decide(self, task: str, event: TaskEvent, who: str, agrees: bool, after_s: float) -> None:
        """Let a call begin that waits for approval, or decline it: two people may not agree."""
        door, shown = PythonDoor(self.app), re.search(rf"[\w.-]+{PAYS}", event.text)
        said = await _until_heard(lambda: door.decide(task, event.help_id, who, agrees=agrees), after_s)
        name = shown.group() if shown else ""
        self.clients.note(op="decide", task=task, help=event.help_id, name=name, agrees=agrees, **said)

    # --- deaths -------------------------------------------------------------------------------------------------

    async def _kill(self) -> None:
        dice = random.Random(f"{self.seed} deaths")
        while now_s() < self.over_s:
            await asyncio.sleep(dice.uniform(*KILL_EVERY_S))
            victim = await self.victims(dice)
            if victim is not None:
                self.killed.append(victim.kind)
                self.clients.note(op="kill", kind=victim.kind)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim.pid, signal.SIGKILL)


async def _until_heard(say: Callable[[], Awaitable[None]], after_s: float) -> dict[str, Any]:
    """Say something until it is taken or refused. A refusal after a loss may be that of the second copy."""
    await asyncio.sleep(after_s)
    lost, sent = False, now_s()
    while True:
        try:
            await say()
            outcome = "ok"
        except Refused:
            outcome = "unknown" if lost else "refused"
        except Unknown:
            lost = True
            continue
        return {"outcome": outcome, "sent": sent, "acked": now_s()}


@dataclass(frozen=True)
class Victim:
    """A process that can be killed now."""

    kind: str
    pid: int


def worker_of(supervisor: Supervisor, dice: random.Random) -> Victim | None:
    """Return a worker, quarantined ones too."""
    ready = supervisor.workers
    return Victim("worker", dice.choice(ready).pid) if ready else None


@contextlib.asynccontextmanager
async def served(words: Sequence[str], environment: dict[str, str], log: Path) -> AsyncIterator["Served"]:
    """Keep a server process running, whatever kills it."""
    served = Served(words, environment, log)
    keeping = asyncio.create_task(served.keep())
    try:
        yield served
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


class Served:
    """A server that is started again as soon as it is dead; `pid` is its process."""

    def __init__(self, words: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._words = words
        self._environment = environment
        self._log = log
        self.pid: int | None = None

    async def keep(self) -> None:
        while True:
            with self._log.open("a") as log:
                process = await asyncio.create_subprocess_exec(
                    *self._words, env=self._environment, stdout=log, stderr=log, stdin=asyncio.subprocess.DEVNULL
                )
            self.pid = process.pid
            try:
                await process.wait()
            finally:
                self.pid = None
                if process.returncode is None:
                    process.kill()
                    await process.wait()
