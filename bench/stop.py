"""From sending a stop to the later of its acknowledgement and the call that it cancels, with a real worker process.

Stops come at random moments of calls under way: a `once` tool call, a model call, and a backoff between two attempts,
where there is nothing to cancel and the acknowledgement counts. The calls note on the wall clock when they heard of it.
Two series: on the embedded server, and on one that has none of its worker commands, as any other server, where a stop
rides on heartbeats.

    python -m bench.stop [--stops 60] [--throttled-stops 30] [--seed 7] [--write]

The last line is one JSON object: `p50_ms`, `p95_ms` and `throttled_p95_ms` of the stops that had a call to cancel, and
the 95th percentiles of each kind and of the acknowledgements.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

from bench.machine import keep
from bench.recovery import percentile
from bench.stop_agent import agent
from perdure import App, Settings, Task, open_app
from perdure.app.supervisor import Fleet, supervised
from perdure.temporal.connection import temporal_client
from perdure.temporal.embedded_binary import find_binary
from perdure.temporal.embedded_launch import Launch, Ports

WAIT_S = 60.0
KINDS = ("tool", "model", "backoff")
MOMENT_MAX_S = 1.0
"""Stops come up to so long after their call began, so that they meet heartbeats at any phase."""

COMMANDS = ("enableCancelActivityWorkerCommand", "WorkerCommandsEnabled", "WorkerHeartbeatsEnabled")
"""What of the embedded server's configuration tells a worker of a stop at once."""


class PlainLaunch(Launch):
    """The embedded server without what tells workers of a stop: they hear of it with a heartbeat, as on any other."""

    def _arguments(self, ports: Ports) -> list[str]:
        given = super()._arguments(ports)
        plain: list[str] = []
        for word in given:
            if any(name in word for name in COMMANDS):
                plain.pop()  # the option that it is the value of
            else:
                plain.append(word)
        return plain


class Notes:
    """What the calls noted."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "notes.log"

    def at_ns(self, what: str, task_id: str) -> int | None:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        for line in lines:
            said: dict[str, Any] = json.loads(line)
            if (said["what"], said["task"]) == (what, task_id):
                return int(said["at_ns"])
        return None


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - other processes do what is waited for
            await asyncio.sleep(0.005)


async def one_stop(app: App, notes: Notes, kind: str, moment_s: float) -> tuple[float, float]:
    """Stop one call; return the milliseconds to the later of the two, and to the acknowledgement."""
    task = await app.send(kind)
    if kind == "backoff":
        await _waits(task)
    else:
        await until(lambda: notes.at_ns("begun", task.id) is not None)
    await asyncio.sleep(moment_s)
    sent_ns = time.time_ns()
    if not await task.stop():
        raise SystemExit(f"task {task.id}: there was nothing to stop")
    acknowledged_ns = later_ns = time.time_ns()
    if kind != "backoff":
        await until(lambda: notes.at_ns("cancelled", task.id) is not None)
        later_ns = max(later_ns, notes.at_ns("cancelled", task.id) or 0)
    await task.cancel()
    return (later_ns - sent_ns) / 1e6, (acknowledged_ns - sent_ns) / 1e6


async def _waits(task: Task) -> None:
    async with asyncio.timeout(WAIT_S):
        async for event in task.events():
            if event.kind == "model.failed":
                return


async def series(home: Path, temporal: dict[str, str], stops: int, chance: Random) -> dict[str, list[float]]:
    """Stop so many calls; return the milliseconds by kind, and those of the acknowledgements."""
    environment = {"PERDURE_HOME": str(home), "PERDURE_BENCH_PLACE": str(home), "TEMPORAL_ADDRESS": "", **temporal}
    settings = Settings.from_environment(temporal, home=home)
    fleet = Fleet("bench.stop_agent:agent", agent.id, Path(__file__).parents[1], home / "worker.log", environment)
    found: dict[str, list[float]] = {kind: [] for kind in (*KINDS, "acknowledged")}
    async with (
        open_app(agent, settings=settings, worker=False) as app,
        temporal_client(settings.temporal) as client,
        supervised(fleet, client, lambda change: None) as supervisor,
    ):
        await supervisor.full()
        for number in range(stops):
            kind = KINDS[number % len(KINDS)]
            later_ms, acknowledged_ms = await one_stop(app, Notes(home), kind, chance.uniform(0, MOMENT_MAX_S))
            found[kind].append(later_ms)
            found["acknowledged"].append(acknowledged_ms)
            print(f"{kind}: {later_ms:.0f} ms, acknowledged after {acknowledged_ms:.0f} ms", flush=True)
    return found


@contextlib.asynccontextmanager
async def plain_server(home: Path) -> AsyncIterator[str]:
    """A Temporal that says nothing to workers by itself; give its address."""
    launch = PlainLaunch(find_binary(None), home / "temporal.db", None, ui=False, timeout_s=WAIT_S, environment={})
    server, ports = await launch.first()
    try:
        yield f"127.0.0.1:{ports.frontend}"
    finally:
        await server.stop()


def cancelled(found: dict[str, list[float]]) -> list[float]:
    """Return the figures of stops that had a call to cancel; one in a backoff would only flatter them."""
    return [*found["tool"], *found["model"]]


async def measure(stops: int, throttled_stops: int, seed: int, home: Path) -> dict[str, object]:
    chance = Random(seed)
    ours, theirs = home / "ours", home / "theirs"
    ours.mkdir(mode=0o700)
    theirs.mkdir(mode=0o700)
    embedded = await series(ours, {}, stops, chance)
    throttled: dict[str, list[float]] = {}
    if throttled_stops:
        async with plain_server(theirs) as address:
            where = {"TEMPORAL_ADDRESS": address, "PERDURE_STORE_URL": f"sqlite:///{theirs / 'store.db'}"}
            throttled = await series(theirs, where, throttled_stops, chance)
    result: dict[str, object] = {
        "p50_ms": round(statistics.median(cancelled(embedded))),
        "p95_ms": round(percentile(cancelled(embedded), 95)),
    }
    if throttled:
        result["throttled_p50_ms"] = round(statistics.median(cancelled(throttled)))
        result["throttled_p95_ms"] = round(percentile(cancelled(throttled), 95))
    result |= {f"{kind}_p95_ms": round(percentile(each, 95)) for kind, each in embedded.items()}
    result |= {f"throttled_{kind}_p95_ms": round(percentile(each, 95)) for kind, each in throttled.items()}
    return {**result, "stops": stops, "throttled_stops": throttled_stops, "seed": seed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--stops", type=int, default=60)
    parser.add_argument("--throttled-stops", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="keep the result in bench/results/stop.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(options.stops, options.throttled_stops, options.seed, Path(folder)))
    if options.write:
        keep("stop", result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
