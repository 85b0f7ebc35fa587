"""The supervisor's side of the nursery: births are ordered here, and deaths arrive."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from perdure.app.board import WorkerBoard, board_file
from perdure.app.newborn import Order, identity_of
from perdure.core.errors import ConfigurationError, Unavailable
from perdure.temporal.worker import WorkerPart

READ_BYTES: Final = 64 * 1024
OPEN_WITHIN_S: Final = 60.0
"""A cold start imports for a second or two; on a loaded machine many at once take far longer."""


@dataclass(eq=False)
class Child:
    """A worker process. `ready` and `died` are answered once; `died` gives how it ended, negative for a signal."""

    pid: int
    identity: str
    part: WorkerPart
    board: WorkerBoard
    status_fd: int
    ready: "asyncio.Future[None]"
    died: "asyncio.Future[int]"
    asked: bool = False
    """Whether it was asked to end."""
    ended: bool = False
    """Whether it said that its end was its own, in order."""
    born_s: float = field(default_factory=time.monotonic)
    _said: bytes = b""

    def listen(self) -> None:
        """Take in what it has said so far, without waiting."""
        loop = asyncio.get_running_loop()
        while self.status_fd >= 0:
            try:
                data = os.read(self.status_fd, READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                loop.remove_reader(self.status_fd)
                os.close(self.status_fd)
                self.status_fd = -1
            *lines, self._said = (self._said + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, said: dict[str, Any]) -> None:
        match said["event"]:
            case "ready":
                self.ready.set_result(None)
            case "ended":
                self.ended = True
            case "refused":
                self.ended = True
                self._not_ready(ConfigurationError(said["field"], said["text"]))
            case "failed":
                self.ended = True
                self._not_ready(Unavailable(said["text"]))

    def _not_ready(self, error: Exception) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # seen: there may be nobody who waits for it

    def dead(self, code: int) -> None:
        """Take note of its death."""
        self.listen()
        if self.status_fd >= 0:  # something that it forked holds the pipe
            asyncio.get_running_loop().remove_reader(self.status_fd)
            os.close(self.status_fd)
            self.status_fd = -1
        self._not_ready(Unavailable(f"worker {self.pid} ended with {code} before it was ready"))
        self.died.set_result(code)


class Nursery:
    """A running nursery; `open` gives one. `broken` is set when it died by itself, which kills its children."""

    def __init__(self, process: asyncio.subprocess.Process, line: socket.socket, leash_fd: int) -> None:
        self.broken = asyncio.Event()
        self._process = process
        self._line = line
        self._leash_fd = leash_fd
        self._children: dict[int, Child] = {}
        self._orders = 0
        self._born: dict[int, tuple[asyncio.Future[Child], Callable[[int], Child]]] = {}
        self._bearing, self._sending = asyncio.Lock(), asyncio.Lock()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reader = asyncio.create_task(self._read(), name=f"perdure: nursery {process.pid}")

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    @classmethod
    async def open(cls, leash_fd: int, kept_fds: Sequence[int] = ()) -> Self:
        """Start a nursery and wait until it has imported everything; children hold the leash.

        The descriptors `kept_fds` are open in it and in all its children.

        Raises `Unavailable` when it ends instead.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "perdure.app.nursery", *map(str, kept_fds)),
                stdin=theirs.fileno(),
                pass_fds=kept_fds,
                start_new_session=True,
            )
        finally:
            theirs.close()
        nursery = cls(process, ours, leash_fd)
        try:
            async with asyncio.timeout(OPEN_WITHIN_S):
                await nursery._opened
        except BaseException:
            await nursery.close()
            raise
        return nursery

    async def bear(
        self, reference: str, folder: Path, environment: Mapping[str, str], part: WorkerPart, drain_s: float, log: int
    ) -> Child:
        """Fork a worker; its output goes to the descriptor `log`. Raises `Unavailable` when the nursery has died."""
        token = secrets.token_hex(4)
        loop = asyncio.get_running_loop()
        status_fd, told_fd = os.pipe()
        board_fd = board_file()
        os.set_blocking(status_fd, False)
        try:
            async with self._bearing:  # one at a time: descriptors of two would come as one heap
                self._orders += 1
                number = self._orders
                order = Order(
                    number=number,
                    reference=reference,
                    folder=folder,
                    environment=dict(environment),
                    part=part,
                    token=token,
                    drain_s=drain_s,
                )

                def delivered(pid: int) -> Child:
                    return self._deliver(pid, identity_of(pid, token), part, WorkerBoard(board_fd), status_fd)

                born: asyncio.Future[Child] = loop.create_future()
                self._born[number] = (born, delivered)
                async with self._sending:
                    await self._send({"bear": order.model_dump(mode="json")}, [told_fd, self._leash_fd, board_fd, log])
                return await born
        except BaseException:
            os.close(status_fd)
            raise
        finally:
            os.close(told_fd)
            os.close(board_fd)

    def _deliver(self, pid: int, identity: str, part: WorkerPart, board: WorkerBoard, status_fd: int) -> Child:
        """Take a child in at once: the next word on the line may be of its death."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        child = Child(pid, identity, part, board, status_fd, ready, loop.create_future())
        self._children[pid] = child
        loop.add_reader(status_fd, child.listen)
        return child

    async def signal(self, child: Child, number: signal.Signals) -> None:
        """Signal a child; SIGKILL reaches its whole process group. One that has died already is no error."""
        async with self._sending:
            if not child.died.done() and not self.broken.is_set():
                await self._send({"pid": child.pid, "signal": int(number)}, [])

    async def close(self) -> None:
        """End the nursery and, with it, whatever children are left; all are gone when this returns."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        await self._process.wait()
        await asyncio.wait([self._reader])
        self._line.close()

    async def _send(self, order: dict[str, Any], descriptors: list[int]) -> None:
        line = json.dumps(order).encode() + b"\n"
        try:
            # The first byte carries the descriptors; it is small enough to be taken whole.
            socket.send_fds(self._line, [line[:1]], descriptors)
            await asyncio.get_running_loop().sock_sendall(self._line, line[1:])
        except OSError as error:
            raise Unavailable(f"the process that starts workers has ended ({error})") from error

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        rest = b""
        with contextlib.suppress(ConnectionError):
            while data := await loop.sock_recv(self._line, READ_BYTES):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
        self.broken.set()
        gone = Unavailable("the process that starts workers has ended")
        waits: list[asyncio.Future[Any]] = [self._opened, *(born for born, _ in self._born.values())]
        for waiting in waits:
            if not waiting.done():
                waiting.set_exception(gone)
                waiting.exception()  # seen: there may be nobody who waits for it
        for pid, child in list(self._children.items()):
            await _orphaned(pid)
            del self._children[pid]
            child.dead(-signal.SIGKILL)

    def _take(self, said: dict[str, Any]) -> None:
        if "born" in said:
            born, deliver = self._born.pop(said["number"])
            if born.done():
                return  # nobody waits for it any more; it ends with the nursery
            born.set_result(deliver(said["born"]))
        elif "died" in said:
            child = self._children.pop(said["died"], None)
            if child is not None:
                child.dead(said["code"])
        else:
            self._opened.set_result(None)


async def _orphaned(pid: int) -> None:
    """Kill a worker whose nursery has died, with all that it started, and wait until the kernel has seen its end.

    Nobody here is its parent; what proves its death is the kernel's own handle on it.
    """
    try:
        pid_fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        loop.add_reader(pid_fd, gone.set)
        await gone.wait()
        loop.remove_reader(pid_fd)
    finally:
        os.close(pid_fd)


def ending_of(code: int) -> str:
    """Say how a process ended: a signal's name, or the status."""
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was killed ({signal.Signals(-code).name})"
    except ValueError:
        return f"was killed (signal {-code})"
