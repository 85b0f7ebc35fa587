"""`perdure worker`: work on an agent's tasks."""

import asyncio
import json
import os
from typing import Annotated

import typer

from perdure.app.loading import load_agent
from perdure.app.settings import Settings
from perdure.app.working import work


def worker(
    agent: Annotated[str, typer.Argument(help="module:agent")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    until_stdin_closes: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Work on an agent's tasks until SIGTERM."""
    loaded = load_agent(agent)

    def on_ready() -> None:
        if as_json:
            print(json.dumps({"event": "ready", "agent": loaded.id, "pid": os.getpid()}), flush=True)
        else:
            print(f"worker {os.getpid()} works for {loaded.id}", flush=True)

    asyncio.run(work(loaded, Settings.from_environment(), on_ready, until_stdin_closes=until_stdin_closes))
