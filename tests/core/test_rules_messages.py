"""R1 to R7: messages, their lanes and positions."""

import pytest

from perdure.core import events, limits
from perdure.core.agent import Budget
from perdure.core.errors import InvalidInput, MessageConflict, TaskClosed
from perdure.core.machine import new_task, refuse_admission, resend
from tests.core.task import Task, ask, call


def failed() -> Task:
    """Return a task whose first run failed, with one parked message."""
    task = Task(after_answer="input_required")
    task.send("a")
    task.send("parked", lane="queue")
    task.model_fails("model_permanent")
    return task


def test_r1_tail_is_the_admission_until_a_move() -> None:
    task = failed()
    (waiting,) = task.state.inbox
    assert waiting.tail == waiting.admitted == task.rows("message.admitted")[1].number
    assert task.state.head == task.rows("run.ended")[0].number
    task.move("parked")
    assert task.promoted == ["a", "parked"]


def test_r1_an_answered_end_leaves_the_head() -> None:
    task = Task(after_answer="input_required")
    task.send("a")
    task.reply()
    assert task.state.head == 0


def test_r2_parked_is_pending_behind_the_head() -> None:
    task = failed()
    assert task.parked == ["parked"]
    assert not task.state.has_work
    assert task.state.run is None


def test_r3_a_message_is_promoted_only_once_it_is_stored() -> None:
    task = Task(stores=False)
    task.send("a")
    assert task.state.run is None
    task.store()
    assert task.promoted == ["a"]


def test_r3_promotion_and_entry_are_one_row() -> None:
    task = Task()
    task.send("a")
    (row,) = task.rows("message.promoted")
    assert [entry.digest for entry in row.entries] == ["entry of a"]


def test_r3_an_answer_waits_for_messages_that_are_not_durable_yet() -> None:
    task = Task(stores=False)
    task.send("a")
    task.store()
    task.send("b", lane="queue")
    task.reply()
    assert task.ends == []
    task.store()
    assert task.promoted == ["a", "b"]


def test_r4_all_steers_join_at_the_next_turn_in_order() -> None:
    task = Task()
    task.send("a")
    task.send("s1")
    task.send("q", lane="queue")
    task.send("s2")
    task.reply(call("get_order"))
    task.finish(0)
    assert task.promoted == ["a", "s1", "s2"]


def test_r4_queued_messages_join_one_at_a_time_after_an_answer() -> None:
    task = Task()
    task.send("a")
    task.send("q1", lane="queue")
    task.send("q2", lane="queue")
    task.reply(call("get_order"))
    task.finish(0)
    assert task.promoted == ["a"]
    task.reply()
    assert task.promoted == ["a", "q1"]
    task.reply()
    task.reply()
    assert task.promoted == ["a", "q1", "q2"]
    assert task.ends == [("answered", "")]


def test_r4_the_next_message_takes_everything_parked_with_it() -> None:
    task = failed()
    task.send("next")
    task.reply()
    task.reply()
    assert task.promoted == ["a", "parked", "next"]


def test_r4_steers_that_are_not_durable_hold_back_later_ones() -> None:
    task = Task(stores=False)
    task.send("a")
    task.store()
    task.send("s1")
    task.send("s2")
    task.store("s2")
    task.reply(call("get_order"))
    task.finish(0)
    assert task.promoted == ["a"]
    task.store()
    task.reply()
    assert task.promoted == ["a", "s1", "s2"]


def test_r5_a_move_is_recorded_even_for_a_steer() -> None:
    task = Task()
    task.send("a")
    task.send("s1")
    task.send("s2")
    task.move("s1")
    assert len(task.rows("message.moved")) == 1
    task.reply()
    assert task.promoted == ["a", "s2", "s1"]


def test_r6_cancel_withdraws_one_message() -> None:
    task = Task()
    task.send("a")
    task.send("b")
    task.send("c")
    task.withdraw("b")
    task.reply()
    assert task.promoted == ["a", "c"]


def test_r6_a_run_whose_messages_are_all_taken_back_ends() -> None:
    task = Task(stores=False)
    task.send("a", lane="steer")
    task.send("b", lane="steer")
    task.store("b")
    assert task.state.run is not None
    task.withdraw("b")
    task.withdraw("a")
    assert task.ends == [("stopped", "withdrawn")]
    assert not task.flights


def test_r6_taking_back_what_does_not_wait_is_refused() -> None:
    task = Task()
    task.send("a")
    with pytest.raises(InvalidInput, match="message_id: 'a' does not wait in task t"):
        task.withdraw("a")
    task.reply()
    with pytest.raises(TaskClosed):
        task.withdraw("a")
    with pytest.raises(TaskClosed):
        task.move("a")


def test_r7_no_run_opens_without_work() -> None:
    task = failed()
    before = len(task.log)
    task.apply(events.Stored(at_ms=task.at(), message_ids=("parked", "unknown")))
    task.stop()
    assert len(task.log) == before
    assert task.state.run is None


# --- P1: resends ------------------------------------------------------------------------------------------------


def test_p1_the_same_message_again_changes_nothing() -> None:
    task = Task()
    task.send("a")
    before = task.state
    task.send("a")
    assert task.state == before
    assert resend(task.state, "a", "entry of a") == 3


def test_p1_the_same_id_with_other_content_is_refused() -> None:
    task = Task()
    task.send("a")
    with pytest.raises(MessageConflict, match="'a' was used before with other content"):
        task.send("a", content="other")


def test_p1_a_waiting_message_is_recognised_however_long_it_waits() -> None:
    task = Task(budget=Budget(turns_max=1_000))
    task.send("a")
    task.send("waits", lane="queue")
    for n in range(limits.MESSAGE_IDS_REMEMBERED):
        task.send(f"s{n}")
        task.reply(call("nope"))
    assert all(seen_id != "waits" for seen_id, _, _ in task.state.seen)
    task.send("waits", lane="queue")
    assert [p.message_id for p in task.state.inbox] == ["waits"]
    with pytest.raises(MessageConflict):
        task.send("waits", content="other")


def test_p1_the_terminal_row_lists_what_was_not_acted_on() -> None:
    task = Task(on_unanswered="fail")
    task.send("a")
    task.send("b", lane="queue")
    task.reply()
    task.model_fails("model_permanent")
    assert task.status == "failed"
    assert task.kinds("message.promoted") == ["message.promoted"] * 2
    assert task.log[-1].data["unprocessed"] == ["b"]
    with pytest.raises(TaskClosed, match="task 't' is failed; start a new task"):
        task.send("c")
    task.send("a")  # still known, still nothing


def test_p7_the_inbox_is_bounded() -> None:
    task = Task(watched=False)
    task.send("a")
    for n in range(limits.INBOX_PENDING_MAX):
        task.send(f"m{n}")
    with pytest.raises(InvalidInput, match="256 messages waiting, the limit is 256"):
        task.send("more")
    with pytest.raises(InvalidInput):
        refuse_admission(task.state, 1)


def test_p3_a_task_id_that_could_share_keys_is_refused() -> None:
    agent = Task().state.agent
    for bad in ("", "a/1"):
        with pytest.raises(InvalidInput, match="task_id"):
            new_task(bad, "c", agent)


def test_an_answer_must_be_open_not_empty_and_not_too_long() -> None:
    task = Task()
    task.send("a")
    task.reply(ask("Which?"))
    help_id = task.state.help[0].help_id
    with pytest.raises(InvalidInput, match="help_id: 'x' is not an open question of this task; open ones: t/1/0"):
        task.answer("yes", "x")
    with pytest.raises(InvalidInput, match="text: an answer must not be empty"):
        task.answer(" ")
    with pytest.raises(InvalidInput, match="send files by message"):
        task.answer("x" * (limits.ANSWER_BYTES_MAX + 1))
    task.answer("yes\x00")
    assert task.transcript[-1] == "ok: yes\ufffd"
    assert task.rows("help.answered")[0].data["text"] == "yes\ufffd"
    with pytest.raises(InvalidInput, match="open ones: none"):
        task.answer("again", help_id)
