"""`perdure serve` as real processes: killed whole while a client follows, and no number is missed."""

import json
import signal
import socket

import httpx
import pytest

from tests.a2a.house import House, number_in, said

pytestmark = pytest.mark.slow


def test_a_client_misses_nothing_while_everything_is_killed(house: House) -> None:
    server = house.open()
    house.hold.touch()
    seen: dict[int, dict[str, object]] = {}
    with house.stream("SendStreamingMessage", {"message": said("ship")}) as events:
        for number, response in events:
            seen[number] = response
            if "tool.started" in str(response):
                # Nothing more comes until the tool is let go: this is the middle of it, and of the stream.
                house.until(lambda: house.world_lines("begun"), "the tool has begun")
                house.kill(server)
    task_id = next(iter(seen.values()))["task"]["id"]  # type: ignore[index]
    assert server.poll() is not None
    house.open()
    house.hold.unlink()
    while max(seen) < 1 or "TASK_STATE_COMPLETED" not in str(seen[max(seen)]):
        before = max(seen)
        with house.stream("SubscribeToTask", {"id": task_id}, after=before) as events:
            first, snapshot = next(events)
            assert (first, number_in(snapshot)) == (before, before)
            seen |= dict(events)
        assert max(seen) > before
    assert sorted(seen) == list(range(max(seen) + 1))
    assert all(number_in(response) == number for number, response in seen.items())
    assert house.world_lines("shipped") == [[f"{task_id}/1/0"]]
    task = house.task(task_id)
    assert task["artifacts"][0]["parts"] == [{"text": "answer: tracking 77"}]
    assert number_in({"task": task}) == max(seen)


def test_a_message_that_was_accepted_is_there_at_once_and_runs_when_a_worker_comes(house: House) -> None:
    house.open("--no-worker")
    task = house.send("hello", wait=False)
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert house.task(task["id"])["history"][0]["parts"] == [{"text": "hello"}]
    assert [each["id"] for each in house.result("ListTasks", {})["tasks"]] == [task["id"]]
    body = {"message": said("more", message_id="m-2", taskId=task["id"])}
    refused = house.client.post("/message:send", json=body)  # a follow-up needs a worker to acknowledge it
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert refused.json()["error"]["details"][0]["reason"] == "SERVICE_UNAVAILABLE"
    house.command("worker", house.agent)
    house.until(lambda: house.task(task["id"])["status"]["state"] == "TASK_STATE_COMPLETED", "the task is done")


@pytest.mark.parametrize("point", ["send.started", "send.shown"])
def test_a_server_killed_while_it_accepts_leaves_neither_ghost_nor_orphan(house: House, point: str) -> None:
    server = house.command("serve", house.agent, "--port", str(house.port), "--no-worker", PERDURE_FAULT=point)
    house.until(house.answers, "the server answers")
    key = {"Idempotency-Key": "order-7"}
    body = {"message": said("ship")}
    with pytest.raises(httpx.TransportError):
        house.client.post("/message:send", json=body, headers=key)
    assert server.wait() == -signal.SIGKILL
    house.open("--no-worker")
    first = house.send("ship", wait=False, headers=key)
    assert house.task(first["id"])["history"] == first["history"]
    house.command("worker", house.agent)
    again = house.send("ship", headers=key)
    assert (again["id"], again["status"]["state"]) == (first["id"], "TASK_STATE_COMPLETED")
    assert [each["id"] for each in house.result("ListTasks", {})["tasks"]] == [first["id"]]
    assert house.world_lines("shipped") == [[f"{first['id']}/1/0"]]
    conflict = house.rpc("SendMessage", {"message": said("other")}, **key)
    assert conflict["error"]["code"] == -32602
    assert conflict["error"]["data"][0]["metadata"]["code"] == "message_conflict"


def test_a_client_that_leaves_changes_nothing_and_costs_nothing(house: House) -> None:
    """B23: the task of a blocking send goes on without its client."""
    house.open()
    house.hold.touch()
    with pytest.raises(httpx.ReadTimeout):
        house.client.post("/message:send", json={"message": said("ship")}, timeout=2)
    (task,) = house.result("ListTasks", {})["tasks"]
    assert task["status"]["state"] == "TASK_STATE_WORKING"
    house.hold.unlink()
    house.until(lambda: house.task(task["id"])["status"]["state"] == "TASK_STATE_COMPLETED", "the task is done")


def test_a_client_that_never_reads_holds_nobody_up(house: House) -> None:
    """B24."""
    house.open()
    body = json.dumps({"message": said("work")})
    with socket.create_connection(("127.0.0.1", house.port)) as deaf:
        lines = ["POST /message:stream HTTP/1.1", "Host: 127.0.0.1", "A2A-Version: 1.0", f"Content-Length: {len(body)}"]
        deaf.sendall("\r\n".join([*lines, "", body]).encode())
        assert house.send("work", message_id="m-2")["status"]["state"] == "TASK_STATE_COMPLETED"
        house.until(lambda: len(_completed(house)) == 2, "the deaf client's task is done too")


def _completed(house: House) -> list[object]:
    completed: list[object] = house.result("ListTasks", {"status": "TASK_STATE_COMPLETED"})["tasks"]
    return completed


def test_it_ends_in_order_while_clients_follow(house: House) -> None:
    server = house.open()
    house.hold.touch()
    with house.stream("SendStreamingMessage", {"message": said("ship")}) as events:
        next(events)
        house.until(lambda: house.world_lines("begun"), "the tool has begun")
        server.terminate()
        house.hold.unlink()
        last = max(number for number, _ in events)
    assert server.wait(30) == 128 + signal.SIGTERM, house.said
    assert "Traceback" not in house.said
    house.open()
    task_id = house.result("ListTasks", {})["tasks"][0]["id"]
    with house.stream("SubscribeToTask", {"id": task_id}, after=last - 1) as rest:
        numbers = [number for number, _ in rest]
    assert numbers[:2] == [last - 1, last]
    assert numbers == list(range(last - 1, numbers[-1] + 1))
