"""Who works on the task of a trial: a supervisor in this process, or `perdure run` as a child that can be killed too.

Either way the embedded Temporal belongs to this process, so that the death of an app is not also Temporal's.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, Protocol

from temporalio.client import Client

from perdure.app.supervisor import Fleet, Supervisor, supervised
from perdure.cli.chaos.case import Case
from perdure.cli.chaos.victims import children_of, kill
from perdure.core import fleet_limits, limits
from perdure.core.errors import ConfigurationError, Unavailable

WRONG: Final = 2
RESTART_AFTER_S: Final = 0.2
STARTS_MAX: Final = 10
END_WITHIN_S: Final = limits.DRAIN_S + fleet_limits.WORKER_GRACE_S
TOLD_CHARS_MAX: Final = 500
READY_WORDS: Final = b" are ready; their log is "
"""What `perdure run` says when its workers are up."""


class Host(Protocol):
    """What a killer must know of the processes that work."""

    @property
    def app_pid(self) -> int | None:
        """The process of `perdure run`, where there is one."""
        ...

    def workers(self) -> tuple[int, ...]:
        """The workers that run now."""
        ...

    async def watch(self) -> None:
        """Return never; raise what makes the trial impossible."""
        ...


class WorkersHere:
    """Workers under a supervisor in this process."""

    app_pid: int | None = None

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def workers(self) -> tuple[int, ...]:
        """Return those that are ready, those for suspects last."""
        return tuple(child.pid for child in self._supervisor.workers)

    async def watch(self) -> None:
        """Raise `Unavailable` when workers do not start any more."""
        await self._supervisor.watch()


@contextlib.asynccontextmanager
async def workers_here(case: Case, client: Client, home: Path, *, reports: bool) -> AsyncIterator[WorkersHere]:
    """Keep workers running while the context is open; all are ready when it begins."""
    fleet = Fleet(
        case.reference,
        case.agent.id,
        case.folder,
        log=home / "worker.log",
        environment=environment_of(case, home),
        reports=reports,
    )
    async with supervised(fleet, client, lambda change: None) as supervisor:
        await supervisor.full()
        yield WorkersHere(supervisor)


class AppAsChild:
    """`perdure run AGENT --resume TASK` as a child, started again whenever it has ended."""

    def __init__(self, case: Case, home: Path, task_id: str) -> None:
        self._case = case
        self._home = home
        self._command = (sys.executable, "-m", "perdure.cli.main", "run", case.reference, "--resume", task_id, "--json")
        self._process: asyncio.subprocess.Process | None = None
        self._ending = False
        self._logged_bytes = 0

    @property
    def app_pid(self) -> int | None:
        """The child's process number while it runs."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    def workers(self) -> tuple[int, ...]:
        """Return the child's workers, the children of the process that starts them, once it has said it is ready.

        Before that they are starts that nobody relies on yet, and their death ends the whole command.
        """
        pid = self.app_pid
        return () if pid is None or not self._is_ready() else children_of(children_of((pid,)))

    async def watch(self) -> None:
        """Keep the child running; raise when it refuses, or ends by itself too often."""
        ended = 0
        while not self._ending:
            code = await self._run()
            if code == WRONG:
                raise ConfigurationError("AGENT", f"perdure run refuses it: {self._last_words()}")
            ended = ended + 1 if code > 0 else 0
            if ended > STARTS_MAX:
                raise Unavailable(f"perdure run ended with {code} {ended} times in a row: {self._last_words()}")
            await asyncio.sleep(RESTART_AFTER_S)

    async def end(self) -> None:
        """End the child in order, its workers with it."""
        self._ending = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(END_WITHIN_S):
                await process.wait()
        except TimeoutError:
            kill(process.pid)
            await process.wait()

    @property
    def _log(self) -> Path:
        return self._home / "app.log"

    def _is_ready(self) -> bool:
        with self._log.open("rb") as log:
            log.seek(self._logged_bytes)
            return READY_WORDS in log.read()

    async def _run(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        out = os.open(self._home / "app.jsonl", flags, 0o600)
        log = os.open(self._log, flags, 0o600)
        self._logged_bytes = os.fstat(log).st_size
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,  # held open: who answers is the conversation, not this child's terminal
                stdout=out,
                stderr=log,
                cwd=self._case.folder,
                env={**os.environ, **environment_of(self._case, self._home)},
                start_new_session=True,
            )
        finally:
            os.close(out)
            os.close(log)
        return await self._process.wait()

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace").strip()[-TOLD_CHARS_MAX:]


@contextlib.asynccontextmanager
async def app_as_child(case: Case, home: Path, task_id: str) -> AsyncIterator[AppAsChild]:
    """Give the child, which runs while its `watch` does; it has ended when the context is left."""
    app = AppAsChild(case, home, task_id)
    try:
        yield app
    finally:
        await app.end()


def environment_of(case: Case, home: Path) -> dict[str, str]:
    """Return what every process of a trial is told: the trial's own Temporal and store, whatever else is set."""
    return {**case.environment, "PERDURE_HOME": str(home), "TEMPORAL_ADDRESS": "", "PERDURE_STORE_URL": ""}
