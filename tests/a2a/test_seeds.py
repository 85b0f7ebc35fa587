"""A client follows a task while server, workers and Temporal are each killed and come back; it sees exactly 1 to n.

Where in the stream each of the three dies, and in which order, is the seed's; so is which of the workers. Every other
seed has the three as processes apart. What the client saw is compared with what a client that comes afterwards is told
of the same events: the same numbers, the same words.
"""

import contextlib
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.a2a.house import House, Json, number_in, said
from tests.a2a.places import KINDS, Apart, Place, Together

SEEDS = 50 if os.environ.get("PERDURE_TEST_FULL") == "1" else 2
REPORT_DIR = os.environ.get("PERDURE_TEST_REPORT_DIR", "")
EVENTS = 24
"""The kills are spread over so many events; undisturbed the task has more."""

STEPS = 6
WITHIN_S = 120.0

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_a_client_saw_is_exactly_one_to_n(house: House, seed: int) -> None:
    began_s = time.monotonic()
    place: Place = (Apart if seed % 2 else Together)(house, {"CLERK_PAUSE_S": "0.3"})
    killer = _Killer(place, random.Random(seed))
    seen: dict[int, Json] = {}
    connections = 0
    while not (seen and "TASK_STATE_COMPLETED" in str(seen[max(seen)])):
        assert time.monotonic() - began_s < WITHIN_S, f"seed {seed}, {killer.killed}: {sorted(seen)}\n{house.said}"
        place.revive()
        connections += 1
        last = max(seen, default=None)
        with contextlib.suppress(httpx.TransportError):  # it died again before it answered
            for number, response in _following(house, seen):
                assert number_in(response) == number, f"seed {seed}"
                assert last is None or number == (last if "task" in response else last + 1), (
                    f"seed {seed}: after {last}"
                )
                last = number
                if "task" not in response or not seen:
                    seen[number] = response
                killer.may_kill(number)
    assert sorted(seen) == list(range(max(seen) + 1)), f"seed {seed}, {killer.killed}"
    assert sorted(kind for kind, _ in killer.killed) == sorted(KINDS), f"seed {seed}: it was done too soon"
    place.revive()
    task_id = seen[0]["task"]["id"]
    with house.stream("SubscribeToTask", {"id": task_id}, after=0) as events:
        afterwards = dict(events)
    assert {n: each for n, each in afterwards.items() if n} == {n: each for n, each in seen.items() if n}
    # P3: however often a step was begun, it was begun under one key.
    assert {key for (key, *_) in house.world_lines("shipped")} == {
        f"{task_id}/{turn}/0" for turn in range(1, STEPS + 1)
    }
    _report(seed, place, killer, connections, max(seen), time.monotonic() - began_s)


def _following(house: House, seen: dict[int, Json]) -> Iterator[tuple[int, Json]]:
    """Yield what a client sees of its task until the connection breaks; it says what it saw last."""
    if not seen:
        key = {"Idempotency-Key": "work"}
        with house.stream("SendStreamingMessage", {"message": said("work")}, headers=key) as events:
            yield from events
    else:
        with house.stream("SubscribeToTask", {"id": seen[0]["task"]["id"]}, after=max(seen)) as events:
            yield from events


class _Killer:
    """Kills one of each kind, each when the client has seen a certain event."""

    def __init__(self, place: Place, dice: random.Random) -> None:
        self._place = place
        self._dice = dice
        kinds = dice.sample(KINDS, len(KINDS))
        self._planned = list(zip(sorted(dice.sample(range(1, EVENTS), len(KINDS))), kinds, strict=True))
        self.killed: list[tuple[str, int]] = []

    def may_kill(self, number: int) -> None:
        if not self._planned or number < self._planned[0][0]:
            return
        _, kind = self._planned[0]
        victims = self._place.victims(kind)
        if victims:  # else it died just now and is being started again: at the next event
            self._planned.pop(0)
            self.killed.append((kind, number))
            self._place.kill(self._dice.choice(victims))


def _report(seed: int, place: Place, killer: _Killer, connections: int, events: int, took_s: float) -> None:
    if REPORT_DIR:
        row = {
            "seed": seed,
            "place": type(place).__name__.lower(),
            "killed": [f"{kind} after {number}" for kind, number in killer.killed],
            "connections": connections,
            "events": events,
            "seconds": round(took_s, 1),
        }
        with (Path(REPORT_DIR) / "streams.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
