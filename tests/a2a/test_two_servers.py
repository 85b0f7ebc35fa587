"""Two servers over one store and one Temporal: whichever a client asks, it is the same agent with the same tasks."""

import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perdure.a2a.extension import URI
from tests.a2a.house import House, Json, number_in, said
from tests.a2a.places import Apart

pytestmark = pytest.mark.slow

FURTHER = 12


class Pair:
    """Two doors of one house, and a Temporal and workers that neither owns."""

    def __init__(self, folder: Path) -> None:
        self.first = House(folder, "keeper:agent")
        self.place = Apart(self.first, {})
        self.place.revive()
        self.second = House(folder, "keeper:agent")
        self.process = self.second.open("--no-worker")

    def revive(self) -> None:
        """Open what an earlier test has killed."""
        self.place.revive()
        if self.process.poll() is not None:
            self.process = self.second.open("--no-worker")

    @property
    def doors(self) -> tuple[House, House]:
        return self.first, self.second

    def close(self) -> None:
        self.second.close()
        self.first.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    try:
        yield pair
    finally:
        pair.close()


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(call) for call in calls]]


def test_the_same_message_to_both_at_once_is_one(pair: Pair) -> None:
    pair.revive()
    key = {"Idempotency-Key": "order-9"}

    def first(door: House) -> Json:
        return door.send("one", headers=key)

    tasks = at_once(*(lambda door=door: first(door) for door in pair.doors * 3))
    (task_id,) = {task["id"] for task in tasks}
    assert len({number_in({"task": task}) for task in tasks}) == 1

    words = [f"word-{place}" for place in range(FURTHER)]
    sends = [(door, word) for word in words for door in pair.doors]
    random.Random(1).shuffle(sends)
    lane: Json = {"metadata": {URI: {"lane": "queue"}}}  # one after the other: each is answered alone

    def further(door: House, word: str) -> Json:
        return door.send(word, wait=False, message_id=word, taskId=task_id, **lane)

    at_once(*(lambda door=door, word=word: further(door, word) for door, word in sends))

    pair.first.until(lambda: len(pair.first.task(task_id)["artifacts"]) == 1 + FURTHER, "all are answered")
    ours, theirs = (door.task(task_id) for door in pair.doors)
    assert ours == theirs
    told = [each["parts"][0]["text"] for each in ours["history"] if each["role"] == "ROLE_USER"]
    assert sorted(told) == sorted(["one", *words]), "P1"
    noted = {(text, key) for text, key in pair.first.world_lines("noted") if key.startswith(task_id)}
    assert sorted(text for text, _ in noted) == sorted(told)
    context = {"contextId": ours["contextId"]}
    assert [door.result("ListTasks", context)["totalSize"] for door in pair.doors] == [1, 1]


def test_a_client_of_one_that_dies_goes_on_at_the_other(pair: Pair) -> None:
    pair.revive()
    seen: dict[int, Json] = {}
    with pair.second.stream("SendStreamingMessage", {"message": said("one")}) as events:
        for number, response in events:
            seen[number] = response
            if number == 3:
                pair.process.kill()
    assert pair.process.wait() == -signal.SIGKILL
    task_id = seen[0]["task"]["id"]
    with pair.first.stream("SubscribeToTask", {"id": task_id}, after=max(seen)) as events:
        for number, response in events:
            if "task" not in response:
                assert number not in seen
                seen[number] = response
            if "TASK_STATE_INPUT_REQUIRED" in str(response):
                break
    assert sorted(seen) == list(range(max(seen) + 1))
    after = pair.first.send("two", message_id="m-2", taskId=task_id)
    assert after["artifacts"][-1]["parts"] == [{"text": "noted two"}]
