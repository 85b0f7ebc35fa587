"""What happens to a task whose store and history disagree: it waits for a person, and nothing is called."""

import pytest

from perdure.core.commands import Fence, StopFlights
from tests.core.task import Task, call


@pytest.mark.parametrize("setting", ["input_required", "fail"])
def test_r13_a_store_that_disagrees_parks_the_task_whatever_its_setting(setting: str) -> None:
    task = Task(on_unanswered=setting)
    task.send("a")
    task.diverge()
    assert {type(command) for command in task.asked[-2:]} == {StopFlights, Fence}
    task.model_fails("cancelled")
    assert task.ends == [("failed", "store")]
    assert (task.status, task.state.reason) == ("input_required", "store")


@pytest.mark.parametrize("setting", ["input_required", "fail"])
def test_r13_a_call_that_finds_the_store_different_parks_the_task_too(setting: str) -> None:
    task = Task(on_unanswered=setting)
    task.send("a")
    task.reply(call("refund"))
    task.tool_fails(0, "diverged")
    assert task.ends == [("failed", "store")]
    assert (task.status, task.state.reason) == ("input_required", "store")


def test_r13_a_resting_task_is_shown_as_parked_and_goes_on_with_the_next_message() -> None:
    task = Task(after_answer="input_required", stores=False)
    task.send("a")
    task.store()
    task.reply()
    task.send("not durable yet")
    task.diverge()
    assert (task.status, task.state.reason) == ("input_required", "store")
    assert task.flights == {}
    said = len(task.log)
    task.diverge("again")  # each refused try says the same: the log does not grow with them
    assert len(task.log) == said
    task.send("after the right files are back")
    task.store()
    assert task.promoted == ["a", "not durable yet"]
    task.reply()
    assert task.promoted == ["a", "not durable yet", "after the right files are back"]


def test_r13_a_question_to_a_person_is_closed_by_it() -> None:
    task = Task()
    task.send("a")
    task.reply(call("pay"))
    task.finish(0, "in_doubt")
    assert task.state.help
    task.diverge()
    assert task.state.help == ()
    assert (task.status, task.state.reason) == ("input_required", "store")
    task.send("b")
    assert task.tool(0).resolve_only  # what was begun is looked up before anything else (R14)


def test_p5_a_terminal_state_stays_one() -> None:
    done, canceled = Task(), Task()
    done.send("a")
    done.reply()
    done.diverge()
    assert done.status == "completed"
    canceled.send("a")
    canceled.cancel()
    canceled.diverge()
    canceled.model_fails("cancelled")
    assert canceled.status == "canceled"
