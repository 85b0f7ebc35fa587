"""The front door: how late a client hears of an event, how many messages are taken in, how much memory that takes.

N tasks at once, each followed by one streaming client; every task makes TURNS turns, in each of which the model takes
PAUSE seconds, and their starts are spread over one such pause: so events come evenly, and N and PAUSE say how many
there are in a second. An event's time runs from the moment at which it is committed (and all before it are) to the
moment at which the client has its line. Then messages are given by SENDERS clients, one after another each, as fast as
they are accepted; they return at once. The memory is that of the serving process after both.

Ours is `perdure serve` as it comes: embedded Temporal, store in a file, a supervised worker. Beside it, in the same
run, the same agent under the SDK's default server: in memory, in one process, nothing kept. There an event's time runs
from its being put into the queue. Both have the same client, on the same machine, one after the other.

    python -m bench.front [--tasks 100] [--turns 10] [--pause 5] [--sends 300] [--senders 10] [--write]

The last line is one JSON object: `event_p50_ms`, `event_p95_ms`, `events_per_s` (while they were measured),
`sends_per_s`, `rss_mb`, and the same with `sdk_` before.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx

from bench import front_script
from bench.machine import keep
from perdure.a2a.extension import URI

ROOT = Path(__file__).parent.parent
READY_WITHIN_S = 90.0


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(command: Sequence[str], place: Path, turns: int, pause_s: float) -> Iterator[int]:
    """Run a server until the context is left; yields its process id."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("PERDURE", "TEMPORAL"))}
    mine = {
        "PERDURE_HOME": str(place / "home"),
        "PERDURE_BENCH_PLACE": str(place),
        "PERDURE_BENCH_TURNS": str(turns),
        "PERDURE_BENCH_PAUSE_S": str(pause_s),
        "PERDURE_REQUESTS_PER_S": "100000",  # what one caller may ask for is not what is measured
    }
    with (place / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, env={**given, **mine}, stdout=said, stderr=said
        )
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def until_ready(client: httpx.AsyncClient, place: Path) -> None:
    deadline_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(httpx.TransportError):
            if (await client.get("/.well-known/agent-card.json")).status_code == 200:
                return
        await asyncio.sleep(0.1)
    raise SystemExit(f"the server did not come up:\n{(place / 'said').read_text()}")


def body(method: str, text: str, number: str, *, wait: bool = True) -> dict[str, Any]:
    message = {"messageId": f"m-{number}", "role": "ROLE_USER", "parts": [{"text": text}]}
    params: dict[str, Any] = {"message": message}
    if not wait:
        params["configuration"] = {"returnImmediately": True}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def follow(client: httpx.AsyncClient, text: str, number: str, after_s: float = 0.0) -> dict[tuple[str, int], int]:
    """Give one task, after a while, and follow it to its end; return when each of its events came."""
    await asyncio.sleep(after_s)
    came: dict[tuple[str, int], int] = {}
    state = ""
    async with client.stream("POST", "/", json=body("SendStreamingMessage", text, number)) as response:
        async for line in response.aiter_lines():
            at_ns = time.monotonic_ns()
            if not line.startswith("data: "):
                continue
            (content,) = json.loads(line.removeprefix("data: "))["result"].values()
            told = content.get("metadata", {}).get(URI, {})
            if "generation" in told and "taskId" in content:
                came[content["taskId"], int(told["generation"])] = at_ns
            state = content.get("status", {}).get("state", state)
    if state != "TASK_STATE_COMPLETED":
        raise SystemExit(f"a task did not end as it should: {state}")
    return came


async def give(client: httpx.AsyncClient, sends: int, senders: int) -> float:
    """Give that many messages; return how many were taken in in a second."""
    left = iter(range(sends))

    async def give_some() -> None:
        for number in left:
            sent = body("SendMessage", front_script.ANSWER_ONLY, f"s-{number}", wait=False)
            answer = (await client.post("/", json=sent)).json()
            if "result" not in answer:
                raise SystemExit(f"a message was refused: {answer}")

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(senders):
            group.create_task(give_some())
    return sends / (time.monotonic() - began)


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"/proc/{pid}/status has no VmRSS; this runs on Linux")


async def measured(options: argparse.Namespace, pid: int, url: str, place: Path) -> dict[str, float]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, headers={"A2A-Version": "1.0"}, timeout=120, limits=limits) as client:
        await until_ready(client, place)
        await follow(client, front_script.ANSWER_ONLY, "warm-up")
        began = time.monotonic()
        apart_s = options.pause / options.tasks
        followed = [follow(client, "work", str(number), number * apart_s) for number in range(options.tasks)]
        came = {key: at_ns for each in await asyncio.gather(*followed) for key, at_ns in each.items()}
        took_s = time.monotonic() - began
        readable = front_script.readable(place)
        late_ms = [(at_ns - readable[key]) / 1e6 for key, at_ns in came.items()]
        sends_per_s = await give(client, options.sends, options.senders)
    return {
        "event_p50_ms": round(statistics.median(late_ms), 1),
        "event_p95_ms": round(statistics.quantiles(late_ms, n=20)[-1], 1),
        "events_per_s": round(len(came) / took_s, 1),
        "sends_per_s": round(sends_per_s, 1),
        "rss_mb": round(rss_mb(pid), 1),
    }


def one_server(options: argparse.Namespace, command: Sequence[str], port: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with serving(command, place, options.turns, options.pause) as pid:
            found = asyncio.run(measured(options, pid, f"http://127.0.0.1:{port}", place))
    print(f"{command[0]}: {json.dumps(found)}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--pause", type=float, default=5.0, help="seconds that the model takes in each turn")
    parser.add_argument("--sends", type=int, default=300)
    parser.add_argument("--senders", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="keep the result in bench/results/front.json")
    options = parser.parse_args()
    port, sdk_port = free_port(), free_port()
    ours = one_server(options, ("perdure.cli.main", "serve", "bench.front_agent:agent", "--port", str(port)), port)
    theirs = one_server(options, ("bench.front_sdk", str(sdk_port)), sdk_port)
    result: dict[str, Any] = {**ours, **{f"sdk_{name}": value for name, value in theirs.items()}}
    for name in ("tasks", "turns", "pause", "sends", "senders"):
        result[name] = getattr(options, name)
    if options.write:
        keep("front", result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
