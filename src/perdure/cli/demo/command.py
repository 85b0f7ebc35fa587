"""`perdure demo`: a support agent whose worker is killed twice, and a customer who gets one replacement."""

import asyncio
import os
from datetime import date
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from perdure.app.app import open_app
from perdure.app.settings import Settings
from perdure.cli.demo.agent import shop_agent
from perdure.cli.demo.director import Director, Plan
from perdure.cli.demo.evidence import Kill, Notes, collect
from perdure.cli.demo.stage import Stage, finished_stage, fresh_stage
from perdure.cli.demo.telling import JsonTeller, Teller, TimelineTeller
from perdure.cli.demo.verdict import judge as judged
from perdure.cli.demo.world import World
from perdure.cli.signals import Interrupted, say_ending, until_signal
from perdure.core.errors import Unavailable
from perdure.models import open_model
from perdure.temporal.connection import temporal_client

WITHIN_S: Final = 60.0
"""A scripted demo takes about a third of this on two cores; one that takes longer is stuck."""

WITHIN_A2A_S: Final = 90.0
"""A server's three starts come on top."""

WITHIN_MCP_S: Final = 60.0
"""Each worker starts two servers of its own, and so does whoever takes the place of one that was killed."""

WITHIN_BY_OTHERS_S: Final = 1800.0
"""Where a person kills or types, or a real model thinks, the demo waits for them, though not for ever."""


def demo(
    kill: Annotated[
        Kill, typer.Option(help="twice: while a call is open, and while the task waits; waiting: only the latter.")
    ] = "twice",
    a2a: Annotated[
        bool, typer.Option("--a2a", help="The customer comes over A2A to a server of its own process, killed as well.")
    ] = False,
    mcp: Annotated[
        bool, typer.Option("--mcp", help="The agent's tools are those of two MCP servers, which die with their worker.")
    ] = False,
    by_hand: Annotated[bool, typer.Option("--by-hand", help="Wait for your own kill -9 at each moment.")] = False,
    model: Annotated[
        str | None, typer.Option(help="A real model, as in openai:gpt-5; needs its key. Default: a scripted one.")
    ] = None,
    home: Annotated[
        Path | None, typer.Option(help="Data folder; the demo uses its subfolder demo. Default: PERDURE_HOME.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the data of earlier demos.")] = False,
    within: Annotated[
        float | None,
        typer.Option(
            min=1, help="Seconds after which the demo gives up. Default: 60 (more with --a2a or --mcp), by hand 1800."
        ),
    ] = None,
    judge: Annotated[
        Path | None, typer.Option(help="Play nothing; judge again what a finished demo left in this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines; the last one is the verdict.")] = False,
) -> None:
    """Kill a support agent's worker twice, and see that the customer's order is replaced once.

    Exits 0 when every promise held, 1 when one did not, 2 for wrong options.
    """
    teller: Teller = JsonTeller() if as_json else TimelineTeller(Console(highlight=False))
    if judge is not None:
        with finished_stage(judge) as stage:
            held = asyncio.run(_judge(stage, teller))
    else:
        if model is not None:
            open_model(model)  # a wrong name or a missing key is told before anything starts
        played_s = (WITHIN_A2A_S if a2a else WITHIN_S) + (WITHIN_MCP_S if mcp else 0)
        within_s = within or (WITHIN_BY_OTHERS_S if by_hand or model else played_s)
        plan = Plan(kill=kill, a2a=a2a, patience_s=within_s, by_hand=by_hand, model=model, mcp=mcp)
        data = Settings.from_environment({"PERDURE_HOME": os.environ.get("PERDURE_HOME", "")}, home=home).home
        with fresh_stage(data, keep=keep) as stage:
            _introduce(teller, stage, plan)
            play = _play_and_judge(stage, plan, teller, within_s)
            try:
                held = asyncio.run(until_signal(play, say_ending))
            except Interrupted as interrupted:
                raise typer.Exit(128 + interrupted.number) from interrupted
    if not held:
        raise typer.Exit(1)


def _introduce(teller: Teller, stage: Stage, plan: Plan) -> None:
    if plan.model is None:
        teller.note("The model is scripted: its part is written down in the demo, and no key is needed (--model).")
    else:
        teller.note(f"The model is {plan.model}. What only the script would do is not judged.")
    moments = "while a tool call is open and while the task waits" if plan.kill == "twice" else "while the task waits"
    victims = "worker and its A2A server are" if plan.a2a else "worker is"
    if plan.mcp:
        teller.note("The tools are those of two MCP servers: each worker starts its own, and they end with it.")
    teller.note(f"A customer complains; the agent's {victims} killed with SIGKILL {moments}. Data: {stage.folder}\n")


async def _play_and_judge(stage: Stage, plan: Plan, teller: Teller, within_s: float) -> bool:
    world = World.create(stage.world, date.today())  # noqa: DTZ011 - the day is only shown, and the world keeps it
    agent = shop_agent(world, model=plan.model, mcp=plan.mcp)
    waits_for = "Temporal"
    try:
        async with (
            asyncio.timeout(within_s),
            open_app(agent, settings=stage.settings, worker=False) as app,
            temporal_client(stage.settings.temporal) as client,
        ):
            director = Director(stage, world, app, client, teller, plan)
            try:
                notes = await director.play()
            finally:
                waits_for = director.waits_for
            await asyncio.to_thread(_write_private, stage.notes, notes.model_dump_json())
            evidence = await collect(app, client, world, notes)
    except TimeoutError as error:
        raise Unavailable(
            f"the demo did not finish within {within_s:g} s: it waited for {waits_for}. The workers' log is "
            f"{stage.worker_log}; a slower machine needs a larger --within"
        ) from error
    judgements = judged(evidence)
    teller.verdict(stage, evidence, judgements)
    return all(judgement.held for judgement in judgements)


async def _judge(stage: Stage, teller: Teller) -> bool:
    notes = Notes.model_validate_json(await asyncio.to_thread(stage.notes.read_text))
    world = World(stage.world)
    async with (
        open_app(shop_agent(world), settings=stage.settings, worker=False) as app,
        temporal_client(stage.settings.temporal) as client,
    ):
        evidence = await collect(app, client, world, notes)
    judgements = judged(evidence)
    teller.verdict(stage, evidence, judgements)
    return all(judgement.held for judgement in judgements)


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
