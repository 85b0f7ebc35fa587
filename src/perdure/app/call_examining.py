"""A model's calls as a worker looks at them: may they run, must a person be asked, or what do they ask themselves?

What is found is recorded with the reply, so that no replay looks again (P11). A call that breaks its tool's schema is
not held to the rules: it does not run in any case, and the model corrects it first. Of a tool that this worker does not
have nothing is known, and that is said: its task may know it, and another worker have it.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from perdure.core import asking_limits
from perdure.core.agent import ASK_PARTICIPANT
from perdure.core.content import ToolCall
from perdure.core.errors import ConfigurationError, InvalidInput
from perdure.core.ports import ToolPort, ToolSchema
from perdure.core.questions import Examined
from perdure.core.rulebook import ApprovalRule, Rulebook
from perdure.core.tool_calls import Reads
from perdure.core.tool_rules import is_offered, is_pattern
from perdure.tools import manner_of, question_of

_EVERY: Final = "*"
"""Fits whatever tools there are, and is never a slip of the pen."""

_NAMED_MAX: Final = 50
"""Names that an error lists; a longer list is not read."""

_MEND: Final = "correct it, or take the rule out"


class Examiner:
    """Looks at calls of one agent's tools.

    Args:
        tools: By name.
        rules: The agent's and its tools' own.
        asks: Whether the model may put questions.
        asks_expire_in_s: When a question expires that says nothing of it; None: never.
    """

    def __init__(
        self, tools: Mapping[str, ToolPort], rules: Rulebook, asks: bool, asks_expire_in_s: float | None
    ) -> None:
        self._tools = tools
        self._rules = rules
        self._readers = {
            name: tool for name, tool in tools.items() if isinstance(tool, Reads) and rules.looks_at_arguments(name)
        }
        self._asks = asks
        self._asks_expire_in_s = asks_expire_in_s

    def __call__(self, call: ToolCall) -> Examined:
        """Return what is found of a call; one of an unknown tool is the workflow's to answer."""
        if call.arguments is None:
            return Examined(problem=f"The arguments are not a JSON object: {call.malformed}")
        if call.tool == ASK_PARTICIPANT and self._asks:
            return self._question(call.arguments)
        tool = self._tools.get(call.tool)
        if tool is None:
            return Examined(unknown=True)
        problem = tool.problem(call.arguments)
        if problem is not None:
            return Examined(problem=problem)
        reader = self._readers.get(call.tool)
        read = None if reader is None else reader.as_read(call.arguments)
        return Examined(ruling=self._rules.ruling(call.tool, call.arguments, defaults_of(tool.schema), read))

    def _question(self, arguments: dict[str, JsonValue]) -> Examined:
        try:
            return Examined(question=question_of(arguments), manner=manner_of(arguments, self._asks_expire_in_s))
        except InvalidInput as error:
            return Examined(problem=str(error))


def rules_of(approvals: Sequence[ApprovalRule], tools: Collection[ToolPort] | Iterable[ToolPort]) -> Rulebook:
    """Return the rules for these tools; raises `ConfigurationError` for one that cannot work."""
    known = list(tools)
    for rule in approvals:
        if not isinstance(rule, ApprovalRule):
            raise ConfigurationError(
                "Agent.approvals", f'{rule!r} is no rule; write ApprovalRule(then="ask", tool="refund")'
            )
    arguments = {tool.spec.name: _properties(tool.schema) for tool in known if _names_all(tool.schema)}
    return Rulebook(approvals, [tool.spec for tool in known], arguments)


def refuse_idle_rules(approvals: Sequence[ApprovalRule], names: Collection[str]) -> None:
    """Raise `ConfigurationError` for a rule that names a tool which is not there: what it holds back would run.

    It is mistyped, lacks the name of its source (`orders.delete_*`), or the source has renamed the tool. A pattern that
    would only allow may fit nothing: without it less begins, not more.
    """
    for place, rule in enumerate(approvals):
        harmless = rule.then == "allow" and is_pattern(rule.tool)
        problem = "" if harmless else idle_problem(rule, names)
        if problem:
            raise ConfigurationError(f"Agent.approvals[{place}].tool", problem)


def idle_problem(rule: ApprovalRule, names: Collection[str]) -> str:
    """Return what is wrong with a rule whose name or pattern fits none of these tools; empty where one does."""
    if rule.tool == _EVERY or any(is_offered(name, (rule.tool,)) for name in names):
        return ""
    what = "fits no tool" if is_pattern(rule.tool) else "is the name of no tool"
    there = ", ".join(sorted(names)[:_NAMED_MAX]) or "there are none"
    there += ", …" if len(names) > _NAMED_MAX else ""
    meant = _meant(rule.tool, names)
    return f"{rule.tool!r} {what} ({there}); {f'did you mean {meant!r}? Else ' if meant else ''}{_MEND}"


def _meant(given: str, names: Collection[str]) -> str:
    """Return the name or pattern that was likely meant, or nothing: one without its source, or with other letters."""
    sources = {name.partition(".")[0] for name in names if is_offered(name, (f"*.{given}",))}
    if sources:
        return f"{sources.pop()}.{given}" if len(sources) == 1 else f"*.{given}"
    small = {name for name in names if is_offered(name.lower(), (given.lower(),))}
    if small and is_pattern(given):
        return given.lower() if any(is_offered(name, (given.lower(),)) for name in small) else ""
    near = difflib.get_close_matches(given, sorted(names), n=1)
    return min(small) if small else "".join(near)


def refuse_expiry(field: str, expires_in_s: float | None) -> None:
    """Raise `ConfigurationError` for a time in which no question could be answered, or that no timer takes."""
    least, most = asking_limits.EXPIRES_S_MIN, asking_limits.EXPIRES_S_MAX
    if expires_in_s is not None and not least <= expires_in_s <= most:
        raise ConfigurationError(field, f"{expires_in_s} is not {least:g} to {most:g} seconds; None waits for ever")


def defaults_of(schema: ToolSchema) -> dict[str, JsonValue]:
    """Return what stands in for arguments that a call leaves out."""
    return {
        name: each["default"]
        for name, each in _properties(schema).items()
        if isinstance(each, dict) and "default" in each
    }


def _names_all(schema: ToolSchema) -> bool:
    """Whether a tool says which arguments it has: one that takes any object does not."""
    return bool(_properties(schema)) or schema.parameters.get("additionalProperties") is False


def _properties(schema: ToolSchema) -> dict[str, JsonValue]:
    properties = schema.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}
