"""When a client is done (A17): by the numbers of the task's events, whatever the order in which they come."""

import random

import pytest

from perdure.cli.client.ends import End, Ending, MessageEnd, StateEnd, TaskEnd
from perdure.cli.client.order import InOrder
from perdure.cli.client.said import Said
from perdure.core import client_limits
from perdure.core.errors import StoreBehind
from tests.cli.client.heard import end_of, fed, heard
from tests.core.task import Task, ask

SHUFFLES = 200


def failed_then_answered() -> Task:
    """A run fails with b behind it; c is sent afterwards, and its run answers all."""
    task = Task(after_answer="input_required")
    task.send("a")
    task.send("b", "queue")
    task.model_fails("model_permanent")
    task.send("c")
    while task.flights:
        task.reply()
    return task


def test_around_a_failure_every_order_of_arrival_comes_out_alike() -> None:
    told = heard(failed_then_answered())
    for seed in range(SHUFFLES):
        arriving = [*told, *told[::3]]  # some twice
        random.Random(seed).shuffle(arriving)
        mine, other = (fed(MessageEnd(message_id), arriving).end for message_id in ("c", "a"))
        assert mine == End("answered", "input_required", answer="answer 3"), f"seed {seed}"
        assert other == End("unanswered", "input_required", "model", "it was model_permanent"), f"seed {seed}"


def test_the_failure_of_the_run_before_is_not_ones_own_end() -> None:
    task = Task()
    task.send("a")
    task.model_fails("model_permanent")
    before = len(task.log)
    task.send("b")
    ending = end_of(task, "b")
    assert (ending.end, ending.rest) == (None, None)
    while task.flights:
        task.reply()
    for said in heard(task)[before:]:
        ending.take(said)
    assert ending.end is not None
    assert ending.end.outcome == "answered"


def test_a_message_that_waits_is_parked_by_an_end_without_an_answer() -> None:
    task = Task()
    task.send("a")
    task.send("b", "queue")
    task.model_fails("model_permanent")
    assert task.parked == ["b"]
    ending = end_of(task, "b")
    assert ending.end is None
    assert ending.rest == End("unanswered", "input_required", "model", "it was model_permanent")
    task.send("c")
    task.reply()
    assert end_of(task, "b").rest is None, "the next message took it along"
    while task.flights:
        task.reply()
    assert end_of(task, "b").end is not None


def test_the_answer_is_the_one_to_this_message() -> None:
    task = Task()
    task.send("a")
    task.send("b", "queue")
    task.reply()
    task.reply()
    first, second = end_of(task, "a").end, end_of(task, "b").end
    assert first is not None
    assert second is not None
    assert (first.answer, second.answer) == ("answer 1", "answer 2")
    assert {first.outcome, second.outcome} == {"answered"}


def test_a_message_taken_back_or_left_unprocessed_has_no_answer() -> None:
    task = Task(stores=False)
    task.send("a")
    task.withdraw("a")
    taken_back = end_of(task, "a").end
    assert taken_back is not None
    assert (taken_back.outcome, taken_back.reason) == ("unanswered", "withdrawn")
    task = Task()
    task.send("a")
    task.send("b", "queue")
    task.cancel()
    task.model_fails("cancelled")
    left = end_of(task, "b").end
    assert left is not None
    assert (left.outcome, left.state, left.reason) == ("unanswered", "canceled", "unprocessed")


def test_a_stop_before_the_run_parks_the_message() -> None:
    task = Task(stores=False)
    task.send("a")
    task.stop()
    ending = end_of(task, "a")
    assert ending.end is None
    assert ending.rest is not None
    assert (ending.rest.outcome, ending.rest.reason) == ("unanswered", "stopped")


def test_a_question_is_a_rest_until_it_is_answered() -> None:
    task = Task()
    task.send("a")
    task.reply(ask("Refund or replacement?"))
    waiting = end_of(task, "a")
    assert waiting.end is None
    assert waiting.rest == End("waiting", "input_required", "help", "Refund or replacement?")
    watched = fed(TaskEnd(), heard(task))
    assert (watched.end, watched.rest) == (None, None), "who watches waits for who answers"
    task.answer("refund")
    assert end_of(task, "a").rest is None
    task.reply()
    end = end_of(task, "a").end
    assert end is not None
    assert end.answer == "answer 2"


def test_an_answer_to_one_of_two_questions_waits_for_the_other() -> None:
    task = Task()
    task.send("a")
    task.reply(ask("Which one?"), ask("When?"))
    task.answer("today", task.state.help[1].help_id)
    ending = end_of(task, "a")
    assert ending.rest == End("waiting", "input_required", "help", "Which one?")


def test_a18_a_message_behind_a_question_that_was_open_before_it_waits_for_its_answer() -> None:
    """A stream of a message begins with the task as it was before it: nothing else tells of the question."""
    task = Task(after_answer="input_required")
    task.send("a")
    task.reply(ask("Refund or replacement?"))
    before = len(task.log)

    def of(message_id: str) -> Ending:
        ending = MessageEnd(message_id)
        asked = "Refund or replacement?"
        ending.take(Said("task", "t", before, "input_required", asked, data={"reason": "help"}))
        return fed(ending, heard(task)[before:], seen=before)

    for lane in ("queue", "steer"):
        task.send(f"b-{lane}", lane)
        for ending in (of(f"b-{lane}"), end_of(task, f"b-{lane}")):
            assert ending.end is None
            assert ending.rest == End("waiting", "input_required", "help", "Refund or replacement?")
    task.answer("refund")
    assert of("b-steer").rest is None, "its run goes on"
    while task.flights:
        task.reply()
    for end in (of("b-steer").end, of("b-queue").end):
        assert end is not None
        assert end.outcome == "answered"


def test_who_watches_from_where_a_task_rests_is_told_so_by_the_task() -> None:
    ending = TaskEnd()
    ending.take(Said("task", "t", 9, "input_required", "answer 3", data={"reason": "answered"}))
    assert ending.rest == End("answered", "input_required", answer="answer 3")
    ending.take(Said("task", "t", 9, "input_required", "Which one?", data={"reason": "help"}))
    assert ending.rest is None


def test_who_watches_is_done_at_the_tasks_end_or_when_it_rests() -> None:
    task = failed_then_answered()
    ending = fed(TaskEnd(), heard(task))
    assert ending.end is None
    assert ending.rest == End("answered", "input_required", answer="answer 3")
    task.cancel()
    assert fed(TaskEnd(), heard(task)).end == End(
        "unanswered", "canceled", "canceled", "The task is canceled: canceled."
    )


def test_a_stream_that_begins_behind_what_was_seen_is_refused() -> None:
    order = InOrder(7)
    with pytest.raises(StoreBehind, match="up to event 5 only, and 7 were seen"):
        order.start(Said("task", number=5))


def test_early_events_wait_in_bounds() -> None:
    order = InOrder(0)
    for number in range(2, client_limits.EARLY_MAX + 2):
        assert order.take(Said("model.started", number=number)) == []
    assert not order.gapes
    order.take(Said("model.started", number=client_limits.EARLY_MAX + 2))
    assert order.gapes
    assert len(order.take(Said("task.created", number=1))) == client_limits.EARLY_MAX + 2


def test_without_numbers_the_first_rest_after_the_message_is_its_end() -> None:
    ending = StateEnd(sent=True)
    ending.take(Said("task", state="input_required", text="an old question"))
    assert ending.end is None, "that is how it stood before"
    ending.take(Said("status", state="working"))
    ending.take(Said("artifact", artifact="x", text="tracking "))
    ending.take(Said("artifact", artifact="x", text="77", appends=True))
    ending.take(Said("status", state="completed"))
    assert ending.end == End("answered", "completed", answer="tracking 77")
    for state, outcome in [("rejected", "unanswered"), ("auth_required", "waiting"), ("failed", "unanswered")]:
        ending = StateEnd(sent=True)
        ending.take(Said("status", state=state, text="why"))
        assert ending.end is not None
        assert (ending.end.outcome, ending.end.message) == (outcome, "why")
