"""The inbox as the log tells it is the inbox that the machine decides by, at every number."""

from random import Random

import pytest

from perdure.core.errors import MessageNotWaiting
from perdure.core.inbox import Inbox, inbox_of
from tests.core.life import Life
from tests.core.task import Task

LIVES = 150
STEPS = 40


def folded(task: Task) -> Inbox:
    inbox = Inbox()
    for row in task.log:
        inbox = inbox.after(row)
    return inbox


def test_r2_the_log_alone_says_what_waits_and_whether_it_may_run() -> None:
    for seed in range(LIVES):
        life = Life(Random(seed))
        for _ in range(STEPS):
            happens = life.one(*life.possible())
            life.steps.append(happens.__name__)
            happens()
            assert folded(life.task) == inbox_of(life.task.state), f"seed {seed}, after {' '.join(life.steps)}"


def test_what_waits_is_listed_in_the_order_in_which_it_goes() -> None:
    task = Task()
    task.send("first")
    task.send("q-1", "queue")
    task.send("s-1", "steer")
    task.send("q-2", "queue")
    task.send("s-2", "steer")
    task.move("q-2")
    task.move("s-1")
    inbox = folded(task)
    assert [each.message_id for each in inbox.messages] == ["s-2", "q-2", "s-1", "q-1"]
    assert inbox.runnable == inbox.messages
    task.stop()
    task.model_fails("cancelled")
    inbox = folded(task)
    assert inbox.head == task.state.head > 0
    assert [each.message_id for each in inbox.parked] == ["s-2", "q-2", "s-1", "q-1"]


def test_r5_a_parked_message_that_is_moved_is_runnable_again() -> None:
    task = Task(stores=False)
    task.send("first")
    task.stop()
    (parked,) = folded(task).parked
    task.move("first")
    (moved,) = folded(task).runnable
    assert (moved.message_id, moved.lane, moved.admitted) == ("first", "steer", parked.admitted)
    assert moved.tail == task.state.last_number > parked.tail


def test_r6_what_does_not_wait_is_refused_by_name() -> None:
    task = Task(after_answer="input_required")
    task.send("a")
    for change in (task.withdraw, task.move):
        with pytest.raises(MessageNotWaiting, match="came as event 3"):
            change("a")
        with pytest.raises(MessageNotWaiting, match="not known there"):
            change("b")
