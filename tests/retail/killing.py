"""What a kill is, and what the shops say that it hit.

Whether a kill hit is judged by the shops' own notes of arrivals: a call of a dead process that came and never left, or,
where Temporal died, one that had come and not left at that moment.
"""

import asyncio
import os
import signal
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Literal

from tests.retail.shop import ONCE_NAMES, Arrival, Shop

Target = Literal["worker", "app", "temporal"]


@dataclass(frozen=True)
class Kill:
    """A SIGKILL: when, whom, and the calls that it hit.

    `cut` are the calls of processes that died by it, `spared` those that were open in processes that lived on: where
    Temporal died, nobody could be told of their results.
    """

    at_ms: int
    pid: int
    cut: tuple[Arrival, ...]
    target: Target = "worker"
    spared: tuple[Arrival, ...] = ()

    @property
    def once(self) -> tuple[Arrival, ...]:
        """The open `once` calls that it hit: those that had come before it."""
        hit = (*self.cut, *self.spared)
        return tuple(arrival for arrival in hit if arrival.tool in ONCE_NAMES and arrival.arrived_ms <= self.at_ms)


def open_calls(shops: Iterable[Shop]) -> dict[int, list[Arrival]]:
    """Return the calls that came and have not left, by the process that they came from, be it dead or alive."""
    calls: dict[int, list[Arrival]] = {}
    for shop in tuple(shops):
        for arrival in shop.arrivals():
            if arrival.left_ms is None:
                calls.setdefault(arrival.pid, []).append(arrival)
    return calls


def open_at(at_ms: int, pids: Collection[int], shops: Iterable[Shop]) -> tuple[Arrival, ...]:
    """Return the calls of processes that lived at a moment which had come by then and had not left."""
    arrivals = (arrival for shop in tuple(shops) for arrival in shop.arrivals() if arrival.pid in pids)
    return tuple(
        arrival
        for arrival in arrivals
        if arrival.arrived_ms <= at_ms and (arrival.left_ms is None or arrival.left_ms > at_ms)
    )


async def kill(pid: int, with_it: Sequence[int] = ()) -> bool:
    """SIGKILL a process and wait until the kernel has seen its end, and that of those that die with it.

    Returns False, and has killed nobody, when it had ended already.
    """
    with ExitStack() as handles:
        pid_fds = []
        for each in (pid, *with_it):
            with suppress(ProcessLookupError):
                pid_fds.append(os.pidfd_open(each))
                handles.callback(os.close, pid_fds[-1])
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        await asyncio.gather(*map(_ended, pid_fds))
    return True


async def _ended(pid_fd: int) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pid_fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pid_fd)
