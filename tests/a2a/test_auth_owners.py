"""A task that is another's looks like one that does not exist: for every operation, on every binding (A2A 3.3.2, 13.1).

One served agent with a locked door, and two principals. Whatever one of them may ask about the other's task is asked
about a task that there is not, too, and the answers must be the same to the letter.
"""

import json
from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest

from perdure.core import limits
from tests.a2a.bindings import BINDINGS, Binding, Refused
from tests.a2a.house import V1, House, Json
from tests.a2a.specified import Served, sending

pytestmark = pytest.mark.slow

NONE = "t-" + "0" * 32
OPERATIONS: dict[str, Json] = {
    "GetTask": {"id": "TASK"},
    "CancelTask": {"id": "TASK"},
    "SubscribeToTask": {"id": "TASK"},
    "SendMessage": sending("more", taskId="TASK"),
    "SendStreamingMessage": sending("more", taskId="TASK"),
    "CreateTaskPushNotificationConfig": {"taskId": "TASK", "id": "p-1", "url": "https://example.org/hook"},
    "GetTaskPushNotificationConfig": {"taskId": "TASK", "id": "p-1"},
    "ListTaskPushNotificationConfigs": {"taskId": "TASK"},
    "DeleteTaskPushNotificationConfig": {"taskId": "TASK", "id": "p-1"},
}
STREAMS = {"SubscribeToTask", "SendStreamingMessage"}


def key_for(house: House, principal: str) -> str:
    """Make a key as an operator does, while the server runs."""
    before = len((house.folder / "out").read_text().splitlines())
    made = house.command("keys", "add", principal, "--json")
    assert made.wait(60) == 0, house.said
    # The server says its own lines into the same file.
    said = (house.folder / "out").read_text().splitlines()[before:]
    (key,) = (json.loads(line)["key"] for line in said if line.startswith("{"))
    return str(key)


class Two:
    """Two principals before one served agent."""

    def __init__(self, served: Served) -> None:
        self.house = served.house
        self.alice = {"X-API-Key": key_for(served.house, "alice")}
        self.bob = {"X-API-Key": key_for(served.house, "bob")}
        self.bindings: dict[str, Binding] = {name: kind(served.card) for name, kind in BINDINGS.items()}
        self.task = self.bindings["jsonrpc"].call("SendMessage", sending("ask"), **self.alice)["task"]

    def ask(self, name: str, method: str, params: Json, headers: Json) -> Json:
        """Ask, and return the answer or the first event of a stream."""
        binding = self.bindings[name]
        if method not in STREAMS:
            return binding.call(method, params, **headers)
        events = binding.stream(method, params, **headers)
        first = next(events)
        events.close()  # type: ignore[attr-defined]
        return first


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    house = House(tmp_path_factory.mktemp("locked"))
    try:
        two = Two(_Locked(house))
        yield two
        for binding in two.bindings.values():
            binding.close()
    finally:
        house.close()


class _Locked(Served):
    def __init__(self, house: House) -> None:
        self.house = house
        house.open("--grpc-port", "0", PERDURE_AUTH="keys")


def _about(params: Json, task_id: str) -> Json:
    filled: Json = json.loads(json.dumps(params).replace("TASK", task_id))
    return filled


def _refusal(two: Two, name: str, method: str, task_id: str) -> tuple[Any, ...]:
    """Return all that is told, but for the task's id."""
    with pytest.raises(Refused) as refused:
        two.ask(name, method, _about(OPERATIONS[method], task_id), two.bob)
    cause: Any = refused.value.__cause__
    said = cause.details() if isinstance(cause, grpc.RpcError) else ""
    return (refused.value.reason, refused.value.code, refused.value.fields, said.replace(task_id, "TASK"))


@pytest.mark.parametrize("name", sorted(BINDINGS))
@pytest.mark.parametrize("method", OPERATIONS)
def test_anothers_task_is_as_one_that_is_not_there(two: Two, name: str, method: str) -> None:
    about_alices, about_none = (_refusal(two, name, method, each) for each in (two.task["id"], NONE))
    assert about_alices == about_none
    assert about_alices[0] == "TASK_NOT_FOUND"


@pytest.mark.parametrize("method", OPERATIONS)
def test_it_is_so_to_the_letter(two: Two, method: str) -> None:
    """JSON-RPC's whole answer, whose text and details are those of the other bindings."""

    def answer(task_id: str) -> str:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": _about(OPERATIONS[method], task_id)}
        return httpx.post(two.house.url, json=body, headers={**V1, **two.bob}).text.replace(task_id, "TASK")

    assert answer(two.task["id"]) == answer(NONE)


@pytest.mark.parametrize("name", sorted(BINDINGS))
def test_its_owner_has_it_all_the_while(two: Two, name: str) -> None:
    assert two.ask(name, "GetTask", {"id": two.task["id"]}, two.alice)["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "task" in two.ask(name, "SubscribeToTask", {"id": two.task["id"]}, two.alice)
    listed = two.ask(name, "ListTasks", {}, two.alice)
    assert two.task["id"] in [each["id"] for each in listed["tasks"]]


@pytest.mark.parametrize("name", sorted(BINDINGS))
@pytest.mark.parametrize("more", [{}, {"contextId": "CONTEXT"}, {"status": "TASK_STATE_INPUT_REQUIRED"}], ids=str)
def test_no_list_has_it(two: Two, name: str, more: Json) -> None:
    params = json.loads(json.dumps(more).replace("CONTEXT", two.task["contextId"]))
    listed = two.ask(name, "ListTasks", params, two.bob)
    assert two.task["id"] not in [each["id"] for each in listed.get("tasks", [])]
    assert listed.get("totalSize", 0) == len(listed.get("tasks", []))


def test_the_same_idempotency_key_of_another_is_another_task(two: Two) -> None:
    sent = {"Idempotency-Key": "order-7"}
    mine, theirs = (
        two.ask("jsonrpc", "SendMessage", sending("hello"), {**who, **sent})["task"] for who in (two.alice, two.bob)
    )
    assert mine["id"] != theirs["id"]
    assert mine["contextId"] != theirs["contextId"]


@pytest.mark.parametrize("name", sorted(BINDINGS))
def test_whoever_shows_nothing_or_nonsense_is_refused_on_every_binding(two: Two, name: str) -> None:
    for headers in ({}, {"X-API-Key": "perdure_x"}, {"Authorization": "Bearer a.b.c"}):
        for method in (*OPERATIONS, "ListTasks", "GetExtendedAgentCard"):
            params = _about(OPERATIONS.get(method, {}), two.task["id"])
            answer = _shown(two, name, method, params, headers)
            assert answer in {401, "UNAUTHENTICATED"}, (method, headers)


def _shown(two: Two, name: str, method: str, params: Json, headers: Json) -> object:
    if name == "grpc":
        with pytest.raises(Refused) as refused:
            two.ask(name, method, params, headers)
        return refused.value.code
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    path, sent = ("/", body) if name == "jsonrpc" else (f"/tasks/{params.get('id', 'x')}:cancel", params)
    return httpx.post(two.house.url + path, json=sent, headers={**V1, **headers}).status_code


def test_no_secret_is_in_what_the_server_says(two: Two) -> None:
    """Refused callers are told in its log, and what they showed is not."""
    refused = httpx.get(two.house.url + "/tasks", headers={"X-API-Key": two.alice["X-API-Key"][:-1]})
    assert refused.status_code == 401
    assert "a caller at 127.0.0.1 was refused" in (two.house.folder / "err").read_text()
    secret = two.alice["X-API-Key"].split("_")[2]
    assert secret[:-1] not in (two.house.folder / "err").read_text() + refused.text


def test_a_body_that_is_too_large_is_told_over_a_real_connection(two: Two) -> None:
    """The answer is read though the sender is still sending: what still comes is taken and dropped."""
    large = b'{"message": "' + b"x" * limits.REQUEST_BYTES_MAX + b'"}'

    def in_pieces() -> Iterator[bytes]:
        for start in range(0, len(large), 100_000):
            yield large[start : start + 100_000]

    for content in (large, in_pieces()):
        answer = httpx.post(two.house.url + "/message:send", content=content, headers={**V1, **two.alice}, timeout=30)
        assert answer.status_code == 413
        assert answer.json()["error"]["details"][0]["reason"] == "REQUEST_TOO_LARGE"
