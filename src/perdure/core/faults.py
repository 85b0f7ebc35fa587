"""Fault points: the exact instructions between two facts, by name, so that a test can kill a process right there.

Every promise is broken, if at all, between two facts that are recorded in two places: the effect happened and the
ledger does not know, the store has it and the workflow was not told. A sleep and a random kill hit such a moment once
in a thousand times; a named point hits it each time.

The code says where it is with `reach`, which does nothing unless a hook was installed. Only a worker or a server that
was started with `PERDURE_FAULT` installs one (`app/faults.py`); it kills its own process there. In workflow code a
point is reached through `temporal.fault_points`, which stays silent while history is replayed.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from perdure.core.errors import ConfigurationError

POINTS: dict[str, str] = {
    "tool.before_begun": "the attempt has arrived, and the ledger was not asked",
    "tool.begun": "`begun` is in the ledger, and the tool was not called",
    "tool.inside": "the tool was called and waits for something",
    "tool.after_effect": "the tool has returned, and its result is in no ledger",
    "tool.asked": "what a call asks a person is in the ledger, and nobody was told",
    "tool.done": "the result is in the ledger, and nobody was told",
    "tool.before_completion": "the attempt is about to tell its workflow",
    "tool.checked": "a tool's check has answered, and its answer is recorded nowhere",
    "tool.key_closed": "a key is closed in the ledger, and the workflow was not told",
    "model.before_start": "the attempt has arrived, and its start row was not written",
    "model.started": "the start row is in the store, and the model was not called",
    "model.inside": "the model was called and has not answered",
    "model.replied": "the model has answered, and its answer is recorded nowhere",
    "model.recorded": "the answer is in the store, and the workflow was not told",
    "run.promoted": "a message came into the run, and the workflow task that did it is not complete",
    "help.answering": "an answer has arrived, and the workflow task that took it is not complete",
    "help.closing": "a question is closed unanswered, and the workflow task that did it is not complete",
    "run.ending": "the run's end is decided, and the workflow task that did it is not complete",
    "stop.recorded": "a stop is recorded, and the workflow task that did it is not complete",
    "message.changed": "a waiting message was moved or taken back, and the workflow task that did it is not complete",
    "intake.before": "a message's rows have arrived at a worker, and are not in the store",
    "intake.after": "a message's rows are in the store, and the workflow was not told",
    "emit_event.before": "rows have arrived at a worker, and are not in the store",
    "emit_event.after": "rows are in the store, and the workflow was not told",
    "persist.before": "an end or a fence has arrived at a worker, and is not in the store",
    "persist.after": "an end or a fence is in the store, and the workflow was not told",
    "send.arrived": "a client's message has arrived at a server, and nobody was told of it",
    "send.claimed": "the context that a client's first message names is its own, and no task was started in it",
    "send.started": "a client's first message has started its task, and the server has written no row of it",
    "send.shown": "the task of a client's first message is listed, and the client was not told",
    "send.admitted": "a client's further message is durable with its task, and the client was not told",
    "push.taken": "a receiver has taken a notification, and its cursor does not know",
    "store.committed": "any transaction of the store has committed, and its caller was not told",
}
"""Every point, and what is true there."""

Hook = Callable[[str, tuple[str, ...]], None]
"""Takes a point's name, and the names of what it concerns: a task's id, a message's, a tool's or a model's name."""

_hooks: list[Hook] = []


def reach(point: str, *concerns: str) -> None:
    """Say that this point was reached. Does nothing unless a hook is installed."""
    for hook in _hooks:
        hook(point, concerns)


def install(hook: Hook) -> None:
    """Let `hook` be told of every point that this process reaches, until it is removed."""
    _hooks.append(hook)


def remove(hook: Hook) -> None:
    """Take a hook out again; one that is not installed is no error."""
    if hook in _hooks:
        _hooks.remove(hook)


@dataclass(frozen=True)
class Fault:
    """A point at which to die: the `nth` time that this process reaches it, for `concern` only where one is given."""

    point: str
    concern: str = ""
    nth: int = 1

    def __str__(self) -> str:
        """Return it as `PERDURE_FAULT` has it."""
        concern = f":{self.concern}" if self.concern else ""
        return f"{self.point}{concern}{f'@{self.nth}' if self.nth > 1 else ''}"

    def matches(self, point: str, concerns: tuple[str, ...]) -> bool:
        """Whether reaching `point` counts for this fault."""
        return point == self.point and (not self.concern or self.concern in concerns)


FIELD = "PERDURE_FAULT"
"""The environment variable that names the faults of a worker; errors name it."""

_WRITTEN = re.compile(r"(?P<point>[a-z_.]+)(:(?P<concern>[A-Za-z0-9_.-]+))?(@(?P<nth>[1-9][0-9]{0,5}))?")


def read_faults(text: str) -> tuple[Fault, ...]:
    """Read `point[:tool, model or task][@nth]`, several separated by commas.

    Raises `ConfigurationError` for what is no point, naming those there are.
    """
    return tuple(_read(part.strip()) for part in text.split(",") if part.strip())


def _read(part: str) -> Fault:
    found = _WRITTEN.fullmatch(part)
    if found is None:
        raise ConfigurationError(FIELD, f"{part!r} is no fault; write point, point:tool, point@3 or point:tool@3")
    if found["point"] not in POINTS:
        raise ConfigurationError(FIELD, f"there is no point {found['point']!r}; the points: {', '.join(POINTS)}")
    return Fault(found["point"], found["concern"] or "", int(found["nth"] or 1))
