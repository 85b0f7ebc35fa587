"""The commands against the SDK's own default server: what any A2A server can do, they can ask for."""

import json
import signal

import pytest

from tests.cli.client.visitor import Plain, Visitor, numbers

pytestmark = pytest.mark.slow

WAYS = [
    pytest.param({}, id="JSON-RPC"),
    pytest.param({"PLAIN_BINDING": "HTTP+JSON"}, id="HTTP+JSON"),
    pytest.param({"PLAIN_VERSION": "0.3"}, id="0.3"),
    pytest.param({"PLAIN_STREAMING": "no"}, id="without streaming"),
]


@pytest.mark.parametrize("way", WAYS)
def test_every_command_works_as_far_as_the_server_does(plain: Plain, guest: Visitor, way: dict[str, str]) -> None:
    plain.open(**way)
    done = guest.run("send", "hello", "--json")
    assert (done.code, done.outcome["answer"], done.err) == (0, "you said: hello", "")
    assert set(numbers(done)) == {None}, "this server does not number"
    assert guest.run("send", "hello", "--wait").out == "you said: hello\n"
    failed = guest.run("send", "fail")
    assert failed.code == 1
    assert "is failed without an answer (failed): no such order" in failed.err
    only = guest.run("send", "message", "--json")
    assert (only.code, only.outcome["answer"], only.outcome["task_id"]) == (0, "only a message", "")
    asks = guest.run("send", "ask")
    task_id = asks.err.split()[1]
    assert asks.code == 1
    assert f"answer with: perdure answer {guest.url} {task_id} TEXT" in asks.err
    assert "Refund or replacement?" in asks.err
    watched = guest.run("watch", task_id, "--json")
    assert (watched.code, watched.outcome["outcome"]) == (1, "waiting")
    answered = guest.run("answer", task_id, "refund")
    assert answered.code == 0
    assert answered.out.endswith("\n\nyou said: refund\n")
    assert guest.run("watch", task_id).out.endswith("you said: refund\n"), "also when it is over"
    again = guest.run("answer", task_id, "refund")
    assert (again.code, again.out) == (2, "")
    assert "is completed and asks nothing" in again.err
    assert guest.run("cancel", task_id).code == 2
    listed = guest.run("tasks", "--json")
    if way.get("PLAIN_VERSION") == "0.3":
        assert listed.code == 2
        assert "speaks A2A 0.3, which has no list of tasks" in listed.err
    else:
        assert task_id in {json.loads(line)["task_id"] for line in listed.out.splitlines()}


def test_a_task_is_followed_over_a_cut_connection_and_canceled(plain: Plain, guest: Visitor) -> None:
    plain.open()
    plain.hold.touch()
    given = guest.run("send", "hello", "--no-wait")
    assert given.code == 0
    task_id = given.out.strip()
    with guest.begun("watch", task_id) as watching:
        watching.until(lambda: "WORKING" in watching.out, "the task is seen")
        canceled = guest.run("cancel", task_id)
        assert (canceled.code, canceled.out) == (0, f"{task_id} is CANCELED\n")
        done = watching.ended()
    assert done.code == 1
    assert "is canceled without an answer" in done.err


def test_a_message_that_may_have_been_taken_in_is_not_sent_again(plain: Plain, guest: Visitor) -> None:
    server = plain.open(PLAIN_STREAMING="no")
    plain.hold.touch()
    with guest.begun("send", "hello") as sending:
        sending.until(lambda: guest.run("tasks", "--json").out, "the task is there")
        server.send_signal(signal.SIGKILL)
        done = sending.ended()
    assert done.code == 1
    assert "it is not known whether" in done.err
    assert f"so it was not sent again: see `perdure tasks {plain.url}`" in done.err


def test_a_server_that_forgets_its_tasks_is_told_on(plain: Plain, guest: Visitor) -> None:
    server = plain.open()
    plain.hold.touch()
    with guest.begun("send", "hello") as sending:
        sending.until(lambda: "WORKING" in sending.out, "the task works")
        server.send_signal(signal.SIGKILL)
        server.wait()
        plain.open()
        done = sending.ended()
    assert done.code == 1
    assert "trying again" in done.err
    assert "any more: it has forgotten it" in done.err
