"""The transition table: every event in every mode is either taken or refused, and what is refused changes nothing."""

import pytest

from perdure.core import events
from perdure.core.errors import IllegalEvent, InvalidInput
from perdure.core.failure import Failure
from perdure.core.machine import step
from perdure.core.machine.table import TABLE
from perdure.core.state import TaskState
from tests.core.task import Task, ask, call

FAILED = Failure(kind="internal", message="x")

EVENTS: list[events.Event] = [
    events.Created(at_ms=1),
    events.Admitted(at_ms=1, message_id="new", digest="d"),
    events.Stored(at_ms=1, message_ids=("a",)),
    events.Moved(at_ms=1, message_id="waits"),
    events.Withdrawn(at_ms=1, message_id="waits"),
    events.StopRequested(at_ms=1),
    events.CancelRequested(at_ms=1),
    events.Answered(at_ms=1, help_id="t/1/1", text="yes"),
    events.ChildDone(at_ms=1, child_id="k", status="completed"),
    events.ModelReplied(at_ms=1, turn=1, attempt=1, digest="r", finish="stop", has_text=True),
    events.ModelFailed(at_ms=1, turn=1, attempt=1, failure=FAILED),
    events.ToolFinished(at_ms=1, turn=1, index=0, attempt=1, outcome="result", digest="r"),
    events.ToolFailed(at_ms=1, turn=1, index=0, attempt=1, failure=FAILED),
    events.HelpExpired(at_ms=1, help_id="t/1/1"),
    events.StoreDiverged(at_ms=1, message="other rows"),
    events.BackoffOver(at_ms=1, turn=1),
    events.BackoffOver(at_ms=1, turn=1, index=0),
]


def states() -> dict[str, TaskState]:
    """Return a state of every kind, each with a message `waits` where one can wait."""
    made: dict[str, Task] = {}
    for name in ("idle", "model", "model waits", "calls", "call waits", "between", "ending", "terminal"):
        task = made[name] = Task(on_unanswered="fail" if name == "terminal" else "input_required", stores=False)
        task.send("a")
        task.store()
        if name != "idle":
            task.send("waits", lane="queue")
    made["idle"].stop()
    made["idle"].model_fails("cancelled")
    made["model waits"].model_fails("internal")
    for name in ("calls", "call waits"):
        made[name].reply(call("get_order"), ask("sure?"))
    made["call waits"].tool_fails(0, "internal")
    made["between"].reply()
    made["ending"].stop()
    made["terminal"].model_fails("model_permanent")
    return {name: task.state for name, task in made.items()}


REFUSED_AS_ILLEGAL = {
    "idle": "ModelReplied ModelFailed ToolFinished ToolFailed",
    "model": "ToolFinished ToolFailed",
    "model waits": "ModelReplied ModelFailed ToolFinished ToolFailed",
    "calls": "ModelReplied ModelFailed",
    "call waits": "ModelReplied ModelFailed ToolFinished ToolFailed",
    "between": "ModelReplied ModelFailed ToolFinished ToolFailed",
    "ending": "ToolFinished ToolFailed",
    "terminal": "ModelReplied ModelFailed ToolFinished ToolFailed",
}

REFUSED_AS_INPUT = {
    "idle": "Moved Withdrawn Answered",
    "model": "Answered",
    "model waits": "Answered",
    "calls": "",
    "call waits": "",
    "between": "Answered",
    "ending": "Answered",
    "terminal": "Admitted Moved Withdrawn CancelRequested Answered",
}


def name_of(event: events.Event) -> str:
    """Return how the tables above call an event."""
    index = getattr(event, "index", None) if isinstance(event, events.BackoffOver) else None
    return type(event).__name__ + ("/0" if index is not None else "")


def test_the_table_knows_every_event() -> None:
    assert set(TABLE) == set(events.Event.__subclasses__())
    assert {type(event) for event in EVENTS} == set(TABLE)


@pytest.mark.parametrize("name", REFUSED_AS_ILLEGAL)
@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_every_event_in_every_mode(name: str, event: events.Event) -> None:
    state = states()[name]
    before = state.model_dump_json()
    illegal = ["Created", *REFUSED_AS_ILLEGAL[name].split()]
    if name_of(event) in illegal:
        with pytest.raises(IllegalEvent):
            step(state, event)
    elif name_of(event) in REFUSED_AS_INPUT[name].split():
        with pytest.raises(InvalidInput):
            step(state, event)
    else:
        step(state, event)
    assert state.model_dump_json() == before


def test_results_of_superseded_attempts_are_illegal() -> None:
    task = Task()
    task.send("a")
    task.model_fails("shutdown")
    with pytest.raises(IllegalEvent, match="attempt 1 of turn 1 was superseded by attempt 2"):
        step(task.state, EVENTS[9])
    task.reply(call("get_order"), call("get_order"))
    task.tool_fails(0, "shutdown")
    with pytest.raises(IllegalEvent, match="attempt 1 of call 1/0 of task t is not under way"):
        step(task.state, EVENTS[11])
    task.finish(0)
    with pytest.raises(IllegalEvent, match="call 1/0 of task t is closed already"):
        step(task.state, EVENTS[11])
    with pytest.raises(IllegalEvent, match="has no call 1/7 now"):
        step(task.state, events.ToolFailed(at_ms=1, turn=1, index=7, attempt=1, failure=FAILED))


@pytest.mark.parametrize("event", EVENTS[-2:], ids=name_of)
@pytest.mark.parametrize("name", ["idle", "model", "calls", "between", "ending", "terminal"])
def test_the_end_of_a_wait_that_is_none_any_more_changes_nothing(name: str, event: events.Event) -> None:
    """A run may be told to end in the moment in which its wait is over; what then stands must not break."""
    state = states()[name]
    assert step(state, event) == (state, ())
