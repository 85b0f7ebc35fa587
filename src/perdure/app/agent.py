"""Agents as their authors write them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pydantic import JsonValue

from perdure.core import limits
from perdure.core.agent import ASK_PARTICIPANT, AgentSpec, Budget, ModelSpec, RetryPolicy
from perdure.core.content import Message, ToolCall
from perdure.core.errors import ConfigurationError, InvalidInput
from perdure.core.ports import ModelPort, Store, ToolPort
from perdure.models import open_model
from perdure.temporal.activities import LiveAgent
from perdure.tools import ASK_PARTICIPANT_SCHEMA, LedgerExecutor, question_of

if TYPE_CHECKING:
    from pydantic_ai.models import Model

AGENT_ID_CHARS_MAX = 64


@dataclass(frozen=True)
class Agent:
    """A model, instructions, tools and settings under one id and version.

    Args:
        id: Letters, digits, `-` and `_`; names the agent's task queue.
        model: A pydantic-ai name (`"openai:gpt-5"`), a pydantic-ai `Model`, or any `ModelPort` (a scripted one).
        tools: Functions decorated with `perdure.tool`.
        instructions: The system prompt.
        version: Recorded with every task.
        budget: Bounds of one run; a run that reaches one ends `failed(budget)` and can be gone on with.
        model_timeout_s: Start-to-close of one model call.
        model_heartbeat_timeout_s: How long a silent worker is waited for in a model call.
        model_retry: Attempts and backoff of model calls.
        after_answer: The task's state after a run that answered with nothing left to do.
        on_unanswered: Whether an unanswered end leaves the task open (the next message goes on) or fails it.
        asks: Whether the model may put questions to a person (`ask_participant`).
        description: What it is for, in a sentence: its A2A card says so to other agents and to people.
        direct: Which first messages an A2A client that waits gets answered with a message instead of a task. It is
            called with the message's id and texts, must be quick and must not fail.

    Raises:
        ConfigurationError: Names the field and the fix.
    """

    id: str
    model: "str | Model | ModelPort"
    tools: Sequence[ToolPort] = ()
    instructions: str = ""
    version: str = "1"
    budget: Budget = field(default_factory=Budget)
    model_timeout_s: float = limits.MODEL_TIMEOUT_S
    model_heartbeat_timeout_s: float = limits.HEARTBEAT_TIMEOUT_S
    model_retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(attempts_max=limits.MODEL_ATTEMPTS_MAX))
    after_answer: Literal["completed", "input_required"] = "completed"
    on_unanswered: Literal["input_required", "fail"] = "input_required"
    asks: bool = True
    description: str = ""
    direct: Callable[[Message], bool] | None = None

    def __post_init__(self) -> None:
        plain = self.id.replace("-", "").replace("_", "")
        if not (plain.isascii() and plain.isalnum()) or len(self.id) > AGENT_ID_CHARS_MAX:
            raise ConfigurationError(
                "Agent.id", f"{self.id!r}: use letters, digits, - and _, {AGENT_ID_CHARS_MAX} characters at most"
            )
        names: set[str] = set()
        for tool in self.tools:
            if not hasattr(tool, "spec") or not hasattr(tool, "invoke"):
                name = getattr(tool, "__name__", repr(tool))
                raise ConfigurationError("Agent.tools", f"{name} is no tool; decorate the function with @perdure.tool")
            if tool.spec.name in names:
                raise ConfigurationError("Agent.tools", f"two tools are named {tool.spec.name!r}; rename one")
            names.add(tool.spec.name)

    def spec(self) -> AgentSpec:
        """Return what a task records of the agent."""
        return AgentSpec(
            agent_id=self.id,
            version=self.version,
            model=ModelSpec(
                name=self.model_name,
                timeout_s=self.model_timeout_s,
                heartbeat_timeout_s=self.model_heartbeat_timeout_s,
                retry=self.model_retry,
            ),
            tools=tuple(tool.spec for tool in self.tools),
            budget=self.budget,
            after_answer=self.after_answer,
            on_unanswered=self.on_unanswered,
        )

    @property
    def model_name(self) -> str:
        """The model's name as recorded; opens nothing."""
        if isinstance(self.model, str):
            return self.model
        return str(getattr(self.model, "name", None) or getattr(self.model, "model_name", type(self.model).__name__))

    def live(self, store: Store, worker: str, now_ms: Callable[[], int]) -> LiveAgent:
        """Return the agent as a worker holds it; opens its model.

        Raises `ConfigurationError` when the model's provider is unknown, not installed or has no key.
        """
        tools: Mapping[str, ToolPort] = {tool.spec.name: tool for tool in self.tools}
        model: Any = self.model
        return LiveAgent(
            agent_id=self.id,
            instructions=self.instructions,
            model=model if hasattr(model, "reply") else open_model(model),
            schemas=(*(tool.schema for tool in self.tools), *((ASK_PARTICIPANT_SCHEMA,) if self.asks else ())),
            executor=LedgerExecutor(store, tools, worker, now_ms),
            examine=lambda call: _examine(call, tools, self.asks),
        )


def _examine(call: ToolCall, tools: Mapping[str, ToolPort], asks: bool) -> tuple[str | None, str | None]:
    """Return why a call must not run, or the question that it asks; an unknown tool is the workflow's to answer."""
    if call.arguments is None:
        return f"The arguments are not a JSON object: {call.malformed}", None
    if call.tool == ASK_PARTICIPANT and asks:
        arguments: dict[str, JsonValue] = call.arguments
        try:
            return None, question_of(arguments)
        except InvalidInput as error:
            return str(error), None
    tool = tools.get(call.tool)
    return (tool.problem(call.arguments) if tool is not None else None), None
