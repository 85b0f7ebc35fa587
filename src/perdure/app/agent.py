"""Agents as their authors write them."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from perdure.app.call_examining import Examiner, refuse_expiry, refuse_idle_rules, rules_of
from perdure.core import limits
from perdure.core.agent import AgentSpec, Budget, ModelSpec, RetryPolicy
from perdure.core.bounds import bounds_now
from perdure.core.content import Message
from perdure.core.errors import ConfigurationError, InvariantBroken
from perdure.core.ports import ModelPort, Store, ToolPort
from perdure.core.rulebook import ApprovalRule
from perdure.core.sources import ToolSource
from perdure.models import open_model
from perdure.temporal.activities import LiveAgent
from perdure.tools import ASK_PARTICIPANT_SCHEMA, LedgerExecutor

if TYPE_CHECKING:
    from pydantic_ai.models import Model

AGENT_ID_CHARS_MAX = 64


@dataclass(frozen=True)
class Agent:
    """A model, instructions, tools and settings under one id and version.

    Args:
        id: Letters, digits, `-` and `_`; names the agent's task queue.
        model: A pydantic-ai name (`"openai:gpt-5"`), a pydantic-ai `Model`, or any `ModelPort` (a scripted one).
        tools: Functions decorated with `perdure.tool`, and sources of tools: an `McpServer`, an `OpenApiTools`.
        instructions: The system prompt.
        version: Recorded with every task.
        budget: Bounds of the work on one answer; a run that reaches one ends `failed(budget)` and can be gone on with.
        model_timeout_s: Start-to-close of one model call.
        model_heartbeat_timeout_s: How long a silent worker is waited for in a model call.
        model_retry: Attempts and backoff of model calls.
        after_answer: The task's state after a run that answered with nothing left to do.
        on_unanswered: Whether an unanswered end leaves the task open (the next message goes on) or fails it.
        asks: Whether the model may put questions to a person (`ask_participant`).
        description: What it is for, in a sentence: its A2A card says so to other agents and to people.
        direct: Which first messages an A2A client that waits gets answered with a message instead of a task. It is
            called with the message's id and texts, must be quick and must not fail.
        fallbacks: Further models, in order. The next one takes over for a turn when the one before it is down past its
            retries, asks for a longer wait than `model_retry` would make, or refuses whoever asks it (a key, a quota);
            the next turn begins with `model` again.
        approvals: Rules for calls of tools, in order: the first one that fits allows a call, denies it, or asks a
            person first. They go before a tool's own `ask`. What they come to is recorded when the model asks for the
            call.
        asks_expire_in_s: After so many seconds without an answer the model is told that there is none, where it gave
            no time of its own. None: its questions wait for ever.

    Raises:
        ConfigurationError: Names the field and the fix.
    """

    id: str
    model: "str | Model | ModelPort"
    tools: Sequence[ToolPort | ToolSource] = ()
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
    fallbacks: "Sequence[str | Model | ModelPort]" = ()
    approvals: Sequence[ApprovalRule] = ()
    asks_expire_in_s: float | None = None

    def __post_init__(self) -> None:
        plain = self.id.replace("-", "").replace("_", "")
        if not (plain.isascii() and plain.isalnum()) or len(self.id) > AGENT_ID_CHARS_MAX:
            raise ConfigurationError(
                "Agent.id", f"{self.id!r}: use letters, digits, - and _, {AGENT_ID_CHARS_MAX} characters at most"
            )
        if isinstance(self.fallbacks, str):
            raise ConfigurationError("Agent.fallbacks", f"{self.fallbacks!r} is one model; write [{self.fallbacks!r}]")
        if len(self.fallbacks) > limits.FALLBACKS_MAX:
            raise ConfigurationError(
                "Agent.fallbacks", f"there are {len(self.fallbacks)}; name {limits.FALLBACKS_MAX} at most"
            )
        named = [model for model in self.models if isinstance(model, str)]
        for name in named:
            if named.count(name) > 1:
                raise ConfigurationError(
                    "Agent.fallbacks", f"{name!r} is named twice; name other models than the first"
                )
        names: set[str] = set()
        for tool in self.tools:
            name = _name_of(tool)
            if name in names:
                raise ConfigurationError("Agent.tools", f"two tools are named {name!r}; rename one")
            names.add(name)
        rules_of(self.approvals, [tool for tool in self.tools if not isinstance(tool, ToolSource)])
        refuse_expiry("Agent.asks_expire_in_s", self.asks_expire_in_s)

    def spec(self) -> AgentSpec:
        """Return what a task records of the agent."""
        return AgentSpec(
            agent_id=self.id,
            version=self.version,
            model=self._model_spec(self.model),
            fallbacks=tuple(self._model_spec(model) for model in self.fallbacks),
            tools=tuple(tool.spec for tool in self.known_tools),
            budget=self.budget,
            after_answer=self.after_answer,
            on_unanswered=self.on_unanswered,
            bounds=bounds_now(),
        )

    def _model_spec(self, model: "str | Model | ModelPort") -> ModelSpec:
        return ModelSpec(
            name=name_of_model(model),
            timeout_s=self.model_timeout_s,
            heartbeat_timeout_s=self.model_heartbeat_timeout_s,
            retry=self.model_retry,
        )

    @property
    def models(self) -> "tuple[str | Model | ModelPort, ...]":
        """The model and its fallbacks, in the order in which a turn asks them."""
        return (self.model, *self.fallbacks)

    @property
    def model_name(self) -> str:
        """The model's name as recorded; opens nothing."""
        return name_of_model(self.model)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["Agent"]:
        """Give this agent with its sources of tools opened: its `tools` are then tools only.

        The sources are closed at the end; what they said of their tools stays known. An agent without sources is given
        as it is.

        Raises:
            ConfigurationError: A source's setting, rule or tool cannot work, or two tools have one name.
            Unavailable: A source does not answer.
        """
        async with contextlib.AsyncExitStack() as stack:
            tools: list[ToolPort] = []
            for tool in self.tools:
                if isinstance(tool, ToolSource):
                    tools.extend(await stack.enter_async_context(tool.opened()))
                else:
                    tools.append(tool)
            yield replace(self, tools=tools) if any(isinstance(tool, ToolSource) for tool in self.tools) else self

    @property
    def known_tools(self) -> tuple[ToolPort, ...]:
        """Its tools, all of which are known only once it is opened where it has sources of tools."""
        known = []
        for tool in self.tools:
            if isinstance(tool, ToolSource):
                raise InvariantBroken("P11", f"the tools of {tool.name!r} are not known before its agent is opened")
            known.append(tool)
        return tuple(known)

    def live(self, store: Store, worker: str, now_ms: Callable[[], int]) -> LiveAgent:
        """Return the agent as a worker holds it; opens its model.

        Raises `ConfigurationError` when the model's provider is unknown, not installed or has no key, or when a rule
        of approval names a tool that is not there.
        """
        tools: Mapping[str, ToolPort] = {tool.spec.name: tool for tool in self.known_tools}
        model, *fallbacks = (opened_model(model) for model in self.models)
        refuse_idle_rules(self.approvals, tools)
        examiner = Examiner(tools, rules_of(self.approvals, tools.values()), self.asks, self.asks_expire_in_s)
        return LiveAgent(
            agent_id=self.id,
            instructions=self.instructions,
            model=model,
            schemas=(*(tool.schema for tool in tools.values()), *((ASK_PARTICIPANT_SCHEMA,) if self.asks else ())),
            executor=LedgerExecutor(store, tools, worker, now_ms),
            examine=examiner,
            fallbacks=tuple(fallbacks),
        )


def _name_of(tool: ToolPort | ToolSource) -> str:
    """Return what no other tool or source of the agent may be called."""
    if isinstance(tool, ToolSource):
        return f"{tool.name}.*"
    if not hasattr(tool, "spec") or not hasattr(tool, "invoke"):
        name = getattr(tool, "__name__", repr(tool))
        raise ConfigurationError("Agent.tools", f"{name} is no tool; decorate the function with @perdure.tool")
    return tool.spec.name


def name_of_model(model: Any) -> str:
    """Return the name under which a model is recorded; opens nothing."""
    if isinstance(model, str):
        return model
    name = getattr(model, "name", None)
    if name is None and hasattr(model, "system"):  # pydantic-ai's own
        name = f"{model.system}:{model.model_name}"
    return str(name or type(model).__name__)


def opened_model(model: Any) -> ModelPort:
    """Return the model to ask; raises `ConfigurationError` for a provider unknown, not installed or without a key."""
    given: ModelPort = model
    return given if hasattr(model, "reply") else open_model(model)
