"""Ends and their causes: what must end a run does so at once and under its own reason, and nothing else ends one.

From the end follows where the task stands (R13). What a budget allows is counted here, from the rows (R10).
"""

from perdure.core import events
from perdure.core.bounds import FIRST
from perdure.core.commands import CallModel, CallTool, Persist
from perdure.core.log import LogEvent
from tests.core.deeds import given_up
from tests.core.moment import AT_ODDS, Step
from tests.core.witness import must

End = tuple[str, str]
"""How a run ends, or a task stands, and why."""


class Ends:
    """How the task's runs end, and where it stands."""

    def __init__(self) -> None:
        self._decided: End | None = None
        self._standing: End = ("submitted", "")
        self._turns, self._tokens, self._began_ms, self._idle_ms, self._last_ms = 0, 0, 0, 0, 0
        self._answer_entry = 0

    def settle(self, step: Step) -> None:
        """Raise what is wrong about how the open run ends or goes on, and about where the task stands."""
        self._count(step)
        self._in_time(step)
        self._decides(step)
        self._stands(step)
        persists = sum(isinstance(command, Persist) for command in step.commands)
        closes = step.at.terminal and not step.before.terminal
        must(persists == (step.end is not None or closes), "P5", f"the state was persisted {persists} times")

    # --- budgets ------------------------------------------------------------------------------------------------

    def _count(self, step: Step) -> None:
        if self._standing == ("input_required", "help"):
            self._idle_ms += step.event.at_ms - self._last_ms
        self._last_ms = step.event.at_ms
        budget = step.at.agent.budget
        for row in step.rows:
            if row.kind == "model.answered" and isinstance(step.event, events.ModelReplied):
                self._tokens += step.event.usage.input_tokens + step.event.usage.output_tokens
                self._answer_entry = row.entries[0].entry if row.entries else 0
            if row.kind == "run.started" or (row.kind == "model.answered" and _answers(row)):
                self._turns, self._tokens, self._began_ms, self._idle_ms = 0, 0, row.at_ms, 0
            elif row.kind == "model.started" and row.data["attempt"] == 1:
                within = self._turns < budget.turns_max
                within = within and (budget.tokens_max is None or self._tokens < budget.tokens_max)
                must(within, "R10", f"turn {row.turn} is one too many for the budget")
                self._turns += 1

    def _in_time(self, step: Step) -> None:
        """No attempt begins once the run's time is up; what goes on after a wait or a word was begun in time."""
        bound_s = step.at.agent.budget.wall_s_max
        if bound_s is None or isinstance(step.event, events.BackoffOver | events.Answered):
            return
        begin = [
            c for c in step.commands if isinstance(c, CallModel) or (isinstance(c, CallTool) and not c.resolve_only)
        ]
        used_s = (step.event.at_ms - self._began_ms - self._idle_ms) / 1000
        must(not begin or used_s < bound_s, "R10", f"{begin} after {used_s} s of {bound_s}")

    # --- causes and ends ----------------------------------------------------------------------------------------

    def _decides(self, step: Step) -> None:
        before, at, row, now = step.before, step.at, step.end, self._now(step)
        if before.run and before.winding:
            must(now == self._decided, "R8", f"the run was to end as {self._decided}, not {now}")
        elif before.run or at.run or row:
            due = _due(step)
            must(due in {None, now}, "R10", f"the run was to end as {due}, not {now}")
            must(now in {None, due} or self._may_end(now, step), "R10", f"{step.event} ends no run as {now}")
        if now is not None and now not in {("answered", ""), ("stopped", "withdrawn")}:
            must(at.told_to_stop == at.runs, "R10", f"run {at.runs} ends and its attempts were not told")
            must(at.fence >= at.runs, "P9", f"run {at.runs} ends and nothing is fenced")
        if row is not None and now is not None:
            entry = self._answer_entry if now == ("answered", "") else 0
            must(row.data["answer_entry"] == entry, "R10", f"{row.data['answer_entry']} is not the answer {entry}")
        self._decided = now if row is None else None

    def _now(self, step: Step) -> End | None:
        """How the run has ended, or is to end."""
        if step.end is not None:
            return str(step.end.data["end"]), str(step.end.data["reason"])
        ending = step.state.run.ending if step.state.run is not None else None
        return None if ending is None else (ending.end, ending.reason)

    def _may_end(self, end: End | None, step: Step) -> bool:
        """Whether this may end a run that need not have ended."""
        at, event, budget = step.at, step.event, step.at.agent.budget
        if end == ("answered", ""):
            return at.answered and not at.pending
        if end == ("stopped", "withdrawn"):
            return not at.fed and not at.pending
        if end == ("failed", "budget"):
            others = (budget.wall_s_max, budget.tokens_max, budget.cost_usd_max)
            return self._turns >= budget.turns_max or any(bound is not None for bound in others)
        if end == ("failed", "model") and isinstance(event, events.ModelFailed):
            return given_up(step, event)
        return end == ("failed", "tool") and len(at.doubts) >= FIRST.doubts_max

    # --- where the task stands ----------------------------------------------------------------------------------

    def _stands(self, step: Step) -> None:
        """R13: the state that follows from the end and the agent's settings, and from what the task waits for."""
        at, end = step.at, step.end
        if end is not None:
            self._standing = _after(step, str(end.data["end"]), str(end.data["reason"]))
            said = [row.data["message"] for row in step.rows if row.kind == "task.status" and row.number > end.number]
            told = at.canceling or end.data["end"] == "answered" or said == [end.data["message"]]
            must(told, "R13", f"the status says {said}, the end {end.data['message']}")
        elif at.run and not at.winding:
            waits = at.asks and not at.flying and not at.waits
            self._standing = ("input_required", "help") if waits else ("working", "")
        elif at.run:
            self._standing = self._standing if step.before.winding else (step.state.status, step.state.reason)
        elif not step.before.terminal:
            self._standing = _without_a_run(step, self._standing)
        stands = step.state.status, step.state.reason
        must(stands == self._standing, "R13", f"the task is {stands}, not {self._standing}")


def _due(step: Step) -> End | None:
    """What this must end the open run with; None where it need not end."""
    unknown = [str(row.data["tool"]) for row in step.rows if row.kind == "tool.in_doubt"]
    match step.event:
        case events.StopRequested() if step.before.run:
            return "stopped", "stopped"
        case events.CancelRequested() if step.before.run:
            return "stopped", "canceled"
        case events.StoreDiverged() if step.before.run:
            return "failed", "store"
        case events.ModelReplied(finish="length"):
            return "failed", "truncated"
        case events.ModelReplied(finish="refusal"):
            return "failed", "refusal"
    failed = _due_of_failure(step)
    if failed is None and any(step.at.setting(tool) == "fail" for tool in unknown):
        return "failed", "tool"
    return failed


def _due_of_failure(step: Step) -> End | None:
    failure, last = step.failure, step.before.fallback == len(step.at.agent.fallbacks)
    if failure is None:
        return None
    if step.before.at_the_limit:
        return "failed", "crash_loop"
    if failure.kind in AT_ODDS:
        return "failed", "store"
    if failure.kind == "model_permanent" and (last or not failure.elsewhere):
        return "failed", "model"
    return None


def _after(step: Step, end: str, reason: str) -> End:
    agent = step.at.agent
    if step.at.canceling:
        return "canceled", "canceled"
    if end == "answered":
        return ("completed", "") if agent.after_answer == "completed" else ("input_required", "answered")
    # Where store and history disagree, a person must look in any case.
    return ("failed" if agent.on_unanswered == "fail" and reason != "store" else "input_required"), reason


def _without_a_run(step: Step, standing: End) -> End:
    match step.event:
        case events.CancelRequested():
            return "canceled", "canceled"
        case events.StopRequested() if step.before.runnable:
            return "input_required", "stopped"
        case events.StoreDiverged():
            return "input_required", "store"
    return standing


def _answers(row: LogEvent) -> bool:
    """Whether this row of a reply says that it answered: it asks for nothing more, and is whole."""
    return row.data["finish"] == "stop" and not row.data["calls"]
