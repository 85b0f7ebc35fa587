"""`perdure worker`: work on an agent's tasks."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from perdure.app.loading import load_agent
from perdure.app.settings import Settings
from perdure.app.working import work
from perdure.cli.places import Origin, data_folder, remember
from perdure.core import limits


def worker(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="module:agent")],
    drain_s: Annotated[
        float, typer.Option("--drain", min=0, metavar="SECONDS", help="How long begun calls may take to end.")
    ] = limits.DRAIN_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    until_stdin_closes: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Work on an agent's tasks until SIGTERM or Ctrl-C; then let begun calls end, and exit with 0.

    Joins the Temporal of a running command over the same data folder, or starts the embedded one.
    """
    settings = Settings.from_environment()
    data_folder(settings)
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"
    )
    loaded = load_agent(agent)
    remember(settings, loaded.id, Origin(agent, Path.cwd()))

    def on_ready() -> None:
        if as_json:
            print(json.dumps({"event": "ready", "agent": loaded.id, "pid": os.getpid()}), flush=True)
        else:
            print(f"worker {os.getpid()} works for {loaded.id}", flush=True)
        if until_stdin_closes:
            # The parent reads no further; what tools print must go where it is kept, not fill a pipe until it blocks.
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    asyncio.run(work(loaded, settings, on_ready, drain_s=drain_s, until_stdin_closes=until_stdin_closes))
