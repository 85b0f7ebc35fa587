"""What is asked of a task is done: the effect that each event must have, by the number of its rule.

Most of it can be read off the event alone: a stop stops, what is taken back is gone, a result is that call's result.
And nothing of the kind happens by itself.
"""

from collections.abc import Callable, Sequence
from typing import Any

from perdure.core import events
from perdure.core.bounds import FIRST
from perdure.core.commands import CallModel, CallTool, StoreMessage
from perdure.core.log import LogEvent
from tests.core.moment import AT_ODDS, Step
from tests.core.witness import SPENDING, must

FOR_GOOD = {*SPENDING, "tool_raised", "model_permanent", *AT_ODDS}
"""Failures that may be an operation's last. After all others it goes on: nobody's fault, or looked into (R10)."""
ASKED_FOR: dict[str, tuple[type[events.Event], ...]] = {
    "message.admitted": (events.Admitted,),
    "message.moved": (events.Moved,),
    "message.withdrawn": (events.Withdrawn,),
    "run.stop_requested": (events.StopRequested, events.CancelRequested),
    "run.stopped_before_start": (events.StopRequested,),
    "help.answered": (events.Answered,),
    "model.answered": (events.ModelReplied,),
    "model.failed": (events.ModelFailed,),
    "tool.failed": (events.ToolFailed,),
}
"""Rows of which each says that somebody did something: they come with that, once, and never by themselves."""


def carried_out(step: Step) -> None:
    """Raise what the event should have brought about and has not, or what came without it."""
    effect = EFFECTS.get(type(step.event))
    if effect is not None:
        effect(step, step.event)
    for kind, causes in ASKED_FOR.items():
        must(step.kinds.count(kind) <= isinstance(step.event, causes), "R11", f"{kind} came with {step.event}")
    started = sum(kind in {"model.started", "tool.started"} for kind in step.kinds)
    begun = sum(isinstance(command, CallModel | CallTool) for command in step.commands)
    must(started == begun, "P2", f"{begun} attempts begin, and {started} rows say so")
    _own_results(step)


# --- messages ---------------------------------------------------------------------------------------------------


def _created(step: Step, _: events.Created) -> None:
    must(step.kinds == ["task.created", "task.status"], "P6", f"a task begins with {step.kinds}")


def _admitted(step: Step, event: events.Admitted) -> None:
    before, name = step.before, event.message_id
    if before.known:
        must(not step.commands, "P1", f"a resend of {name} made {step.commands}")
        return
    must(not before.terminal and not step.at.canceling, "P5", f"{name} was taken in by a task that ends")
    lane = event.lane or ("steer" if before.run else "queue")
    said = [(row.data["message_id"], row.data["lane"]) for row in step.rows if row.kind == "message.admitted"]
    must(said == [(name, lane)], "R2", f"{name} was admitted as {said}, not to {lane}")
    must(StoreMessage(message_id=name) in step.commands, "R3", f"{name} is not stored")


def _moved(step: Step, event: events.Moved) -> None:
    name, still = event.message_id, step.at.pending.get(event.message_id)
    must(name in step.before.waiting, "R5", f"{name} was moved and does not wait")
    moved = [row.number for row in step.rows if row.kind == "message.moved"]
    must(len(moved) == 1, "R5", f"the move of {name} is not recorded")
    must(still is None or (still.lane, still.tail) == ("steer", moved[0]), "R5", f"{name} stays where it was")


def _withdrawn(step: Step, event: events.Withdrawn) -> None:
    must(event.message_id in step.before.waiting, "R6", f"{event.message_id} was taken back and does not wait")
    must(step.at.gone.get(event.message_id) == "withdrawn", "R6", f"{event.message_id} was not taken back")


# --- stop and cancel --------------------------------------------------------------------------------------------


def _stopped(step: Step, _: events.StopRequested) -> None:
    """An open run is told to stop, what would open one is parked, and else nothing is recorded."""
    before, at = step.before, step.at
    if before.run and not before.winding:
        must(step.kinds.count("run.stop_requested") == 1, "R11", f"a stop of run {before.run} made {step.kinds}")
        must(at.stopped and (at.winding or at.run == 0), "P9", f"run {before.run} goes on after its stop")
    elif not before.run and before.runnable and not before.terminal:
        must(step.kinds.count("run.stopped_before_start") == 1, "R11", f"a stop before the run made {step.kinds}")
        must(all(m.tail <= at.head for m in at.pending.values()), "R6", "a stop has not parked what is pending")
    else:
        must(not step.commands, "R11", f"a stop with nothing to stop made {step.kinds}")


def _canceled(step: Step, _: events.CancelRequested) -> None:
    must(not step.before.terminal, "P5", "a task that has ended was canceled")
    opens = step.before.run > 0 and not step.before.winding
    must(step.kinds.count("run.stop_requested") == opens, "R11", f"a cancel made {step.kinds}")
    must(step.at.terminal or step.at.winding, "P5", "a cancel leaves the task as it was")


# --- people and clocks ------------------------------------------------------------------------------------------


def _answered(step: Step, event: events.Answered) -> None:
    taken = event.help_id in step.before.asks and event.help_id not in step.at.asks
    must(taken and "help.answered" in step.kinds, "P4", f"the answer to {event.help_id} made {step.kinds}")
    for row in step.rows:
        if row.kind == "help.answered" and "verdict" in row.data:
            declines = event.text.strip().lower().startswith("decline")
            must(declines == (row.data["verdict"] == "declined"), "P3", f"{event.text!r} came to {row.data['verdict']}")


def _expired(step: Step, event: events.HelpExpired) -> None:
    over = event.help_id in step.before.asks and not step.before.winding
    done = event.help_id not in step.at.asks if over else not step.commands
    must(done, "P8", f"{event.help_id} expired, and made {step.kinds}")


def _waited(step: Step, event: events.BackoffOver) -> None:
    place = event.turn, event.index
    done = place in step.at.flying if place in step.before.waits else not step.commands
    must(done, "R10", f"the wait of {place} was over, and made {step.kinds}")


def _child_ended(step: Step, _: events.ChildDone) -> None:
    must(step.before.terminal or step.kinds == ["child.done"], "P6", f"a sub-task ended, and made {step.kinds}")


# --- attempts ---------------------------------------------------------------------------------------------------


def _replied(step: Step, event: events.ModelReplied) -> None:
    said = [row for row in step.rows if row.kind == "model.answered"]
    must([row.data["digest"] for row in said] == [event.digest], "P2", f"{event.digest} was not recorded")
    entered = [(ref.kind, ref.digest) for row in said for ref in row.entries]
    keeps = event.has_text or bool(event.calls)
    must(entered == [("model", event.digest)] * keeps, "R14", f"{event.digest} came to the transcript as {entered}")
    came = {late.key for late in event.late} & step.before.watched
    told = {str(row.data["key"]) for row in step.rows if row.kind == "tool.late"}
    must(told == came, "P4", f"the results of {came} came late, and of {told} it is said")


def _model_failed(step: Step, event: events.ModelFailed) -> None:
    """A model that is not asked again in this turn gives it to the next one, where there is one."""
    must("model.failed" in step.kinds, "P2", "a failed attempt is in no row")
    before, at, failure = step.before, step.at, event.failure
    over = given_up(step, event) or (failure.kind == "model_permanent" and failure.elsewhere)
    if over and before.fallback < len(at.agent.fallbacks) and at.run and not at.winding:
        flight = at.flying.get((event.turn, None))
        by = flight.fallback if isinstance(flight, CallModel) else None
        must(by == before.fallback + 1, "R10", f"model {before.fallback} gave turn {event.turn} to {by}")


def given_up(step: Step, event: events.ModelFailed) -> bool:
    """Whether the model that failed so has no attempt left in its turn, or asks for more time than it gets."""
    agent, failure = step.at.agent, event.failure
    policy = (agent.model, *agent.fallbacks)[step.before.fallback].retry
    refused = (failure.retry_after_ms or 0) > FIRST.retry_after_max_ms
    return failure.kind in SPENDING and (step.before.spent + 1 >= policy.attempts_max or refused)


def _tool_failed(step: Step, event: events.ToolFailed) -> None:
    """A failure that is nobody's fault ends no call; any other ends one that reads, or leaves it unknown."""
    must("tool.failed" in step.kinds, "P2", "a failed attempt is in no row")
    said = _statuses(step.rows, event.index)
    must(not said or event.failure.kind in FOR_GOOD, "R10", f"{event} is no end of its call")
    owed = "error" if _reads(step, event.index) else "unknown"
    must(said in ([], [owed]), "P4", f"call {event.index} may have happened, and its result is {said}")
    looked_up = step.at.open.resolving[event.index]
    must(said != ["unknown"] or looked_up, "P4", f"call {event.index} is unknown, and nobody has looked")


def _tool_finished(step: Step, event: events.ToolFinished) -> None:
    index, kinds = event.index, step.kinds
    must(("tool.told" in kinds) == bool(event.notes), "P6", f"{event.notes} of call {index} were said in {kinds}")
    closed = step.at.open.results.get(index)
    match event.outcome:
        case "result":
            must(closed == event.digest, "R14", f"call {index} has the result {closed}, not {event.digest}")
        case "not_begun":
            must(closed is not None, "R14", f"call {index} was not begun, and is not told so")
        case "closed":
            must("tool.key_closed" in kinds, "P3", f"the key of call {index} was closed, and no row says so")
            said, may = _statuses(step.rows, index), _may_go_on(step, index)
            must(not may or "not_begun" not in said, "P3", f"call {index} may begin under its next key")
            must(may or said == ["not_begun"], "P7", f"call {index} has no key left, and its result is {said}")
        case "asks":
            must("tool.asked" in kinds, "P3", f"call {index} asked, and no row says so")
            must(step.at.winding or _is_asked(step, index), "P4", f"call {index} asked, and nobody is asked")
        case "in_doubt":
            reads = _reads(step, index)
            must(reads or "tool.in_doubt" in kinds, "P4", f"call {index} is in doubt, and no row says so")
            asks = step.at.setting(step.at.open.calls[index].tool) == "ask"
            owed = ["error"] if reads else [] if asks else ["unknown"]
            said = _statuses(step.rows, index)
            must(said == owed, "P4", f"call {index} is in doubt, and its result is {said}, not {owed}")


def _may_go_on(step: Step, index: int) -> bool:
    """Whether a call that did not happen has failures and keys left; one that was only looked up is over."""
    at = step.at.open
    spec = next(spec for spec in step.at.agent.tools if spec.name == at.calls[index].tool)
    left = at.faults.get(index, 0) < spec.retry.attempts_max and at.generation[index] <= FIRST.keys_per_call_max
    return left and not at.resolving[index]


def _is_asked(step: Step, index: int) -> bool:
    """Whether a call that asks has its question open, or asked too often and is looked up."""
    flight = step.at.flying.get((step.at.open.turn, index))
    looked_up = isinstance(flight, CallTool) and flight.resolve_only
    return looked_up or any(name.startswith(f"{step.at.key_of(index)}/ask/") for name in step.at.asks)


def _own_results(step: Step) -> None:
    """P4: what became of a call that was begun is said by its own attempts, and not by what happened elsewhere."""
    at, event = step.at, step.event
    own = event.index if isinstance(event, events.ToolFinished | events.ToolFailed) else None
    for row in step.rows:
        index = row.data.get("index")
        if row.kind == "tool.finished" and isinstance(index, int):
            key = at.key_of(index)
            begun = key in at.keys and key not in at.closed
            must(index == own or not begun, "P4", f"call {index} was begun, and {event} gave it a result")


def _statuses(rows: Sequence[LogEvent], index: int) -> list[object]:
    return [row.data["status"] for row in rows if row.kind == "tool.finished" and row.data["index"] == index]


def _reads(step: Step, index: int) -> bool:
    name = step.at.open.calls[index].tool
    return any(spec.name == name and spec.effect == "read" for spec in step.at.agent.tools)


EFFECTS: dict[type[events.Event], Callable[[Step, Any], None]] = {
    events.Created: _created,
    events.Admitted: _admitted,
    events.Moved: _moved,
    events.Withdrawn: _withdrawn,
    events.StopRequested: _stopped,
    events.CancelRequested: _canceled,
    events.Answered: _answered,
    events.HelpExpired: _expired,
    events.BackoffOver: _waited,
    events.ChildDone: _child_ended,
    events.ModelReplied: _replied,
    events.ModelFailed: _model_failed,
    events.ToolFailed: _tool_failed,
    events.ToolFinished: _tool_finished,
}
"""All but `Stored`, whose effect is what may run then, and `StoreDiverged`, whose effect is an end."""
