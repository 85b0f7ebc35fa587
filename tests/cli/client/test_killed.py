"""The server is killed and started again while clients follow: they miss nothing, and nothing comes twice (B17, P6)."""

import json
import random
from pathlib import Path

import pytest

from perdure.cli.client.giving import message_id_of
from tests.cli.client.visitor import Begun, House, Visitor, numbers
from tests.cli.desk import until

pytestmark = pytest.mark.slow


def _seen(begun: Begun) -> int:
    """Return the number of whole lines that a command with `--json` has printed."""
    return begun.out.count("\n")


def _until_seen(begun: Begun, count: int) -> None:
    until(lambda: _seen(begun) >= count or begun.process.poll() is not None, f"{count} lines", lambda: begun.err)


def test_p6_send_and_watch_go_on_after_the_server_was_killed(house: House, visitor: Visitor) -> None:
    server = house.open()
    house.hold.touch()
    with visitor.begun("send", "ship", "--json") as sending:
        sending.until(lambda: "tool.started" in sending.out, "the tool is begun")
        task_id = json.loads(sending.out.splitlines()[0])["task_id"]
        with visitor.begun("watch", task_id, "--json") as watching:
            watching.until(lambda: "tool.started" in watching.out, "the watcher has caught up")
            house.kill(server)
            sending.until(lambda: "trying again after event" in sending.err, "the loss is noticed")
            house.open()
            house.hold.unlink()
            sent, watched = sending.ended(), watching.ended()
    for done in (sent, watched):
        assert (done.code, done.outcome["answer"]) == (0, "answer: tracking 77"), done.err
        assert numbers(done) == list(range(1, len(done.objects)))
    assert sent.objects == watched.objects
    assert house.world_lines("shipped") == [[f"{task_id}/1/0"]]


def test_p1_a_message_whose_answer_was_lost_is_given_again_and_is_one_task(house: House, visitor: Visitor) -> None:
    server = house.command("serve", house.agent, "--port", str(house.port), PERDURE_FAULT="send.started")
    house.until(house.answers, "the server answers")
    with visitor.begun("send", "ship", "--json") as sending:
        house.until(lambda: server.poll() is not None, "the server dies with the message in hand")
        house.open()
        done = sending.ended()
    assert (done.code, done.outcome["answer"]) == (0, "answer: tracking 77"), done.err
    assert numbers(done) == list(range(1, len(done.objects)))
    assert house.world_lines("shipped") == [[f"{done.outcome['task_id']}/1/0"]]
    assert [each["id"] for each in house.result("ListTasks", {})["tasks"]] == [done.outcome["task_id"]]


def test_p1_what_waited_when_everything_was_killed_is_taken_back_or_listed(house: House, visitor: Visitor) -> None:
    """Two are acknowledged behind a call, and everything dies; then one is taken back and the task canceled."""
    server = house.open()
    house.hold.touch()
    task_id = visitor.run("send", "ship", "--no-wait").out.strip()
    house.until(lambda: house.world_lines("begun"), "the tool is begun")
    for key in ("later", "last"):
        queued = visitor.run("send", key, "--task", task_id, "--lane", "queue", "--key", key, "--no-wait")
        assert queued.code == 0, queued.err
    house.kill(server)
    house.open()
    dropped = visitor.run("drop", task_id, message_id_of("later"))
    assert dropped.code == 0, dropped.err
    canceled = visitor.run("cancel", task_id)
    assert canceled.code == 0, canceled.err
    house.hold.unlink()
    watched = visitor.run("watch", task_id, "--json")
    last = watched.objects[-2]
    assert (last["kind"], last["data"]["unprocessed"]) == ("task.status", [message_id_of("last")]), watched.err
    assert numbers(watched) == list(range(1, len(watched.objects)))


def test_a_client_ends_when_the_server_stays_away_and_says_how_to_go_on(house: House, visitor: Visitor) -> None:
    server = house.open()
    house.hold.touch()
    with visitor.begun("send", "ship", "--patience", "1") as sending:
        sending.until(lambda: "attempt 1 started" in sending.out, "the tool is begun")
        house.kill(server)
        done = sending.ended()
    assert done.code == 1
    assert f"perdure watch {house.url} {done.task_id} --after " in done.err
    assert "the server does not answer for 1 s" in done.err
    after = done.err.split("--after ")[1].split()[0]
    house.open()
    house.hold.unlink()
    rest = visitor.run("watch", done.task_id, "--after", after, "--json")
    assert (rest.code, numbers(rest)[0]) == (0, int(after) + 1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_random_moments_the_numbers_are_one_to_n(tmp_path: Path, seed: int) -> None:
    random_s = random.Random(seed)
    house = House(tmp_path)
    visitor = Visitor(tmp_path / "visitor", house.url)
    try:
        server = house.open()
        with visitor.begun("send", "ship", "--json") as sending:
            for _ in range(2):
                _until_seen(sending, _seen(sending) + random_s.randrange(1, 6))
                house.kill(server)
                server = house.open()
            done = sending.ended()
    finally:
        house.close()
    assert (done.code, done.outcome["answer"]) == (0, "answer: tracking 77"), f"seed {seed}: {done.err}"
    assert numbers(done) == list(range(1, len(done.objects))), f"seed {seed}"
