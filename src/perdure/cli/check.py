"""`perdure check`: what an agent can do here, how each of its tools is treated, and all that is wrong with it."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from perdure.app.agent_file import ENDING
from perdure.app.agent_file.problems import AgentFileError, Problem
from perdure.app.agent_file.reading import read_form
from perdure.app.examining import Examined, ExaminedModel, ExaminedTool, Found, examine
from perdure.app.loading import load_agent
from perdure.cli.tables import print_table
from perdure.cli.timeline import one_line, printable
from perdure.core.agent import Budget

WRONG: Final = 2
_COLUMNS: Final = ("tool", "effect", "from", "parallel", "timeout", "attempts", "in doubt", "approval")
_IN_DOUBT: Final = {"tell": "tell the model", "ask": "ask a person", "fail": "fail the run"}


def check(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="A TOML file, or module:agent.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")] = False,
) -> None:
    """Check an agent: its file, its models' packages and keys, its servers, its tools.

    Connects to its MCP servers and reads its HTTP services' documents. No
    model is asked and no tool is called. Exit code 2: something is wrong,
    and all that was found is told.
    """
    try:
        loaded = load_agent(agent)
    except AgentFileError as error:
        if not as_json:
            raise
        print(json.dumps({"agent": agent, "ok": False, "problems": [vars(problem) for problem in error.problems]}))
        raise typer.Exit(WRONG) from error
    examined = asyncio.run(examine(loaded))
    problems = _placed(agent, examined.problems)
    if as_json:
        print(json.dumps(_object(examined) | {"problems": [vars(problem) for problem in problems]}))
    else:
        _print(examined)
        for problem in problems:
            print(f"error: {printable(str(problem))}", file=sys.stderr, flush=True)
    if problems:
        raise typer.Exit(WRONG)


def _placed(agent: str, found: Sequence[Found]) -> list[Problem]:
    """Return the problems where they stand: in the agent's file, or of an agent in Python by their names."""
    if not agent.endswith(ENDING):
        return [Problem(agent, 0, each.place, each.text) for each in found]
    _, places = read_form(Path(agent))
    return [places.at(each.path, each.text) for each in found]


def _print(examined: Examined) -> None:
    agent = examined.agent
    print(f"agent     {agent.id}, version {agent.version}")
    if agent.description:
        print(f"          {one_line(agent.description)}")
    first, *others = examined.models
    print(f"model     {_standing(first)}")
    for other in others:
        print(f"fallback  {_standing(other)}")
    print(f"attempts  {agent.model_retry.attempts_max} of each model a turn, {agent.model_timeout_s:g} s each")
    print(f"budget    {_budget(agent.budget)}")
    print(f"told      {len(agent.instructions):,} characters of instructions")
    asks = "may ask a person" if agent.asks else "may not ask a person"
    print(f"ends      {agent.after_answer} after an answer, {agent.on_unanswered} without one; {asks}")
    for source in examined.sources:
        found = source.problem or f"{source.tools} tools"
        print(f"source    {source.name}: {source.kind}, {one_line(source.where)}: {one_line(found)}")
    print_table("tools", _COLUMNS, (_row(each) for each in examined.tools), "none: it can only talk")


def _standing(model: ExaminedModel) -> str:
    return f"{model.name}: {one_line(model.problem) or 'ready, as far as can be told without asking it'}"


def _budget(budget: Budget) -> str:
    bounds = [f"{budget.turns_max} turns an answer"]
    if budget.tokens_max is not None:
        bounds.append(f"{budget.tokens_max:,} tokens")
    if budget.cost_usd_max is not None:
        bounds.append(f"{budget.cost_usd_max:g} US dollars")
    if budget.wall_s_max is not None:
        bounds.append(f"{budget.wall_s_max:g} s of work")
    return ", ".join(bounds)


def _row(each: ExaminedTool) -> tuple[object, ...]:
    spec = each.tool.spec
    return (
        spec.name,
        spec.effect,
        each.effect_from,
        "yes" if spec.parallel else "no",
        f"{spec.timeout_s:g} s",
        attempts(each),
        in_doubt(each),
        approval(each),
    )


def approval(each: ExaminedTool) -> str:
    """Return which calls wait for a person, and which are denied; empty where each may begin."""
    said = [f"{rule.then} when {rule.when}" if rule.when else rule.then for rule in each.approvals]
    return ", ".join(said) if any(rule.then != "allow" for rule in each.approvals) else ""


def attempts(each: ExaminedTool) -> str:
    """Return how often a call may begin."""
    spec = each.tool.spec
    return "begun once" if spec.effect == "once" else f"up to {spec.retry.attempts_max}"


def in_doubt(each: ExaminedTool) -> str:
    """Return what follows when it cannot be known whether a call happened."""
    spec = each.tool.spec
    if spec.effect != "once":
        return "called again"
    asked = f"ask {each.check} after {each.tool.settle_s:g} s, else " if each.check else ""
    return f"{asked}{_IN_DOUBT[spec.in_doubt]}"


def _object(examined: Examined) -> dict[str, Any]:
    agent = examined.agent
    return {
        "agent": agent.id,
        "ok": not examined.problems,
        "version": agent.version,
        "description": agent.description,
        "models": [vars(model) for model in examined.models],
        "sources": [vars(source) for source in examined.sources],
        "budget": agent.budget.model_dump(mode="json"),
        "model_retry": agent.model_retry.model_dump(mode="json"),
        "tools": [
            {
                **each.tool.spec.model_dump(mode="json"),
                "source": each.source,
                "effect_from": each.effect_from,
                "check": each.check,
                "settle_s": each.tool.settle_s,
                "approvals": [rule.model_dump(mode="json", exclude_none=True) for rule in each.approvals],
                "description": each.tool.schema.description,
                "parameters": each.tool.schema.parameters,
            }
            for each in examined.tools
        ],
    }
