"""A task rests by its log exactly when the machine has nothing left to do, whatever the order of rows."""

from random import Random

from perdure.a2a.resting import Standing
from perdure.core.log import LogEvent
from perdure.core.state import TaskState
from tests.core.life import Life
from tests.core.task import Task, ask

LIVES = 150
STEPS = 40


def stands(rows: list[LogEvent], standing: Standing | None = None) -> Standing:
    found = standing or Standing()
    for row in rows:
        found = found.after(row)
    return found


def waits_for_a_person(state: TaskState) -> bool:
    if state.terminal:
        return True
    if state.run is not None:
        return state.status == "input_required"
    return bool(state.seen) and not state.about_to_open


def test_a_task_rests_by_its_log_when_it_does_by_its_state() -> None:
    for seed in range(LIVES):
        life = Life(Random(seed))
        seen, standing = 0, Standing()
        for _ in range(STEPS):
            happens = life.one(*life.possible())
            life.steps.append(happens.__name__)
            happens()
            told = f"seed {seed}, after {' '.join(life.steps)}"
            after = stands(life.task.log[seen:], standing)
            assert after.rests == waits_for_a_person(life.task.state), told
            for upto in range(seen + 1, len(life.task.log)):  # nobody reads a rest out of the middle of a step
                between = stands(life.task.log[seen:upto], standing)
                if between.rests:
                    assert after.rests, told
                    assert (between.state, between.reason) == (after.state, after.reason), told
            seen, standing = len(life.task.log), after


def rests_after_sending(task: Task, message_id: str, lane: str = "queue") -> bool:
    task.send(message_id, lane)  # type: ignore[arg-type] # steer or queue
    return stands(task.log).rests


def test_a_message_behind_an_open_question_waits_for_a_person() -> None:
    for lane in ("queue", "steer"):
        task = Task(after_answer="input_required")
        task.send("a")
        task.reply(ask("Which?"))
        assert rests_after_sending(task, "b", lane)
        assert task.log[-1].kind == "message.admitted"


def test_a_message_to_a_task_that_waits_for_one_opens_a_run_and_is_no_rest() -> None:
    task = Task(after_answer="input_required", stores=False)
    task.send("a")
    task.store()
    task.reply()
    assert stands(task.log).rests
    assert not rests_after_sending(task, "b")
    task.store()
    assert [row.kind for row in task.log[-4:]] == ["run.started", "task.status", "message.promoted", "model.started"]
    for gone in range(4):
        assert not stands(task.log[: len(task.log) - gone]).rests
    task.reply()
    assert stands(task.log).rests


def test_a_message_that_a_stop_or_its_sender_takes_before_its_run_is_waited_for_no_more() -> None:
    for take in (Task.stop, lambda task: task.withdraw("b")):
        task = Task(after_answer="input_required", stores=False)
        task.send("a")
        task.stop()
        task.store()
        assert not rests_after_sending(task, "b")
        take(task)
        assert task.log[-1].kind in {"run.stopped_before_start", "message.withdrawn"}
        assert stands(task.log).rests


def test_a_first_message_that_was_taken_back_leaves_nothing_to_wait_for() -> None:
    task = Task(stores=False)
    assert not stands(task.log).rests
    assert not rests_after_sending(task, "a")
    task.withdraw("a")
    assert (task.status, stands(task.log).rests) == ("submitted", True)
