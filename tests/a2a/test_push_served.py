"""Delivery by real servers that are killed, stopped and doubled; what arrived is judged by the receiver's own log."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.a2a.house import House, said
from tests.a2a.receiver import Receiver

pytestmark = pytest.mark.slow

OPEN = {"PERDURE_PUSH_NETWORKS": "127.0.0.0/8"}


def send_to(house: House, url: str, text: str = "work", message_id: str = "m-1") -> str:
    """Send a message that brings a configuration; return its task."""
    config = {"url": url, "id": "mine", "token": "t-1"}
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": config}
    task = house.result("SendMessage", {"message": said(text, message_id), "configuration": configuration})["task"]
    return str(task["id"])


def rested(house: House, task_id: str) -> int:
    """Wait until the task has ended or waits; return its last event's number."""
    states = {"TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"}
    house.until(lambda: house.task(task_id)["status"]["state"] in states, "the task rests")
    (fields,) = house.task(task_id)["metadata"].values()
    return int(fields["generation"])


def until_delivered(house: House, receiver: Receiver, path: str, last: int) -> None:
    house.until(lambda: receiver.numbers(path)[-1:] == [last], "everything is delivered")


def test_p6_killed_between_taken_and_cursor_the_same_is_sent_again_and_nothing_is_missed(
    house: House, receiver: Receiver
) -> None:
    server = house.open(**OPEN, PERDURE_FAULT="push.taken@3")
    task_id = send_to(house, receiver.url("/ok"))
    house.until(lambda: server.poll() is not None, "the server is killed")
    assert server.wait() == -signal.SIGKILL
    assert receiver.numbers("/ok") == [1, 2, 3]
    house.open(**OPEN)
    last = rested(house, task_id)
    until_delivered(house, receiver, "/ok", last)
    assert receiver.numbers("/ok") == [1, 2, 3, *range(3, last + 1)]
    third, again = receiver.got("/ok")[2:4]
    assert third.body == again.body
    assert third.headers["Idempotency-Key"] == again.headers["Idempotency-Key"]
    assert again.headers["X-A2A-Notification-Token"] == "t-1"


def test_a_configuration_outlives_a_server_that_is_killed_with_its_task_waiting(
    house: House, receiver: Receiver
) -> None:
    """The receiver is down when the task ends, and everything was killed meanwhile."""
    server = house.open(**OPEN)
    task_id = send_to(house, receiver.url("/fail/2"), "hello")
    last = rested(house, task_id)
    house.until(lambda: receiver.got("/fail/2"), "the first try has failed")
    house.kill(server)
    house.open(**OPEN)
    until_delivered(house, receiver, "/fail/2", last)
    taken = [each.number for each in receiver.got("/fail/2") if each.status == 204]
    assert sorted(set(taken)) == list(range(1, last + 1))
    assert taken == sorted(taken)


class Pair:
    """Two servers over one store and one Temporal, and a worker. `open` starts them."""

    def __init__(self, folder: Path, address: str) -> None:
        self.store = {"TEMPORAL_ADDRESS": address, "PERDURE_STORE_URL": f"sqlite:///{folder}/shared.db", **OPEN}
        self.first, self.second = House(folder, "clerk:chatty"), House(folder, "clerk:chatty")
        self.servers: list[subprocess.Popen[bytes]] = []

    def open(self) -> None:
        self.first.command("worker", self.first.agent, **self.store)
        self.servers = [house.open("--no-worker", **self.store) for house in (self.first, self.second)]

    def close(self) -> None:
        for server in self.servers:
            server.send_signal(signal.SIGCONT)
        self.second.close()
        self.first.close()


@pytest.fixture
def pair(tmp_path: Path, server: tuple[str, Client]) -> Iterator[Pair]:
    pair = Pair(tmp_path, server[0])
    try:
        pair.open()
        yield pair
    finally:
        pair.close()


def test_a_server_that_was_stopped_has_lost_its_turn_and_sends_nothing_more(pair: Pair, receiver: Receiver) -> None:
    """Stopped in the middle of a delivery; the other one goes on from the same event, and the first one stays quiet."""
    receiver.held.touch()
    task_id = send_to(pair.first, receiver.url("/held"))
    pair.first.until(lambda: receiver.numbers("/held") == [1], "the first notification is on its way")
    stopped = pair.servers[0]
    os.kill(stopped.pid, signal.SIGSTOP)
    pair.second.until(lambda: receiver.numbers("/held") == [1, 1], "the other one has taken over")
    os.kill(stopped.pid, signal.SIGCONT)
    receiver.held.unlink()
    last = rested(pair.second, task_id)
    until_delivered(pair.second, receiver, "/held", last)
    # The one that was stopped is there again: what it is asked for now is delivered too, by whose turn it is.
    other = send_to(pair.first, receiver.url("/ok"), "hello", "m-2")
    last_other = rested(pair.first, other)
    until_delivered(pair.first, receiver, "/ok", last_other)
    assert receiver.numbers("/held") == [1, *range(1, last + 1)]
    assert receiver.numbers("/ok") == list(range(1, last_other + 1))


def test_two_servers_do_not_both_deliver(pair: Pair, receiver: Receiver) -> None:
    """Configurations that came to either of them: each event once."""
    houses = [pair.first, pair.second]
    sent = [
        (f"/ok/{n}", houses[n % 2], send_to(houses[n % 2], receiver.url(f"/ok/{n}"), "hello", f"m-{n}"))
        for n in range(6)
    ]
    for path, house, task_id in sent:
        last = rested(house, task_id)
        until_delivered(house, receiver, path, last)
        assert receiver.numbers(path) == list(range(1, last + 1))
