"""A message on its way in × everything that can die of it: it is acted on once, and nothing is left that nobody owns.

Server, workers and Temporal are processes apart, started once and armed with the faults of all cases; a case's fault
names the case's message, and kills once. The client does what a client does: it sends the same again, until it is
answered. Judged by the outside's own log and by what a client is told.
"""

import time
from collections.abc import Iterator

import httpx
import pytest

from perdure.app.faults import once_paths
from perdure.core.faults import POINTS, Fault
from tests.a2a.house import WAIT_S, House, Json, number_in, said
from tests.a2a.places import Apart

pytestmark = pytest.mark.slow

KINDS = ("first", "further", "answer")
OF_SERVERS = {
    "send.arrived": KINDS,
    "send.claimed": ("placed",),
    "send.started": ("first",),
    "send.shown": ("first",),
    "send.admitted": ("further", "answer"),
}
OF_WORKERS = {"intake.before": KINDS, "intake.after": KINDS, "run.promoted": ("first", "further")}
CASES = [(point, kind) for point, kinds in (OF_SERVERS | OF_WORKERS).items() for kind in kinds]
QUICK = {
    ("send.claimed", "placed"),
    ("send.admitted", "further"),
    ("send.admitted", "answer"),
    ("intake.before", "further"),
    ("intake.after", "answer"),
}
"""What runs each time; all of them take more than a minute. The first messages' points: `test_served.py`."""

ALONE = ("send.started", "alone")
"""The one that nobody sends again."""


def name_of(point: str, kind: str) -> str:
    return f"{point}-{kind}"


class Sender:
    """A client over one place, and all tasks that it knows of."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.faults = tuple(Fault(point, name_of(point, kind)) for point, kind in [*CASES, ALONE])
        once = house.folder / "killed"
        self._paths = dict(zip(self.faults, once_paths(once, self.faults), strict=True))
        environment = {"PERDURE_FAULT": ",".join(map(str, self.faults)), "PERDURE_FAULT_ONCE": str(once)}
        self.place = Apart(house, environment)
        self.place.revive()
        self.task_ids: set[str] = set()

    def until_answered(self, text: str, name: str, **message: str) -> Json:
        """Send until an answer comes; return the task as it rests."""
        deadline_s = time.monotonic() + WAIT_S
        while True:
            try:
                params = {"message": said(text, message_id=name, **message)}
                answer = self.house.rpc("SendMessage", params, **{"Idempotency-Key": name})
            except httpx.TransportError:
                self.place.revive()
            else:
                if "result" in answer:
                    task: Json = answer["result"]["task"]
                    self.task_ids.add(task["id"])
                    return task
                reason = answer["error"]["data"][0].get("reason")
                assert reason == "SERVICE_UNAVAILABLE", answer
            assert time.monotonic() < deadline_s, self.house.said

    def killed(self, point: str, name: str) -> bool:
        return self._paths[Fault(point, name)].exists()

    def listed(self) -> set[str]:
        return {each["id"] for each in self.house.result("ListTasks", {"pageSize": 100})["tasks"]}

    def noted(self, text: str) -> list[str]:
        return [key for noted, key in self.house.world_lines("noted") if noted == text]


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sender]:
    house = House(tmp_path_factory.mktemp("sends"), "keeper:agent")
    try:
        yield Sender(house)
    finally:
        house.close()


@pytest.mark.parametrize(
    ("point", "kind"),
    [pytest.param(*case, id=name_of(*case), marks=[] if case in QUICK else [pytest.mark.full]) for case in CASES],
)
def test_a_message_that_is_sent_again_is_acted_on_once(sender: Sender, point: str, kind: str) -> None:
    name = name_of(point, kind)
    before, known = [], {}
    if kind == "placed":  # a first message that names a context, which nobody has used
        known = {"contextId": name}
    elif kind != "first":
        before = ["ask"] if kind == "answer" else [f"{name}-before"]
        task = sender.until_answered(before[0], f"{name}-0")
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        known = {"taskId": task["id"]}
    assert not sender.killed(point, name)

    task = sender.until_answered(name, name, **known)

    assert sender.killed(point, name), "nothing died there"
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert known.get("taskId", task["id"]) == task["id"]
    assert known.get("contextId", task["contextId"]) == task["contextId"]
    _is_whole(sender, task["id"], [*before, name])
    again = sender.until_answered(name, name, **known)
    assert again == task, "P1: the same message again changes nothing"
    conflict = sender.house.rpc("SendMessage", {"message": said("other", name, **known)}, **{"Idempotency-Key": name})
    assert conflict["error"]["data"][0]["metadata"]["code"] == "message_conflict"
    assert sender.listed() == sender.task_ids


def test_a_first_message_that_nobody_sends_again_is_worked_on_and_listed(sender: Sender) -> None:
    name = name_of(*ALONE)
    with pytest.raises(httpx.TransportError):
        sender.house.rpc("SendMessage", {"message": said(name, message_id=name)})
    sender.place.running["server"].wait(WAIT_S)
    assert sender.killed(ALONE[0], name)
    sender.place.revive()
    sender.house.until(lambda: len(sender.listed() - sender.task_ids) == 1, "it is listed")
    (task_id,) = sender.listed() - sender.task_ids
    sender.task_ids.add(task_id)
    waits = "TASK_STATE_INPUT_REQUIRED"
    sender.house.until(lambda: sender.house.task(task_id)["status"]["state"] == waits, "it is answered")
    _is_whole(sender, task_id, [name])


def _is_whole(sender: Sender, task_id: str, texts: list[str]) -> None:
    """The outside noted the last of these once, the client finds each in the history once, and no number is missing."""
    assert len(set(sender.noted(texts[-1]))) == 1, "P1"
    task = sender.house.task(task_id)
    history = [each["parts"][0]["text"] for each in task["history"] if each["role"] == "ROLE_USER"]
    assert history == texts
    assert task["artifacts"][-1]["parts"] == [{"text": f"noted {texts[-1]}"}]
    numbers = []
    with sender.house.stream("SubscribeToTask", {"id": task_id}, after=0) as events:
        for number, response in events:
            assert number_in(response) == number
            numbers.append(number)
            if number == number_in({"task": task}):
                break
    assert numbers == list(range(number_in({"task": task}) + 1)), "P6"


def test_every_point_of_sending_is_in_the_table() -> None:
    assert {point for point in POINTS if point.startswith("send.")} == set(OF_SERVERS)
