"""From a worker's SIGKILL to the start of the next attempt, as the attempts themselves note it on the wall clock.

Three series on one embedded server, with one worker process and its standby:

- kills inside activities, every second one in a worker that has three tasks' calls in hand (then the slowest counts),
- kills inside workflow tasks: the worker kills itself where it has taken a message into a run and not told the server,
  which the history shows as a workflow task that timed out,
- the same kills inside activities with nobody to report them: plain heartbeats, 2 s.

    python -m bench.recovery [--kills 20] [--heartbeat-kills 5] [--write]

The last line is one JSON object: `p50_ms`, `p95_ms` (inside activities), `workflow_task_p50_ms`,
`workflow_task_p95_ms`, `heartbeat_p50_ms`.
"""

import argparse
import asyncio
import json
import math
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from bench.machine import keep
from perdure import App, Settings, Task, open_app
from perdure.app.supervisor import Fleet, Supervisor, supervised
from perdure.temporal.connection import temporal_client

WAIT_S = 60.0
QUIET_S = 0.7
"""After a replacement is ready: starting it must not count against the next kill, nor the sweeps of the last one."""


class Place:
    """Where the attempts note their starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held = folder / "held"
        self.armed, self.fired = folder / "armed", folder / "fired"

    def starts(self, what: str, key: str = "") -> list[dict[str, Any]]:
        log = self.folder / "starts.log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if line["what"] == what and line["key"].startswith(key)]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - other processes do what is waited for
            await asyncio.sleep(0.01)


async def inside_activity(app: App, place: Place, supervisor: Supervisor, tasks_count: int) -> float:
    """Kill a worker with so many calls in hand; return the milliseconds to the slowest next start."""
    await supervisor.full()
    await asyncio.sleep(QUIET_S)
    place.held.touch()
    tasks = [await app.send("go") for _ in range(tasks_count)]
    await until(lambda: all(place.starts("tool", task.id) for task in tasks))
    await asyncio.sleep(0.3)  # the workflow tasks before the calls are over: the kill is inside activities
    victim = place.starts("tool", tasks[0].id)[0]["pid"]
    hit = [task for task in tasks if place.starts("tool", task.id)[0]["pid"] == victim]
    killed_ns = time.time_ns()
    os.kill(victim, signal.SIGKILL)
    await until(lambda: all(len(place.starts("tool", task.id)) == 2 for task in hit))
    again_ns = max(place.starts("tool", task.id)[1]["at_ns"] for task in hit)
    place.held.unlink()
    for task in tasks:
        await task.result()
    return float((again_ns - killed_ns) / 1e6)


async def inside_workflow_task(app: App, client: Client, place: Place, supervisor: Supervisor) -> float:
    """Let a worker die inside a workflow task; return the milliseconds to the next start of an attempt."""
    await supervisor.full()
    await asyncio.sleep(QUIET_S)
    before = len(place.starts("model"))
    place.fired.unlink(missing_ok=True)
    place.armed.touch()
    task = await app.send("go")
    await until(lambda: place.fired.exists() and not place.armed.exists())
    killed_ns = place.fired.stat().st_mtime_ns
    await until(lambda: len(place.starts("model")) > before)
    again_ns = place.starts("model")[before]["at_ns"]
    await task.result()
    await _timed_out(client, task)
    return float((again_ns - killed_ns) / 1e6)


async def _timed_out(client: Client, task: Task) -> None:
    history = await client.get_workflow_handle(task.id).fetch_history()
    kinds = [event.event_type for event in history.events]
    if EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT not in kinds:
        raise SystemExit(f"task {task.id}: the kill did not hit a workflow task")


def percentile(values: list[float], share: float) -> float:
    """The nearest-rank percentile: one of the values that were measured."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * share / 100) - 1)]


async def measure(kills: int, heartbeat_kills: int, home: Path) -> dict[str, object]:
    place = Place(home)
    settings = Settings.from_environment({}, home=home)
    # The agent's module notes where it is told to, and it is this process that reads.
    os.environ["PERDURE_BENCH_PLACE"] = str(home)
    from bench.recovery_agent import agent  # noqa: PLC0415 - reads the place when it is imported

    environment = {"PERDURE_HOME": str(home), "PERDURE_BENCH_PLACE": str(home), "TEMPORAL_ADDRESS": ""}
    activity: list[float] = []
    workflow_task: list[float] = []
    heartbeat: list[float] = []

    def fleet(environment: dict[str, str], *, reports: bool = True) -> Fleet:
        folder = Path(__file__).parents[1]
        log = home / "worker.log"
        return Fleet("bench.recovery_agent:agent", agent.id, folder, log, environment, drain_s=1, reports=reports)

    async with open_app(agent, settings=settings, worker=False) as app, temporal_client(settings.temporal) as client:
        async with supervised(fleet(environment), client, lambda change: None) as supervisor:
            for number in range(kills):
                activity.append(await inside_activity(app, place, supervisor, 3 if number % 2 else 1))
                print(f"inside activities {number + 1}: {activity[-1]:.0f} ms", flush=True)
            for number in range(kills):
                workflow_task.append(await inside_workflow_task(app, client, place, supervisor))
                print(f"inside workflow tasks {number + 1}: {workflow_task[-1]:.0f} ms", flush=True)
        async with supervised(fleet(environment, reports=False), client, lambda change: None) as supervisor:
            for number in range(heartbeat_kills):
                heartbeat.append(await inside_activity(app, place, supervisor, 1))
                print(f"plain heartbeats {number + 1}: {heartbeat[-1]:.0f} ms", flush=True)
    return {
        "p50_ms": round(statistics.median(activity)),
        "p95_ms": round(percentile(activity, 95)),
        "workflow_task_p50_ms": round(statistics.median(workflow_task)),
        "workflow_task_p95_ms": round(percentile(workflow_task, 95)),
        "heartbeat_p50_ms": round(statistics.median(heartbeat)),
        "kills": kills,
        "heartbeat_kills": heartbeat_kills,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--heartbeat-kills", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="keep the result in bench/results/recovery.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(options.kills, options.heartbeat_kills, Path(folder)))
    if options.write:
        keep("recovery", result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
