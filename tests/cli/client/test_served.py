"""The client commands against `perdure serve`: what they print, and the code that they end with (A18, B18, B22)."""

import json
import signal

import pytest

from tests.cli.client.visitor import House, Visitor, numbers

pytestmark = pytest.mark.slow


def test_a_message_is_answered_and_the_same_key_is_the_same_message(house: House, visitor: Visitor) -> None:
    house.open()
    done = visitor.run("send", "ship", "--key", "order-7")
    assert done.code == 0
    assert done.out.endswith("\n\nanswer: tracking 77\n")
    assert "   10  ship         finished: ok\n" in done.out
    again = visitor.run("send", "ship", "--key", "order-7", "--json")
    assert (again.code, again.outcome["answer"]) == (0, "answer: tracking 77")
    assert done.err == f"task {again.outcome['task_id']}\n"
    assert numbers(again) == list(range(1, len(again.objects)))
    assert house.world_lines("shipped") == [[f"{again.outcome['task_id']}/1/0"]]
    other = visitor.run("send", "hello", "--key", "order-7")
    assert (other.code, other.out) == (2, "")
    assert other.err.startswith("error: --key: was used before with another message")
    (listed,) = [json.loads(line) for line in visitor.run("tasks", "--json").out.splitlines()]
    assert (listed["task_id"], listed["state"], listed["agent"]) == (again.outcome["task_id"], "completed", "clerk")
    assert "COMPLETED" in visitor.run("tasks").out


def test_a18_a_run_that_fails_ends_the_command_with_its_reason(house: House, visitor: Visitor) -> None:
    house.open()
    done = visitor.run("send", "fail", "--json")
    assert done.code == 1
    assert (done.outcome["outcome"], done.outcome["reason"]) == ("unanswered", "model")
    assert "the provider says no" in done.outcome["message"]
    task_id = done.outcome["task_id"]
    assert f"error: task {task_id} is input_required without an answer (model)" in done.err
    assert f"perdure send {house.url} MESSAGE --task {task_id}" in done.err
    resting = visitor.run("watch", task_id, "--after", str(numbers(done)[-1]), "--json")
    assert (resting.code, resting.outcome["reason"], numbers(resting)) == (1, "model", [])
    on = visitor.run("send", "hello", "--task", task_id)
    assert (on.code, on.out.splitlines()[-1]) == (0, "you said: hello")
    watched = visitor.run("watch", task_id, "--json")
    assert (watched.code, watched.outcome["answer"]) == (0, "you said: hello")
    late = visitor.run("watch", task_id, "--after", "10", "--json")
    assert numbers(late) == numbers(watched)[10:]
    closed = visitor.run("send", "more", "--task", task_id)
    assert closed.code == 2
    assert "takes no more messages" in closed.err


def test_a_question_is_answered_once(house: House, visitor: Visitor) -> None:
    house.open()
    asks = visitor.run("send", "ask")
    task_id = asks.task_id
    assert asks.code == 1
    assert "the task asks: Refund or replacement?" in asks.err
    wrong = visitor.run("answer", task_id, "a refund", "--question", "h-none")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("error: --question: 'h-none' is not open; open: ")
    with visitor.begun("watch", task_id, "--json") as watching:
        watching.until(lambda: "help.requested" in watching.out, "the question is shown")
        done = visitor.run("answer", task_id, "a refund", "--key", "k")
        assert (done.code, done.out.splitlines()[-1]) == (0, "answer: a refund")
        watched = watching.ended()
    assert (watched.code, watched.outcome["answer"]) == (0, "answer: a refund")
    assert numbers(watched) == list(range(1, len(watched.objects)))
    again = visitor.run("answer", task_id, "a refund", "--key", "k", "--wait")
    assert (again.code, again.out) == (0, "answer: a refund\n")
    second = visitor.run("answer", task_id, "a replacement")
    assert (second.code, second.out) == (2, "")
    assert second.err == f"error: TASK: {task_id} is completed and asks nothing; start a new one\n"


def test_a_task_is_handed_over_watched_interrupted_and_canceled(house: House, visitor: Visitor) -> None:
    house.open()
    house.hold.touch()
    given = visitor.run("send", "ship", "--no-wait")
    task_id = given.out.strip()
    assert (given.code, given.err) == (0, f"task {task_id}\n")
    with visitor.begun("watch", task_id) as watching:
        watching.until(lambda: "ship         attempt 1 started" in watching.out, "the tool is seen")
        watching.process.send_signal(signal.SIGINT)
        done = watching.ended()
    assert done.code == 130
    assert f"the task goes on; see it with: perdure watch {house.url} {task_id} --after 9" in done.err
    canceled = visitor.run("cancel", task_id, "--json")
    assert (canceled.code, canceled.objects) == (0, [{"task_id": task_id, "state": "canceled"}])
    again = visitor.run("cancel", task_id)
    assert again.code == 2
    assert "cannot be canceled" in again.err
    over = visitor.run("watch", task_id)
    assert over.code == 1
    assert "is canceled without an answer (canceled)" in over.err
    unknown = visitor.run("watch", "t-none")
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.startswith("error: TASK: there is no task 't-none'")
