"""A supervised fleet over a test's place, in this process or as `perdure worker`, and what the kernel says of pids."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from perdure import App
from perdure.app.births import Child
from perdure.app.supervisor import Change, Fleet, Supervisor, supervised
from tests.supervisor import watched
from tests.temporal.bench import Bench, until

FOLDER = Path(__file__).parents[2]
REFERENCE = "tests.supervisor.watched:agent"


class Watch:
    """An app without a worker of its own, the supervisor of those that work for it, and what it told."""

    def __init__(self, bench: Bench, app: App, supervisor: Supervisor, changes: list[Change]) -> None:
        self.bench = bench
        self.app = app
        self.supervisor = supervisor
        self.changes = changes

    def of(self, pid: int) -> Child:
        return next(child for child in self.supervisor.workers if child.pid == pid)

    async def pid_of(self, what: str, count: int = 1) -> int:
        """Wait until the tool was reached so many times, and return where it was last."""
        await until(lambda: self.bench.outside.count(what) >= count)
        return self.bench.outside.of(what)[-1].pid

    def go(self) -> None:
        (self.bench.home / "open").touch()


def environment(bench: Bench) -> dict[str, str]:
    return {
        "PERDURE_HOME": str(bench.home),
        "PERDURE_TEST_PLACE": str(bench.home),
        "PERDURE_TEST_AGENT": bench.queue,
        "PERDURE_STORE_URL": bench.settings.store_url,
        "TEMPORAL_ADDRESS": bench.address,
        "TEMPORAL_TLS": "false",
    }


def app_of(bench: Bench) -> contextlib.AbstractAsyncContextManager[App]:
    agent = bench.agent(tools=watched.TOOLS, model_heartbeat_timeout_s=watched.MODEL_HEARTBEAT_S)
    return bench.app(agent, worker=False)


@contextlib.asynccontextmanager
async def watching(bench: Bench, *, drain_s: float = 0.1, full: bool = True) -> AsyncIterator[Watch]:
    """Supervise one worker process, its standby and the quarantine workers."""
    changes: list[Change] = []
    fleet = Fleet(
        REFERENCE, bench.queue, FOLDER, bench.home / "workers.log", environment(bench), processes=1, drain_s=drain_s
    )
    async with app_of(bench) as app, supervised(fleet, bench.client, changes.append) as supervisor:
        if full:
            await supervisor.full()
        yield Watch(bench, app, supervisor, changes)


@contextlib.asynccontextmanager
async def commanded(bench: Bench, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `perdure worker` and wait until it says that it is ready; whatever is left of it at the end is killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "perdure.cli.main", "worker", REFERENCE, "--json", *options),
        cwd=FOLDER,
        env={**os.environ, **environment(bench)},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        if process.stdout is None:
            raise AssertionError("no output")
        async for line in process.stdout:
            if b'"event": "ready"' in line:
                break
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def state_of(pid: int) -> str:
    """Return the kernel's letter for a process: R, S, T (stopped), Z (dead, not reaped); empty when it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return status.rsplit(")", 1)[1].split()[0]


def is_gone(pid: int) -> bool:
    return state_of(pid) in {"", "Z"}


def children_of(pid: int) -> list[int]:
    """Return the processes below one, at any depth."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
