"""One task under chosen deaths: what the `chaos` fixture of `perdure.testing` runs.

A run has a Temporal, a store and supervised worker processes of its own, in a folder that is the test's. The workers
kill themselves at the named points, each fault once over all of them; the task goes on in the next worker, and what
became of it comes back as one value to assert on.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from perdure.app.agent import Agent
from perdure.app.app import App, open_app
from perdure.app.events import TaskEvent
from perdure.app.faults import ONCE, once_paths
from perdure.app.judging import broken_promises
from perdure.app.loading import load_agent
from perdure.app.messages import new_id, new_message
from perdure.app.settings import Settings
from perdure.app.supervisor import Change, Fleet, Supervisor, supervised
from perdure.app.task import Task
from perdure.core.errors import ConfigurationError, InvalidInput, RunFailed, Unavailable
from perdure.core.faults import FIELD, Fault, read_faults
from perdure.core.ports import EffectRow
from perdure.temporal.connection import temporal_client
from perdure.temporal.contracts import TaskStart
from perdure.temporal.tasks import TaskClient

NEUTRAL = {"TEMPORAL_ADDRESS": "", "PERDURE_STORE_URL": ""}
"""What a worker of a run is told: an empty name of a Temporal or a store counts as none."""


@dataclass(frozen=True)
class Outcome:
    """What became of a task whose workers were killed.

    `answer` is empty where the run ended without one, and `reason` says why. `deaths` counts killed workers, `broken`
    names each promise that the task's own records show to be broken; whether an effect happened twice outside is for
    the test to look up there, by the keys in `effects`.
    """

    task_id: str
    state: str
    reason: str
    answer: str
    deaths: int
    events: tuple[TaskEvent, ...]
    effects: tuple[EffectRow, ...]
    broken: tuple[str, ...]

    def begun(self, tool: str) -> int:
        """Return how often calls of this tool were begun, over all its keys and attempts."""
        return sum(len(row.begun) for row in self.effects if row.tool == tool)

    def keys(self, tool: str) -> tuple[str, ...]:
        """Return the idempotency keys of this tool's calls, in the order of the calls."""
        return tuple(row.key for row in self.effects if row.tool == tool)


@dataclass(frozen=True)
class KillAt:
    """Deaths to come. `await run(...)` plays a task under them; several runs are independent of each other."""

    faults: tuple[Fault, ...]
    home: Path

    async def run(
        self, agent: str, text: str, *, answer: str | None = None, within_s: float = 120.0, folder: Path | None = None
    ) -> Outcome:
        """Send `text` to the agent `module:agent`, let its workers die, and return what became of the task.

        Args:
            agent: As `perdure worker` takes it; workers import it anew, so it must not be made within the test.
            text: The task's first message.
            answer: What each question to a person is answered with; without it a question is waited through.
            within_s: Seconds for all of it: start, deaths and recoveries.
            folder: Where the module is found. Default: the present folder.

        Raises:
            ConfigurationError: The agent cannot be loaded, or a fault was reached by nobody: the test proves nothing.
            Unavailable: It took longer than `within_s`; names the workers' log.
        """
        home = self.home / new_id("run")
        home.mkdir(mode=0o700, parents=True)
        log = home / "workers.log"
        try:
            async with asyncio.timeout(within_s):
                outcome = await self._run(load_agent(agent), agent, text, answer, home, log, folder or Path.cwd())
        except TimeoutError as error:
            raise Unavailable(f"the task did not end within {within_s:g} s; see {log}") from error
        paths = once_paths(home / "died", self.faults)
        missed = [str(fault) for fault, path in zip(self.faults, paths, strict=True) if not path.exists()]
        if missed:
            raise ConfigurationError("kill_at", f"no worker came to {', '.join(missed)}, so nothing was killed there")
        return outcome

    async def _run(
        self, agent: Agent, reference: str, text: str, answer: str | None, home: Path, log: Path, folder: Path
    ) -> Outcome:
        environment = {
            **NEUTRAL,
            "PERDURE_HOME": str(home),
            FIELD: ",".join(map(str, self.faults)),
            ONCE: str(home / "died"),
        }
        settings, changes = Settings.apart(home), list[Change]()
        async with contextlib.AsyncExitStack() as stack:
            app = await stack.enter_async_context(open_app(agent, settings=settings, worker=False))
            client = await stack.enter_async_context(temporal_client(settings.temporal))
            task = await self._start(app, client, agent, text)
            fleet = Fleet(reference, agent.id, folder, log, environment, drain_s=0.0)
            supervisor = await stack.enter_async_context(supervised(fleet, client, changes.append))
            await stack.enter_async_context(_answering(task, answer))
            said = await _ended(task, supervisor)
            row, effects = await task.row(), await app.store.effects(task.id)
            events = await _logged(task, row.last_number)
        deaths = sum(change.kind == "died" and not change.asked for change in changes)
        broken = broken_promises(events, effects)
        return Outcome(task.id, row.state, row.reason, said, deaths, events, effects, broken)

    async def _start(self, app: App, client: Client, agent: Agent, text: str) -> Task:
        """Start the task with a restart limit above its deaths, which would otherwise end it (R12)."""
        spec = app.agent.spec()
        spec = spec.model_copy(update={"crashes_max": max(spec.crashes_max, len(self.faults) + 1)})
        message = await new_message(app.store, text)
        start = TaskStart(task_id=new_id("t"), context_id=new_id("c"), agent=spec, messages=(message,))
        await TaskClient(client, agent.id).start(start)
        return app.task(start.task_id)


class Chaos:
    """The `chaos` fixture: worker processes that die at named points."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def kill_at(self, *faults: str) -> KillAt:
        """Let a worker die at each of these points, once: `point[:tool or task][@nth]`, as in `tool.begun:refund`.

        `perdure.core.faults.POINTS` lists them. Raises `ConfigurationError` for a point that does not exist.
        """
        read = read_faults(",".join(faults))
        if not read:
            raise ConfigurationError("kill_at", "name a point, as in kill_at('tool.begun')")
        return KillAt(read, self._home)


async def _ended(task: Task, supervisor: Supervisor) -> str:
    """Return the task's answer, or an empty text; workers that do not start any more end the run at once."""
    waiting = asyncio.create_task(task.result())
    watching = asyncio.create_task(supervisor.watch())
    try:
        await asyncio.wait({waiting, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            watching.result()
        return waiting.result()
    except RunFailed:
        return ""
    finally:
        for each in (waiting, watching):
            each.cancel()
        await asyncio.gather(waiting, watching, return_exceptions=True)


@contextlib.asynccontextmanager
async def _answering(task: Task, answer: str | None) -> AsyncIterator[None]:
    """Answer every question while the context is open; nothing without an answer."""
    answering = asyncio.create_task(_answer_all(task, answer)) if answer is not None else None
    try:
        yield
    finally:
        if answering is not None:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)


async def _answer_all(task: Task, answer: str) -> None:
    async for event in task.events():
        taken = event.kind != "help.requested"
        while not taken:
            # A worker that has just been killed takes no answer; one that took it and was killed then has it.
            with contextlib.suppress(Unavailable):
                with contextlib.suppress(InvalidInput):
                    await task.answer(event.help_id, answer)
                taken = True


async def _logged(task: Task, last_number: int) -> tuple[TaskEvent, ...]:
    found: list[TaskEvent] = []
    async for event in task.events():
        found.append(event)
        if event.number >= last_number:
            break
    return tuple(found)
