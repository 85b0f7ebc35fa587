"""A tool as its operator has it: what its author declared, under what an agent's file says over it."""

from pydantic import JsonValue

from perdure.core.agent import ToolSpec
from perdure.core.artifacts import Returned
from perdure.core.errors import ConfigurationError
from perdure.core.ports import Call, Check, ToolPort, ToolSchema
from perdure.core.tool_calls import Reads
from perdure.core.tool_rules import ToolRules, checked_spec, settling_s


class RuledTool:
    """A tool with another spec; everything else is the tool's own."""

    def __init__(self, tool: ToolPort, rules: ToolRules, spec: ToolSpec, settle_s: float) -> None:
        self._tool = tool
        self._rules = rules
        self._spec = spec
        self._settle_s = settle_s

    @property
    def spec(self) -> ToolSpec:
        """What the workflow records of the tool."""
        return self._spec

    @property
    def schema(self) -> ToolSchema:
        """What the model sees of the tool."""
        return self._tool.schema

    @property
    def settle_s(self) -> float:
        """Seconds between the end of a call and its check."""
        return self._settle_s

    @property
    def effect_from(self) -> str:
        """Who says its effect class: the rules, or its function."""
        return "declared" if self._rules.effect is None else "rule"

    @property
    def check_name(self) -> str:
        """The name of the tool's own check, for people."""
        return str(getattr(self._tool, "check_name", ""))

    def problem(self, arguments: dict[str, JsonValue]) -> str | None:
        """Return why these arguments break the schema, or None."""
        return self._tool.problem(arguments)

    def as_read(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        """Return the arguments as the tool will get them; see `Reads`."""
        return self._tool.as_read(arguments) if isinstance(self._tool, Reads) else dict(arguments)

    async def invoke(self, arguments: dict[str, JsonValue], call: Call) -> Returned:
        """Call it once; see `ToolPort.invoke`."""
        return await self._tool.invoke(arguments, call)

    async def check(self, call: Call) -> Check:
        """Ask the tool's own check; see `ToolPort.check`."""
        return await self._tool.check(call)


def ruled(tool: ToolPort, rules: ToolRules) -> RuledTool:
    """Return the tool under these rules.

    A class that is changed brings its own default for running beside other calls.

    Raises `ConfigurationError` where they cannot hold together, and for a `check`: that of a function is its author's.
    """
    old = tool.spec
    if rules.check is not None:
        raise ConfigurationError(f"tool {old.name!r}, check", "a function's check is named where it is declared")
    if rules.failed is not None:
        raise ConfigurationError(f"tool {old.name!r}, failed", "is for MCP servers; a function raises ToolError")
    effect = old.effect if rules.effect is None else rules.effect
    parallel = old.parallel if rules.effect in {None, old.effect} else None
    in_doubt = old.in_doubt if effect != "read" else "tell"
    spec = checked_spec(
        old.name,
        effect=effect,
        parallel=parallel if rules.parallel is None else rules.parallel,
        in_doubt=in_doubt if rules.in_doubt is None else rules.in_doubt,
        timeout_s=old.timeout_s if rules.timeout_s is None else rules.timeout_s,
        heartbeat_timeout_s=old.heartbeat_timeout_s if rules.heartbeat_timeout_s is None else rules.heartbeat_timeout_s,
        retry=old.retry if rules.retry is None else rules.retry,
    )
    spec = spec.model_copy(update={"ask": old.ask})  # whom a call waits for is its author's, or Agent.approvals'
    settle_s = tool.settle_s
    if rules.settle_s is not None:
        settle_s = settling_s(old.name, rules.settle_s, spec.timeout_s)
    elif settle_s:
        settle_s = min(settle_s, settling_s(old.name, None, spec.timeout_s))
    return RuledTool(tool, rules, spec, settle_s)
