"""Rules that can be taken out, one task at a time.

A rule is a piece of one function's source in the core. In a worker of the races each such function stands several
times: as it is, and once without each of its rules. Which one runs follows from the task: one whose id ends with
`-without-NAME` lives without the rule of that name, in the same process as tasks that keep it. So a race and the proof
that its rule is what decides it cost one stage.
"""

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from perdure.core.machine import admission, attempts, calls, run, turn
from perdure.core.state import TaskState

MARK = "-without-"
HEAD = 'if end != "answered":\n        draft.set(head=number)'


@dataclass(frozen=True)
class Rule:
    """`old` in the source of `function`, and what stands there without the rule."""

    function: Any
    old: str
    new: str


RULES: dict[str, Rule] = {
    "an-unanswered-end-parks": Rule(run._end, HEAD, "pass"),
    "a-stopped-end-parks": Rule(run._end, HEAD, 'if end == "failed":\n        draft.set(head=number)'),
    "a-known-message-is-known": Rule(
        admission.resend, "if seen_id == message_id:", "if seen_id == message_id and number == state.last_number:"
    ),
    "a-death-is-no-end": Rule(
        turn.model_failed,
        "if isinstance(next_step, GiveUp):",
        'if isinstance(next_step, GiveUp) or failure.kind == "worker_died":',
    ),
    "an-open-run-takes-what-is-parked": Rule(
        run._joining, 'if p.lane == "queue"', 'if p.lane == "queue" and state.runnable(p)'
    ),
    "answered-needs-empty-lanes": Rule(
        run._between,
        "if not joining and (run.answered or not run.fed):\n        if draft.state.inbox:",
        "if run.answered or not (joining or run.fed):\n        if draft.state.inbox and not run.answered:",
    ),
    "a-move-moves-the-tail": Rule(admission.moved, "tail=number", "tail=p.tail"),
    "a-steer-can-be-moved": Rule(
        admission.moved,
        "if p.message_id == event.message_id else p",
        'if p.message_id == event.message_id and p.lane != "steer" else p',
    ),
    "what-is-taken-back-is-gone": Rule(admission.withdrawn, "if p.message_id != event.message_id", "if True"),
    "an-end-is-decided-once": Rule(admission.stop_requested, "if state.run.ending is None:", "if True:"),
    "nothing-to-stop-is-no-event": Rule(admission.stop_requested, "if state.about_to_open:", "if True:"),
    "a-stop-counts-before-the-run": Rule(admission.stop_requested, "if state.about_to_open:", "if False:"),
    "a-stop-before-the-run-parks": Rule(admission.stop_requested, "draft.set(head=number)", "pass"),
    "no-model-attempt-after-a-stop": Rule(turn.model_failed, "if draft.run.ending is not None:", "if False:"),
    "no-tool-attempt-after-a-stop": Rule(calls.tool_failed, "draft.run.ending is not None or ", ""),
    "waits-end-with-their-run": Rule(admission.wind_down, "draft.set_turn(ops=None)", "pass"),
    "open-calls-get-a-result": Rule(run._from_idle, "resume_calls(draft)", "draft.set(turn=None)"),
    "a-shutdown-is-no-crash": Rule(
        attempts.count_crash, 'failure.kind != "worker_died"', 'failure.kind not in {"worker_died", "shutdown"}'
    ),
    "only-deaths-alone-count": Rule(attempts.count_crash, "if not failure.alone:", "if False:"),
}


def without(name: str, rule: Rule) -> FunctionType:
    """Return the rule's function as it is without it."""
    function: FunctionType = rule.function
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(rule.old) != 1:
        raise LookupError(f"{name}: {function.__qualname__} has {source.count(rule.old)} times {rule.old!r}")
    space = dict(function.__globals__)
    exec(source.replace(rule.old, rule.new), space)  # its own source, with one piece replaced
    made: FunctionType = space[function.__name__]
    return made


def take_out(rules: Mapping[str, Rule] = RULES) -> None:
    """Let every task of this process that names one of the rules live without it. Once in a process."""
    functions: dict[int, tuple[FunctionType, dict[str, FunctionType]]] = {}
    for name, rule in rules.items():
        function, versions = functions.setdefault(id(rule.function), (rule.function, {}))
        versions[name] = without(name, rule)
    for function, versions in functions.values():
        _divide(function, versions)


def _divide(function: FunctionType, versions: Mapping[str, FunctionType]) -> None:
    """Exchange the function's code in place, so that all who have it by import get the choice."""
    kept = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    kept.__kwdefaults__ = function.__kwdefaults__

    def choose(given: tuple[Any, ...]) -> Callable[..., Any]:
        _, _, name = _task_of(given[0]).partition(MARK)
        return versions.get(name, kept)

    chooser = f"_which_{function.__name__}"
    function.__globals__[chooser] = choose
    space: dict[str, Any] = {}
    exec(f"def chosen(*given, **named):\n    return {chooser}(given)(*given, **named)", space)
    function.__code__ = space["chosen"].__code__
    function.__defaults__ = function.__kwdefaults__ = None


def _task_of(first: Any) -> str:
    """Return the task whose machine is at work: every function of the core begins with its state or a draft of it."""
    state: TaskState = first if isinstance(first, TaskState) else first.state
    return state.task_id
