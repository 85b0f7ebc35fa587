"""A supervised worker's life, from its birth in the nursery: what it is told, and what it tells.

It says on its status pipe, a JSON line each: `ready`; `ended` when its end was its own, in order; `refused` with the
field for what configuration cannot work; `failed` with a text. A worker that says none of these crashed.

It holds the reading end of a pipe, the *leash*, whose other end only the supervisor has. When that breaks it kills
its own process group, subprocesses of tools included: the work goes on under the next supervisor. A thread watches,
because a tool can block the loop.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

from perdure.app.app import Member
from perdure.app.board import WorkerBoard
from perdure.app.loading import load_agent
from perdure.app.settings import Settings
from perdure.app.working import work
from perdure.core.content import Frozen
from perdure.core.errors import ConfigurationError, PerdureError
from perdure.temporal.settings import EmbeddedSettings
from perdure.temporal.worker import WorkerPart

DESCRIPTORS: Final = ("status", "leash", "board", "output")
"""What an order's descriptors are, in order."""

PRELOADED: Final = (
    "perdure.store.migration",
    "perdure.testing",
    "alembic.command",
    "pydantic_ai.direct",
    "sqlalchemy.dialects.sqlite",
    "temporalio.worker.workflow_sandbox",
)
"""Modules whose import costs time. None of them starts a thread, which would forbid to fork."""

LOG_FORMAT: Final = "%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"


class Order(Frozen):
    """What a worker is born for. `token` makes its identity unique; `environment` is its whole environment."""

    number: int
    reference: str
    folder: Path
    environment: dict[str, str]
    part: WorkerPart
    token: str
    drain_s: float


def preload() -> None:
    """Import what every worker needs."""
    for name in PRELOADED:
        import_module(name)


def identity_of(pid: int, token: str) -> str:
    """Return the identity of the worker with that process number and token."""
    return f"{pid}@{os.uname().nodename}#{token}"


def live(order: Order, descriptors: Sequence[int]) -> int:
    """Live a worker's life in this process, which was just forked; return its exit status."""
    status, leash, board, output = descriptors
    for fd in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(output, fd)
    os.close(output)
    threading.Thread(target=_hold, args=(leash,), name="perdure: leash", daemon=True).start()
    os.environ.clear()
    os.environ.update(order.environment)

    def tell(**said: object) -> None:
        os.write(status, json.dumps(said).encode() + b"\n")

    try:
        os.chdir(order.folder)
        _work(order, WorkerBoard(board), lambda: tell(event="ready"))
    except ConfigurationError as error:
        sys.stderr.write(f"error: {error}\n")
        tell(event="refused", field=error.field, text=error.problem)
        return 2
    except (PerdureError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        tell(event="failed", text=str(error))
        return 1
    tell(event="ended")
    return 0


def _work(order: Order, board: WorkerBoard, on_ready: Callable[[], None]) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=LOG_FORMAT)
    agent = load_agent(order.reference)
    settings = Settings.from_environment()
    if isinstance(settings.temporal, EmbeddedSettings):
        # The supervisor owns or joined the server; one of a worker's own would die with it.
        settings = replace(settings, temporal=settings.temporal.model_copy(update={"own": "never"}))
    member = Member(identity_of(os.getpid(), order.token), order.part, board)
    asyncio.run(work(agent, settings, on_ready, drain_s=order.drain_s, member=member))


def _hold(leash: int) -> None:
    """Wait until the supervisor is gone, then end with all that was started here."""
    while os.read(leash, 1):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)
