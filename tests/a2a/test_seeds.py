"""A client follows a task while server, workers and Temporal are killed at random; it sees exactly 1 to n."""

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.a2a.house import House, Json, number_in, said

SEEDS = 50 if os.environ.get("PERDURE_TEST_FULL") == "1" else 2
KILLS = 3
WITHIN_S = 120.0

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_a_client_saw_is_exactly_one_to_n(house: House, seed: int) -> None:
    dice = random.Random(seed)
    killer = _Killer(house, dice)
    seen: dict[int, Json] = {}
    deadline_s = time.monotonic() + WITHIN_S
    while not (seen and "TASK_STATE_COMPLETED" in str(seen[max(seen)])):
        assert time.monotonic() < deadline_s, f"seed {seed}: {sorted(seen)}\n{house.said}"
        killer.open_if_dead()
        for number, response in _following(house, seen):
            # Seen twice it is the same, but for the task itself, which is as of that number each time.
            assert seen.get(number, response) == response or "task" in response, f"seed {seed}: event {number}"
            if number not in seen or "task" not in response:
                seen[number] = response
            killer.may_kill()
    assert sorted(seen) == list(range(max(seen) + 1)), f"seed {seed}, {killer.killed}"
    assert all(number_in(response) == number for number, response in seen.items())
    assert len(killer.killed) == KILLS, f"seed {seed}: the task was done after {killer.killed}"
    keys = {key for (key, *_) in house.world_lines("shipped")}
    assert len(keys) == 6


def _following(house: House, seen: dict[int, Json]) -> Iterator[tuple[int, Json]]:
    """Yield what a client sees of its task until the connection breaks; it says what it saw last."""
    key = {"Idempotency-Key": "work"}
    try:
        if not seen:
            with house.stream("SendStreamingMessage", {"message": said("work")}, headers=key) as events:
                yield from events
        else:
            task_id = seen[0]["task"]["id"]
            with house.stream("SubscribeToTask", {"id": task_id}, after=max(seen)) as events:
                yield from events
    except httpx.TransportError:
        return


class _Killer:
    """Kills KILLS times, each after some events more, the server, a worker or Temporal."""

    def __init__(self, house: House, dice: random.Random) -> None:
        self._house = house
        self._dice = dice
        self._server = house.open("--json", CLERK_PAUSE_S="0.3")
        self._in_events = dice.randint(2, 8)
        self.killed: list[str] = []

    def open_if_dead(self) -> None:
        if self._server.poll() is not None:
            self._server = self._house.open("--json", CLERK_PAUSE_S="0.3")

    def may_kill(self) -> None:
        self._in_events -= 1
        if self._in_events > 0 or len(self.killed) == KILLS or self._server.poll() is not None:
            return
        what = self._dice.choice(["server", "worker", "temporal"])
        victims = [self._server.pid] if what == "server" else self._pids(what)
        if not victims:
            return  # it was killed just now and is being started again: at the next event
        self._in_events = self._dice.randint(3, 10)
        self.killed.append(what)
        os.kill(self._dice.choice(victims), signal.SIGKILL)
        if what == "server":
            self._server.wait()

    def _pids(self, what: str) -> list[int]:
        """Return the processes of that kind under the server."""
        under = dict(_processes_under(self._server.pid))
        if what == "temporal":
            return sorted(pid for pid, command in under.items() if "start-dev" in command)
        ready = re.findall(r'"event": "worker.ready", "part": "calls", "pid": (\d+)', self._house.said)
        return sorted({int(pid) for pid in ready} & under.keys())


def _processes_under(ancestor: int) -> Iterator[tuple[int, str]]:
    """Yield the processes below one, with their command lines."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if ancestor in _ancestors(int(folder.name)):
                yield int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rsplit(")", 1)[1].split()[1])
        yield pid
