"""An agent as it would work here: its models and sources opened, its tools listed, every problem found.

Nothing is asked of a model and no tool is called. A source is opened as a worker opens it: a server that is a command
runs for as long as that takes.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from perdure.app.agent import Agent, name_of_model, opened_model
from perdure.app.agent_file.lines import Path
from perdure.app.call_examining import idle_problem, rules_of
from perdure.core.errors import ConfigurationError, PerdureError
from perdure.core.ports import ToolPort
from perdure.core.rulebook import ApprovalRule
from perdure.core.sources import ToolSource
from perdure.core.tool_rules import ToolRules, rules_for

EffectFrom = Literal["declared", "rule", "hint", "default"]
"""Who says a tool's effect class: its function, the operator's rules, what its source claims, or nobody."""


@dataclass(frozen=True)
class Found:
    """One thing that is wrong: where, and what to do about it. `path` is where an agent file would say it."""

    place: str
    text: str
    path: Path = ()


@dataclass(frozen=True)
class ExaminedModel:
    """A model: `problem` is why it cannot be asked here, empty where it can."""

    name: str
    problem: str = ""


@dataclass(frozen=True)
class ExaminedTool:
    """A tool as it would be treated. `source`: empty for a function. `check`: what is asked of a key in doubt.

    `approvals`: the rules that may decide about its calls, in order.
    """

    tool: ToolPort
    source: str
    effect_from: EffectFrom
    check: str
    approvals: tuple[ApprovalRule, ...] = ()


@dataclass(frozen=True)
class ExaminedSource:
    """A source: how many tools it offers, or why it could not be opened."""

    name: str
    kind: str
    where: str
    tools: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Examined:
    """All that was found of an agent."""

    agent: Agent
    models: tuple[ExaminedModel, ...]
    sources: tuple[ExaminedSource, ...]
    tools: tuple[ExaminedTool, ...]
    problems: tuple[Found, ...]


async def examine(agent: Agent) -> Examined:
    """Open what the agent needs, all of it, and close it again."""
    problems: list[Found] = []
    models = [await _model(model, place, problems) for place, model in enumerate(agent.models)]
    sources = [tool for tool in agent.tools if isinstance(tool, ToolSource)]
    opened = dict(zip(map(id, sources), await asyncio.gather(*(_opened(source) for source in sources)), strict=True))
    tools: list[ExaminedTool] = []
    told: list[ExaminedSource] = []
    for tool in agent.tools:
        if not isinstance(tool, ToolSource):
            tools.append(_function(tool))
            continue
        offered, problem = opened[id(tool)]
        problems += [] if problem is None else [problem]
        told.append(_source(tool, len(offered), "" if problem is None else problem.text))
        tools += [_offered(tool, each) for each in offered]
    problems += _twice(tools)
    ruled = _ruled(agent, tools, problems, whole=all(not source.problem for source in told))
    return Examined(agent, tuple(models), tuple(told), ruled, tuple(problems))


def _ruled(
    agent: Agent, tools: Sequence[ExaminedTool], problems: list[Found], *, whole: bool
) -> tuple[ExaminedTool, ...]:
    """Return the tools with their rules. One for no tool is a mistyped name: it would let through what it denies."""
    try:
        book = rules_of(agent.approvals, [each.tool for each in tools])
    except ConfigurationError as error:
        problems.append(Found(error.field, error.problem, ("approvals",)))
        return tuple(tools)
    ruled = tuple(replace(each, approvals=book.about(each.tool.spec.name)) for each in tools)
    for place, rule in enumerate(agent.approvals):
        text = idle_problem(rule, [each.tool.spec.name for each in tools]) if whole else ""
        if text:
            problems.append(Found(f"Agent.approvals[{place}].tool", text, ("approvals", place, "tool")))
        elif whole and not any(rule in each.approvals for each in ruled):
            text = "decides about no call: its tools lack the arguments or the effect, or an earlier rule decides"
            problems.append(Found(f"Agent.approvals[{place}]", text, ("approvals", place)))
    return ruled


async def _model(model: Any, place: int, problems: list[Found]) -> ExaminedModel:
    name = name_of_model(model)
    try:
        port = opened_model(model)
    except ConfigurationError as error:
        problems.append(Found(f"model {name}", error.problem, ("fallbacks", place - 1) if place else ("model",)))
        return ExaminedModel(name, error.problem)
    close = getattr(port, "close", None)
    if port is not model and close is not None:
        await close()
    return ExaminedModel(name)


async def _opened(source: ToolSource) -> tuple[tuple[ToolPort, ...], Found | None]:
    try:
        async with source.opened() as tools:
            return tools, None
    except PerdureError as error:
        return (), Found(f"source {source.name}", str(error), (_kind(source).lower(), source.name))


def _function(tool: ToolPort) -> ExaminedTool:
    said: EffectFrom = getattr(tool, "effect_from", "declared")
    return ExaminedTool(tool, "", said, str(getattr(tool, "check_name", "")))


def _offered(source: ToolSource, tool: ToolPort) -> ExaminedTool:
    rules = rules_for(tool.spec.name.removeprefix(f"{source.name}."), _rules_of(source))
    said: EffectFrom = "default" if tool.spec.effect == "once" else "hint"
    check = "" if rules.check is None else f"{source.name}.{rules.check}"
    return ExaminedTool(tool, source.name, said if rules.effect is None else "rule", check)


def _rules_of(source: ToolSource) -> dict[str, ToolRules]:
    return dict(getattr(source, "rules", {}))


def _source(source: ToolSource, tools: int, problem: str) -> ExaminedSource:
    command: Sequence[str] = getattr(source, "command", ())
    where = " ".join(command) or str(getattr(source, "url", None) or getattr(source, "document", ""))
    return ExaminedSource(source.name, _kind(source), where, tools, problem)


def _kind(source: ToolSource) -> str:
    return "HTTP" if hasattr(source, "document") else "MCP" if hasattr(source, "command") else type(source).__name__


def _twice(tools: Sequence[ExaminedTool]) -> list[Found]:
    count = Counter(each.tool.spec.name for each in tools)
    twice = [name for name, times in count.items() if times > 1]
    return [Found("Agent.tools", f"two tools are named {name!r}; rename one", ("tools",)) for name in twice]
