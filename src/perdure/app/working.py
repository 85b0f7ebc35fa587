"""A worker's life: from its first line to its last, in a process of its own or in one that was asked to work."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable

from perdure.app.agent import Agent
from perdure.app.app import Member, opened, worker_identity
from perdure.app.settings import Settings
from perdure.core import limits
from perdure.core.errors import Unavailable


async def work(
    agent: Agent,
    settings: Settings,
    on_ready: Callable[[], None],
    *,
    drain_s: float = limits.DRAIN_S,
    until_stdin_closes: bool = False,
    member: Member | None = None,
) -> None:
    """Work on the agent's tasks until SIGTERM or SIGINT, then drain; a second signal ends at once.

    With `until_stdin_closes` the end of standard input counts as SIGTERM: a parent that dies, however it dies,
    closes the pipe that it held. `member` says how to work under a supervisor; by default on everything.

    Raises:
        Unavailable: The worker lost its Temporal for good.
        ConfigurationError: The agent or a setting cannot work.
    """
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end_or_die, ended, number)
    if until_stdin_closes:
        loop.add_reader(sys.stdin.fileno(), _drained, loop, ended)
    try:
        async with opened(agent, settings, member or Member(worker_identity()), drain_s) as app:
            on_ready()
            failed = app.worker_failed or asyncio.Event()
            waits = [asyncio.create_task(event.wait()) for event in (ended, failed)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await wait
            if failed.is_set() and not ended.is_set():
                raise Unavailable("the worker lost its connection to Temporal for good; start it again")
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        if until_stdin_closes:
            loop.remove_reader(sys.stdin.fileno())


def _end_or_die(ended: asyncio.Event, number: int) -> None:
    if ended.is_set():
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    ended.set()


def _drained(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        ended.set()
