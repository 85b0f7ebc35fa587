"""What a task must know of its agent: recorded in its start, so that nothing is decided by what changed since.

The live agent (instructions, Python functions, model objects) stays with the workers; this is its shape.
"""

from typing import Literal

from pydantic import Field

from perdure.core import limits
from perdure.core.bounds import FIRST, Bounds
from perdure.core.content import Frozen

EffectClass = Literal["read", "idempotent", "once"]

InDoubt = Literal["tell", "ask", "fail"]
"""What follows when nobody can tell whether an effect happened: the model is told, a person is asked, the run fails."""

ASK_PARTICIPANT = "ask_participant"
"""The intrinsic tool that puts a question to a person; the workflow answers it, no activity runs."""


class RetryPolicy(Frozen):
    """How often and how fast failed attempts are made again. Delays in milliseconds, jittered down to half."""

    attempts_max: int = Field(ge=1)
    first_ms: int = Field(default=limits.BACKOFF_FIRST_MS, ge=0)
    factor: float = Field(default=limits.BACKOFF_FACTOR, ge=1)
    delay_max_ms: int = Field(default=limits.BACKOFF_MAX_MS, ge=0)


class ToolSpec(Frozen):
    """A tool as the workflow sees it. Times in seconds.

    `ask` is the condition under which a call of it waits for a person (`rulebook.py`); "True": each call does.
    `schema_digest` names what calls of a source's tool are held to (`tool_rules.schema_digest`), as it was when the
    task began. None for what has no source that could change it meanwhile; then it does not show (P11).
    """

    name: str
    effect: EffectClass = "once"
    parallel: bool = False
    in_doubt: InDoubt = "tell"
    timeout_s: float = Field(default=limits.TOOL_TIMEOUT_S, gt=0)
    heartbeat_timeout_s: float = Field(default=limits.HEARTBEAT_TIMEOUT_S, gt=0)
    retry: RetryPolicy = RetryPolicy(attempts_max=limits.TOOL_ATTEMPTS_MAX)
    schema_digest: str | None = Field(default=None, exclude_if=lambda given: given is None)
    ask: str = Field(default="", exclude_if=lambda given: given == "")


class ModelSpec(Frozen):
    """The model as the workflow sees it. Times in seconds."""

    name: str
    timeout_s: float = Field(default=limits.MODEL_TIMEOUT_S, gt=0)
    heartbeat_timeout_s: float = Field(default=limits.HEARTBEAT_TIMEOUT_S, gt=0)
    retry: RetryPolicy = RetryPolicy(attempts_max=limits.MODEL_ATTEMPTS_MAX)


class Budget(Frozen):
    """What the work on one answer may use, checked before each model call; None means no bound.

    It is counted from the start of a run, and anew from each answer in it: messages that wait in a queue are answered
    by one run, and have a budget each. Times in seconds, without those of waiting for a person.
    """

    turns_max: int = Field(default=limits.RUN_TURNS_MAX, ge=1)
    tokens_max: int | None = Field(default=None, ge=1)
    cost_usd_max: float | None = Field(default=None, gt=0)
    wall_s_max: float | None = Field(default=None, gt=0)


class AgentSpec(Frozen):
    """An agent's shape. `after_answer` is the state after a run that answered with nothing left to do.

    `fallbacks` take over for a turn, in order, when the model before them is down. `bounds` are the limits that hold
    for the task; of them only what differs from the first ones shows. A field that is not used does not
    show: what was recorded before there was one must come out the same (P11).
    """

    agent_id: str
    version: str = "1"
    model: ModelSpec
    fallbacks: tuple[ModelSpec, ...] = Field(default=(), exclude_if=lambda given: given == ())
    tools: tuple[ToolSpec, ...] = ()
    budget: Budget = Budget()
    after_answer: Literal["completed", "input_required"] = "completed"
    on_unanswered: Literal["input_required", "fail"] = "input_required"
    crashes_max: int = Field(default=limits.CRASHES_MAX, ge=1)
    bounds: Bounds = Field(default=FIRST, exclude_if=lambda given: given == FIRST)

    def tool(self, name: str) -> ToolSpec | None:
        """Return the tool of that name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def models(self) -> tuple[ModelSpec, ...]:
        """The model and its fallbacks, in the order in which a turn asks them."""
        return (self.model, *self.fallbacks)
