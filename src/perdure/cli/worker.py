"""`perdure worker`: work on an agent's tasks, in processes that are watched and replaced."""

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from perdure.app.agent import Agent
from perdure.app.loading import load_agent
from perdure.app.newborn import LOG_FORMAT
from perdure.app.settings import Settings
from perdure.app.supervisor import Change, Fleet, supervised
from perdure.app.working import work
from perdure.cli.places import Origin, data_folder, remember
from perdure.cli.signals import Interrupted, first_of, until_signal
from perdure.cli.temporal_watch import until_temporal_ends
from perdure.core import fleet_limits, limits
from perdure.temporal.connection import temporal_client


def worker(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="A TOML file, or module:agent.")],
    processes: Annotated[
        int,
        typer.Option(
            min=1,
            max=fleet_limits.WORKER_PROCESSES_MAX,
            metavar="N",
            help="Worker processes; one more always stands by.",
        ),
    ] = 1,
    drain_s: Annotated[
        float, typer.Option("--drain", min=0, metavar="SECONDS", help="How long begun calls may take to end.")
    ] = limits.DRAIN_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    until_stdin_closes: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Work on an agent's tasks until SIGTERM or Ctrl-C; then let begun calls end.

    Joins the Temporal of a running command over the same data folder, or
    starts the embedded one. A worker that dies is replaced, and what it did
    goes on at once in another one. SIGHUP replaces the workers one by one.
    Exits with 143 after SIGTERM and 130 after Ctrl-C, as every command does.
    """
    settings = Settings.from_environment()
    data_folder(settings)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=LOG_FORMAT)
    loaded = load_agent(agent)
    remember(settings, loaded.id, Origin(agent, Path.cwd()))
    if until_stdin_closes:
        asyncio.run(_alone(loaded, settings, drain_s, as_json))
        return
    fleet = Fleet(agent, loaded.id, Path.cwd(), processes=processes, drain_s=drain_s, rosters=settings.home / "workers")
    try:
        asyncio.run(_supervise(fleet, settings, as_json))
    except Interrupted as interrupted:
        raise typer.Exit(128 + interrupted.number) from interrupted


async def _supervise(fleet: Fleet, settings: Settings, as_json: bool) -> None:
    async def supervise() -> None:
        async with (
            temporal_client(settings.temporal) as client,
            supervised(fleet, client, lambda change: _tell(change, as_json)) as supervisor,
        ):
            _ready(fleet.queue, as_json)
            rolls: set[asyncio.Task[None]] = set()

            def roll() -> None:
                if not rolls:
                    rolls.add(asyncio.create_task(supervisor.roll()))
                    next(iter(rolls)).add_done_callback(rolls.discard)

            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, roll)
            try:
                await first_of(supervisor.watch(), until_temporal_ends(settings))
            finally:
                loop.remove_signal_handler(signal.SIGHUP)
                for each in rolls:
                    each.cancel()

    await until_signal(supervise(), lambda number: None)


async def _alone(agent: Agent, settings: Settings, drain_s: float, as_json: bool) -> None:
    """Work in this process, for a parent that watches by itself and holds standard input open."""

    def on_ready() -> None:
        _ready(agent.id, as_json)
        # The parent reads no further; what tools print must go where it is kept, not fill a pipe until it blocks.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    await work(agent, settings, on_ready, drain_s=drain_s, until_stdin_closes=True)


def _ready(agent_id: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"event": "ready", "agent": agent_id, "pid": os.getpid()}), flush=True)
    else:
        print(f"worker {os.getpid()} works for {agent_id}", flush=True)


def _tell(change: Change, as_json: bool) -> None:
    if as_json:
        said = {"event": f"worker.{change.kind}", "part": change.part, "pid": change.pid, "text": change.text}
        print(json.dumps({**said, "at_ms": change.at_ms, "code": change.code, "failed": change.failed}), flush=True)
    elif change.kind != "ready":
        print(change.text, flush=True)
