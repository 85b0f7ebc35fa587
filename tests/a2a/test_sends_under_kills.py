"""One client sends message after message while server, workers and Temporal are killed: none is lost, none is doubled.

Each message is sent until it is acknowledged, and then the next. What the outside noted and what the history says are
exactly these messages, in this order (P1).
"""

import os
import random
import threading
import time

import httpx
import pytest

from perdure.a2a.extension import URI
from tests.a2a.house import WAIT_S, House, Json, said
from tests.a2a.places import KINDS, Apart

pytestmark = pytest.mark.full

SEEDS = 10 if os.environ.get("PERDURE_TEST_FULL") == "1" else 1
MESSAGES = 12
KILLS = 6
PAUSE_S = 1.5
"""Between two kills: about what a message takes."""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_p1_what_was_acknowledged_is_acted_on_once_and_in_order(house: House, seed: int) -> None:
    house.agent = "keeper:agent"
    place = Apart(house, {})
    place.revive()
    task_id = _until_acknowledged(place, "word-0", {})["id"]
    killer = _Killer(place, random.Random(seed))
    words = [f"word-{number}" for number in range(1, MESSAGES)]
    killer.start()
    try:
        for word in words:
            _until_acknowledged(place, word, {"taskId": task_id, "metadata": {URI: {"lane": "queue"}}})
        while killer.is_alive():
            _until_acknowledged(place, words[0], {"taskId": task_id, "metadata": {URI: {"lane": "queue"}}})
    finally:
        killer.over.set()
        killer.join()
    assert len(killer.killed) == KILLS, f"seed {seed}"
    place.revive()
    house.until(lambda: len(_artifacts(house, task_id)) == MESSAGES, f"all are answered; seed {seed}, {killer.killed}")
    everything = ["word-0", *words]
    history = [each for each in house.task(task_id)["history"] if each["role"] == "ROLE_USER"]
    assert [each["parts"][0]["text"] for each in history] == everything, f"seed {seed}, {killer.killed}"
    assert _artifacts(house, task_id) == [f"noted {word}" for word in everything]
    noted = list(dict.fromkeys((text, key) for text, key in house.world_lines("noted")))
    assert [text for text, _ in noted] == everything, f"seed {seed}, {killer.killed}"
    assert house.result("ListTasks", {})["totalSize"] == 1


def _artifacts(house: House, task_id: str) -> list[str]:
    try:
        return [each["parts"][0]["text"] for each in house.task(task_id).get("artifacts", [])]
    except httpx.TransportError:
        return []


def _until_acknowledged(place: Apart, word: str, fields: Json) -> Json:
    deadline_s = time.monotonic() + WAIT_S
    params = {
        "message": said(word, message_id=word, **fields),
        "configuration": {"returnImmediately": True},
    }
    while True:
        try:
            answer = place.house.rpc("SendMessage", params, **{"Idempotency-Key": word})
        except httpx.TransportError:
            place.revive()
        else:
            if "result" in answer:
                task: Json = answer["result"]["task"]
                return task
            assert answer["error"]["data"][0].get("reason") == "SERVICE_UNAVAILABLE", answer
            place.revive()  # workers that were started while Temporal was away have ended
        assert time.monotonic() < deadline_s, place.house.said


class _Killer(threading.Thread):
    """Kills something every PAUSE_S, KILLS times, until it is `over`."""

    def __init__(self, place: Apart, dice: random.Random) -> None:
        super().__init__()
        self._place = place
        self._dice = dice
        self.killed: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        while len(self.killed) < KILLS and not self.over.wait(PAUSE_S):
            kind = self._dice.choice(KINDS)
            victims = self._place.victims(kind)
            if victims:
                self.killed.append(kind)
                self._place.kill(self._dice.choice(victims))
