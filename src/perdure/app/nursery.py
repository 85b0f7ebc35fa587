"""The nursery: a process that has imported everything, forks workers, reaps them, and never outlives its supervisor.

Importing the SDKs takes a second or two of processor time, which would stand between a worker's death and its
replacement. So one process imports them once, starts no thread, no loop and no runtime, and forks. A user's module is
imported in the child only: it may start threads, and read an environment of its own.

It is also who knows of a death first and for certain: the kernel tells a parent. Before it reaps a dead worker, while
nobody else can have its number, it kills the worker's process group: the subprocesses that tools had started.

Its supervisor holds the other end of one socket. On it come orders, one JSON line each (a `bear` with descriptors),
and go births and deaths. When it breaks, which the kernel does however the supervisor ends, every worker's group is
killed at once, hung or stopped as it may be.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

from perdure.app import newborn
from perdure.app.newborn import DESCRIPTORS, Order

SOCKET_FD: Final = 0
_SIGNALS: Final = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
READ_BYTES: Final = 64 * 1024
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def main() -> int:
    """Tend until the supervisor is gone, in the nursery; live a worker's life, in each child."""
    line = socket.socket(fileno=os.dup(SOCKET_FD))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, SOCKET_FD)
    os.close(null)
    for kept in sys.argv[1:]:
        os.set_inheritable(int(kept), False)  # for the workers, which are forked; not for what their tools start
    newborn.preload()
    gc.freeze()  # what was imported stays shared with the children, instead of being touched by each collection
    line.sendall(b'{"open": true}\n')
    born = Tending(line).tend()
    return 0 if born is None else newborn.live(*born)


class Tending:
    """The nursery's one loop."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._children: set[int] = set()
        self._received = b""
        self._descriptors: list[int] = []
        self._wake_fd, self._woken_fd = os.pipe()
        os.set_blocking(self._woken_fd, False)
        signal.set_wakeup_fd(self._woken_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the supervisor's end is what ends it

    def tend(self) -> tuple[Order, Sequence[int]] | None:
        """Obey and report until the supervisor is gone. In a child, return what it was born for."""
        while True:
            readable, _, _ = select.select([self._line.fileno(), self._wake_fd], [], [])
            if self._wake_fd in readable:
                os.read(self._wake_fd, READ_BYTES)
                self._report_deaths()
            if self._line.fileno() not in readable:
                continue
            orders = self._read()
            if orders is None:
                self._end()
                return None
            for order in orders:
                born = self._obey(order)
                if born is not None:
                    return born

    def _read(self) -> list[dict[str, Any]] | None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._line, READ_BYTES, len(DESCRIPTORS), _CLOSE_ON_EXEC)
        except ConnectionError:
            return None
        self._descriptors += descriptors
        if not data:
            return None
        *lines, self._received = (self._received + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _obey(self, order: dict[str, Any]) -> tuple[Order, Sequence[int]] | None:
        if "bear" in order:
            descriptors, self._descriptors = self._descriptors, []
            return self._bear(Order.model_validate(order["bear"]), descriptors)
        pid, number = order["pid"], order["signal"]
        if pid in self._children:
            self._signal(pid, number)
        return None

    def _bear(self, order: Order, descriptors: Sequence[int]) -> tuple[Order, Sequence[int]] | None:
        if threading.active_count() > 1:
            raise RuntimeError(f"the nursery has threads, and must not fork: {threading.enumerate()}")
        # A child that is told to end before it can hear must not miss it.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            for fd in (self._wake_fd, self._woken_fd):
                os.close(fd)
            self._line.close()
            return order, descriptors
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for fd in descriptors:
            os.close(fd)
        self._children.add(pid)
        self._say({"born": pid, "number": order.number})
        return None

    def _report_deaths(self) -> None:
        """Kill what dead workers left behind, reap them, and say so."""
        while self._children:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None:
                return
            pid = dead.si_pid
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if pid in self._children:
                self._children.discard(pid)
                self._say({"died": pid, "code": os.waitstatus_to_exitcode(status)})

    def _signal(self, pid: int, number: int) -> None:
        """Signal a child; SIGKILL reaches all that it started as well. It was not reaped, so the number is its own."""
        if number == signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)  # not there yet where the child has not made its session
        os.kill(pid, number)

    def _say(self, said: dict[str, Any]) -> None:
        with contextlib.suppress(ConnectionError):  # nobody listens: the next read tells
            self._line.sendall(json.dumps(said).encode() + b"\n")

    def _end(self) -> None:
        for pid in self._children:
            self._signal(pid, signal.SIGKILL)
        while self._children:
            pid, _ = os.waitpid(-1, 0)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            self._children.discard(pid)


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the byte on the pipe is what counts."""


if __name__ == "__main__":
    sys.exit(main())
