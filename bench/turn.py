"""What a turn costs: N turns of one model call and one tool call, against the floor of 2 N no-op activities.

Both run on the same embedded server (its file in WAL mode, synced), with the same client and the same worker
settings, in turns: floor, ours, floor, ours, …, floor. Each of our runs is divided by the mean of the floors on both
sides of it, because the speed of a shared machine drifts. The model is scripted and answers without delay; the tool
returns a
constant. The floor is a workflow that does nothing but execute activities one after the other.

    python -m bench.turn [--turns 200] [--rounds 5] [--write]

The last line is one JSON object: `turn_ms`, `floor_ms` (medians over the rounds), `ratio` (median of the rounds'
ratios), `history_bytes_per_turn_first` (turns 1 to 10), `history_bytes_per_turn_last` (the last 11 turns).
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import defaultdict
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker

from bench.floor import Floor, nothing
from bench.machine import keep
from perdure import Agent, Budget, Settings, open_app, tool
from perdure.core import limits
from perdure.temporal.connection import temporal_client
from perdure.temporal.sandbox import workflow_runner
from perdure.testing import call, say, scripted

FLOOR_QUEUE = "floor"


@tool(effect="read")
async def look(number: int) -> str:
    """Look something up."""
    return f"found {number}"


def agent(turns: int) -> Agent:
    # The last turn is the one that answers, so N turns are N - 1 calls of both and one of the model alone.
    steps = [call("look", {"number": number}) for number in range(turns)]
    return Agent("bench", model=scripted(*steps, say("done")), tools=[look], budget=Budget(turns_max=turns + 1))


async def floor_ms(client: Client, turns: int, name: str) -> float:
    began = time.perf_counter()
    await client.execute_workflow(
        Floor.run, 2 * turns, id=name, task_queue=FLOOR_QUEUE, task_timeout=timedelta(seconds=2)
    )
    return (time.perf_counter() - began) * 1000 / turns


async def bytes_per_turn(client: Client, task_id: str) -> dict[int, list[int]]:
    """Return, per turn, the sizes of the history events that it added, over all runs of the task."""
    sizes: dict[int, list[int]] = defaultdict(list)
    runs = [run.run_id async for run in client.list_workflows(f"WorkflowId = '{task_id}'")]
    turn = 0
    for run_id in reversed(runs):
        history = await client.get_workflow_handle(task_id, run_id=run_id).fetch_history()
        for event in history.events:
            attributes = event.activity_task_scheduled_event_attributes
            if attributes.activity_type.name == "invoke_llm":
                turn = int(json.loads(attributes.input.payloads[0].data)["command"]["turn"])
            sizes[turn].append(event.ByteSize())
    return sizes


def summary(sizes: dict[int, list[int]], turns: range) -> tuple[float, float]:
    return (
        statistics.fmean(sum(sizes[turn]) for turn in turns),
        statistics.fmean(len(sizes[turn]) for turn in turns),
    )


async def measure(turns: int, rounds: int, home: Path) -> dict[str, object]:
    settings = Settings.from_environment({}, home=home)
    ours: list[float] = []
    floors: list[float] = []
    subject = agent(turns)
    async with open_app(subject, settings=settings) as app, temporal_client(settings.temporal) as client:
        floor_worker = Worker(
            client,
            task_queue=FLOOR_QUEUE,
            workflows=[Floor],
            activities=[nothing],
            workflow_runner=workflow_runner(),
            max_concurrent_workflow_tasks=limits.WORKFLOW_TASKS_AT_ONCE_MAX,
            max_concurrent_activities=limits.CALLS_AT_ONCE_MAX,
            max_cached_workflows=limits.CACHED_WORKFLOWS_MAX,
        )
        async with floor_worker:
            await floor_ms(client, 10, "warm-up")
            floors.append(await floor_ms(client, turns, "floor"))
            for number in range(rounds):
                began = time.perf_counter()
                task = await app.send("go", task_id=f"turns-{number}")
                await client.get_workflow_handle(task.id).result()
                ours.append((time.perf_counter() - began) * 1000 / turns)
                if await task.result() != "done":
                    raise SystemExit("the task did not end as it should")
                floors.append(await floor_ms(client, turns, f"floor-{number}"))
                print(f"round {number + 1}: ours {ours[-1]:.1f} ms, floor {floors[-1]:.1f} ms a turn", flush=True)
            sizes = await bytes_per_turn(client, "turns-0")
    ratios = [2 * ours[at] / (floors[at] + floors[at + 1]) for at in range(rounds)]
    first, first_events = summary(sizes, range(1, 11))
    last, last_events = summary(sizes, range(turns - 10, turns + 1))
    return {
        "turn_ms": round(statistics.median(ours), 1),
        "floor_ms": round(statistics.median(floors), 1),
        "ratio": round(statistics.median(ratios), 3),
        "history_bytes_per_turn_first": round(first),
        "history_bytes_per_turn_last": round(last),
        "history_events_per_turn_first": round(first_events, 1),
        "history_events_per_turn_last": round(last_events, 1),
        "turns": turns,
        "rounds": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="keep the result in bench/results/turn.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(measure(options.turns, options.rounds, Path(folder)))
    if options.write:
        keep("turn", result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
