"""One stage for many races: one worker process that makes everything, killed by each race where it says.

All faults of all races are armed from the start; each names one task and kills once. There is no standby: a killed
worker leaves nobody until the next one is born, so that a kill is a restart. What a race waits for is a fact (a line of
the outside, a row of the log, a death), with a bound.
"""

import asyncio
import contextlib
import importlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from temporalio.client import Client
from temporalio.service import RPCError

from perdure import App, Task, TaskEvent
from perdure.app.faults import ONCE, once_paths
from perdure.app.judging import broken_promises
from perdure.app.supervisor import Change, Fleet, Supervisor, supervised
from perdure.core.content import Lane
from perdure.core.errors import Unavailable
from perdure.core.faults import FIELD, read_faults
from perdure.core.ports import StoredEvent
from perdure.core.state import TaskState
from perdure.temporal import tasks as client_side
from tests.races import acting
from tests.races.without import MARK
from tests.supervisor.fleet import FOLDER, environment, is_gone
from tests.temporal.bench import Bench, logged, rows_of, until

REFERENCE = "tests.races.acting:agent"
WAIT_S = 30.0
IMPATIENT_S = 1.0
PAUSE_S = 0.05
STAGED = ("test_parked", "test_stopped", "test_going_on")
"""The modules whose races are played on the one stage."""


@dataclass(frozen=True)
class Declared:
    """A race: where its worker dies, and what it finds without each of its rules."""

    case: str
    points: tuple[str, ...]
    rules: dict[str, str]


DECLARED: dict[Callable[..., Awaitable[None]], Declared] = {}

Played = Callable[["Race"], Awaitable[None]]
"""What a race does with its task; asserts what must come of it."""


def dies(*points: str, without: dict[str, str]) -> Callable[[Played], Played]:
    """Say of a race where its worker dies: `point`, or `point/NAME` for the message of that name.

    `without` names its rules (`without.py`), each with a piece of what the race finds where that is taken out.
    """

    def declare(played: Played) -> Played:
        DECLARED[played] = Declared(played.__name__.split("_")[1], points, without)
        return played

    return declare


class Stage:
    """The one worker, its supervisor, and an app without a worker that talks to it."""

    def __init__(self, bench: Bench, app: App, supervisor: Supervisor, faults: tuple[str, ...]) -> None:
        self.bench = bench
        self.app = app
        self.supervisor = supervisor
        paths = once_paths(bench.home / "died", read_faults(",".join(faults)))
        self.dead = dict(zip(faults, paths, strict=True))

    def race(self, played: Played, without: str = "") -> "Race":
        return Race(self, DECLARED[played], without)

    @contextlib.asynccontextmanager
    async def nobody_comes(self) -> AsyncIterator[None]:
        """Until this is left, a worker that dies has no successor, and nobody knows of its death."""
        nursery_pid = self.supervisor.nursery_pid
        if nursery_pid is None:
            raise AssertionError("no worker was started")
        os.kill(nursery_pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(nursery_pid, signal.SIGCONT)

    async def worker_pid(self) -> int:
        """Return the worker that makes everything, as soon as there is one."""
        found: list[int] = []

        def ready() -> bool:
            found[:] = [child.pid for child in self.supervisor.workers if child.part == "calls"]
            return bool(found) and not is_gone(found[0])

        await until(ready, WAIT_S)
        return found[0]

    @contextlib.asynccontextmanager
    async def tools_connect(self) -> AsyncIterator[int]:
        """Kill the worker; give the process of the next one, whose tools connect until this is left or it dies."""
        held = acting.hold(self.bench.home, self.bench.queue, "connecting")
        held.touch()
        try:
            before = self.bench.outside.count("connecting")
            await self.kill()
            await until(lambda: self.bench.outside.count("connecting") > before, WAIT_S)
            yield self.bench.outside.of("connecting")[-1].pid
        finally:
            held.unlink()

    async def kill(self) -> None:
        """Kill the worker wherever it is."""
        pid = await self.worker_pid()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: is_gone(pid))


class Race:
    """One task on the stage. A message has its name as its text, and its id is the task's with that name."""

    def __init__(self, stage: Stage, declared: Declared, without: str = "") -> None:
        self.stage = stage
        self.declared = declared
        self.without = without
        self.id = task_of(stage.bench, declared, without)
        self.wait_s = WAIT_S
        self.place = stage.bench.home
        self.task: Task = stage.app.task(self.id)
        self._held: set[Path] = set()
        self._beside: list[Race] = []

    # --- what people do -----------------------------------------------------------------------------------------

    async def start(self, name: str, *held: str) -> None:
        """Start the task with its first message; what is `held` waits until it is let go."""
        self.hold(*held)
        await self.stage.app.send(name, task_id=self.id, message_id=self.message(name))

    async def send(self, name: str, lane: Lane | None = None) -> int:
        return await self.task.send(name, message_id=self.message(name), lane=lane)

    async def stop(self) -> bool:
        return await self.task.stop()

    async def steer(self, name: str) -> None:
        await self.task.steer(self.message(name))

    async def withdraw(self, name: str) -> None:
        await self.task.withdraw(self.message(name))

    async def unanswered(self, doing: Awaitable[object]) -> None:
        """Do something while no worker is up: it is told so, and what it asked for waits with Temporal."""
        with patch.object(client_side, "ANSWER_WITHIN_S", IMPATIENT_S):
            try:
                await doing
            except Unavailable:
                return
        raise AssertionError("it was answered, and no worker is up")

    def message(self, name: str) -> str:
        return f"{self.id}.{name}"

    # --- what the outside does, and what it saw -----------------------------------------------------------------

    def hold(self, *whats: str) -> None:
        for what in whats:
            path = acting.hold(self.place, self.id, what)
            path.touch()
            self._held.add(path)

    def let_go(self, *whats: str) -> None:
        for what in whats:
            acting.hold(self.place, self.id, what).unlink(missing_ok=True)

    def asked(self) -> list[tuple[int, str]]:
        """Return each request to the model: its turn, and the words of the messages that it carried."""
        found = []
        for noted in self.stage.bench.outside.all():
            task_id, _, turn = noted.key.partition("/")
            if task_id == self.id and noted.what.startswith("asked "):
                found.append((int(turn), noted.what.removeprefix("asked ")))
        return found

    def reached(self, what: str) -> list[int]:
        """Return the processes in which a tool of the task was reached, in order."""
        outside = self.stage.bench.outside
        return [noted.pid for noted in outside.of(what) if noted.key.startswith(f"{self.id}/")]

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            await until(holds, self.wait_s)
        except TimeoutError as error:
            raise AssertionError(f"waited until {what}") from error

    async def model_asked(self, times: int = 1) -> None:
        await self.until(lambda: len(self.asked()) >= times, f"the model is asked {times} times: {self.asked()}")

    async def tool_reached(self, what: str, times: int = 1) -> None:
        await self.until(lambda: len(self.reached(what)) >= times, f"{what} is reached {times} times")

    async def died(self, point: str = "") -> None:
        """Wait until the worker has died at this point of the race, or at its only one."""
        fault = fault_of(self.id, point or self.declared.points[0])
        await self.until(self.stage.dead[fault].exists, f"the worker dies at {fault}")

    # --- what the task shows ------------------------------------------------------------------------------------

    async def event(self, kind: str, *, count: int = 1, **data: object) -> TaskEvent:
        """Wait for the `count`th event of that kind and data."""
        left = count
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.wait_s):
                async for found in self.task.events():
                    if found.kind == kind and all(found.data.get(name) == value for name, value in data.items()):
                        left -= 1
                        if left == 0:
                            return found
        raise AssertionError(f"{kind} {data} came {count - left} times of {count}")

    async def first(self, prefix: str) -> str:
        """Wait for the task's first event whose kind begins so, and return its kind."""
        async with asyncio.timeout(self.wait_s):
            return await anext(found.kind async for found in self.task.events() if found.kind.startswith(prefix))

    async def state(self) -> TaskState:
        """Return the state as the workflow has it, from a worker that is up."""
        await self.stage.worker_pid()
        return await self.stage.bench.tasks.state(self.id)

    async def rests(self) -> None:
        """Wait until the task has nothing to do: no run, and nothing that waits."""
        async with asyncio.timeout(self.wait_s):
            while (state := await self.state()).run is not None or state.inbox:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(PAUSE_S)

    async def parks(self, *names: str) -> None:
        """See that these messages are parked, in this order, and that nothing else waits or runs."""
        state = await self.state()
        waiting = [self._name(p.message_id) for p in state.inbox]
        parked = [self._name(p.message_id) for p in state.inbox if not state.runnable(p)]
        whole = state.run is None and waiting == parked == list(names)
        assert whole, f"instead of being parked, of {names} wait {waiting}; parked are {parked}; the run is {state.run}"

    async def log(self) -> list[StoredEvent]:
        """Return the log as the store has it, as soon as that is all that the workflow has now."""
        last, stored = (await self.state()).last_number, list[StoredEvent]()
        async with asyncio.timeout(self.wait_s):
            while len(stored := await logged(self.stage.app.store, self.id)) < last:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(PAUSE_S)
        return stored

    async def promoted(self) -> list[str]:
        return [self._name(row.data["message_id"]) for row in rows_of(await self.log(), "message.promoted")]

    async def ends(self) -> list[tuple[Any, Any]]:
        return [(row.data["end"], row.data["reason"]) for row in rows_of(await self.log(), "run.ended")]

    def _name(self, message_id: object) -> str:
        return str(message_id).removeprefix(f"{self.id}.")

    async def played(self, played: Played) -> None:
        """Play it to its end, with all that is asked there."""
        await played(self)
        await self.over()

    async def over(self) -> None:
        """See that it died where it should, and what holds for any task: its log, ledger, history and replay."""
        alive = [point for point in self.declared.points if not self.stage.dead[fault_of(self.id, point)].exists()]
        assert not alive, f"nobody died at {alive}"
        self.close()
        await self.stage.worker_pid()
        events = [TaskEvent.of(stored) for stored in await self.stage.bench.sound(self.task, self.stage.app.store)]
        assert broken_promises(events, await self.stage.app.store.effects(self.id)) == ()

    def close(self) -> None:
        for path in self._held:
            path.unlink(missing_ok=True)
        for beside in self._beside:
            beside.close()

    def beside(self, name: str) -> "Race":
        """Return another task, under the same rules, that dies nowhere by itself."""
        beside = Race(self.stage, replace(self.declared, case=f"{self.declared.case}-{name}", points=()), self.without)
        self._beside.append(beside)
        return beside

    async def give_up(self) -> None:
        """End what is left of a race that came out wrong: its workflow may be stuck for good."""
        self.close()
        for race in (self, *self._beside):
            with contextlib.suppress(RPCError):
                await self.stage.bench.client.get_workflow_handle(race.id).terminate("it came out wrong")


def task_of(bench: Bench, declared: Declared, without: str = "") -> str:
    return f"{bench.queue}-{declared.case}{MARK + without if without else ''}"


def fault_of(task_id: str, point: str) -> str:
    """Return the fault that kills at this point of this task: `point`, `point/NAME`, each with `@N` if need be."""
    at, _, nth = point.partition("@")
    name, _, message = at.partition("/")
    return f"{name}:{task_id}{'.' + message if message else ''}{'@' + nth if nth else ''}"


def _faults(bench: Bench) -> Iterator[str]:
    for declared in DECLARED.values():
        for rule in ("", *declared.rules):
            yield from (fault_of(task_of(bench, declared, rule), point) for point in declared.points)


@contextlib.asynccontextmanager
async def raised(server: tuple[str, Client], home: Path) -> AsyncIterator[Stage]:
    """Give the stage of all declared races."""
    for name in STAGED:
        importlib.import_module(f"tests.races.{name}")
    bench = Bench(server[0], home, server[1])
    faults, changes = tuple(_faults(bench)), list[Change]()
    armed = {FIELD: ",".join(faults), ONCE: str(home / "died")}
    kept = Fleet(REFERENCE, bench.queue, FOLDER, home / "workers.log", environment(bench) | armed, 0, 0.1)
    agent = bench.agent(
        tools=acting.agent.tools, model_heartbeat_timeout_s=acting.HEARTBEAT_S, after_answer="input_required"
    )
    async with (
        bench.app(agent, worker=False) as app,
        supervised(kept, bench.client, changes.append) as supervisor,
    ):
        await supervisor.full()
        yield Stage(bench, app, supervisor, faults)
