"""The server process: started under the guard, watched, and stopped. What it runs on is its caller's business."""

import asyncio
import contextlib
import os
import re
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal import embedded_guard
from perdure.temporal.descriptors import close_owned, own

STOP_GRACE_S = 10.0
"""Temporal stops by itself within 1.1 to 1.5 s; one that does not is killed, which its database survives."""

KILL_WAIT_S = 10.0
"""How long the guard may take to kill the server and end, before it is killed itself."""

OUTPUT_LINES_KEPT = 40
OUTPUT_LINE_BYTES_MAX = 2000
OUTPUT_LINES_SHOWN = 12
READ_BYTES = 16 * 1024

UMASK = 0o077

INHERITED = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")
"""All that the server is told of the environment: keys of models and of other Temporals are not its business."""

_STOP = b"s"
_ANNOUNCEMENT = re.compile(r"Server:.*:(\d+)\s*$")
_PID = re.compile(r"^pid (\d+)$")


class ServerProcess:
    """A running server. `pid` is the server's own number, known once `known_pid` returned."""

    def __init__(self, process: asyncio.subprocess.Process, leash_fd: int) -> None:
        self.pid: int | None = None
        self.exited = asyncio.Event()
        self._process = process
        self._leash_fd = leash_fd
        self._news = asyncio.Event()
        self._announced_port: int | None = None
        self._output: deque[str] = deque(maxlen=OUTPUT_LINES_KEPT)
        self._watch = asyncio.create_task(self._watch_process(), name=f"perdure: watch guard {process.pid}")

    @classmethod
    async def spawn(
        cls, command: Sequence[str], folder: Path | None, lock_fd: int | None, environment: Mapping[str, str]
    ) -> "ServerProcess":
        """Start `command` under the guard, in a session of its own, with umask 077 and `folder` as its working folder.

        Raises:
            OSError: The guard's interpreter cannot be started.
        """
        read_fd, write_fd = os.pipe()
        own(write_fd)
        started = False
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                embedded_guard.__file__,
                *command,
                stdin=read_fd,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env={name: environment[name] for name in INHERITED if name in environment},
                pass_fds=() if lock_fd is None else (lock_fd,),
                start_new_session=True,
                umask=UMASK,
            )
            started = True
        finally:
            os.close(read_fd)
            if not started:
                close_owned(write_fd)
        return cls(process, write_fd)

    @property
    def guard_pid(self) -> int:
        """The guard's process number."""
        return self._process.pid

    async def announced(self, port: int) -> None:
        """Wait until the server says that it listens on `port`, which it does some 200 ms after it began to serve.

        Raises:
            EmbeddedTemporalError: It ended instead; the text has its last words.
        """
        while self._announced_port != port:
            await self._next_line()

    async def known_pid(self) -> int:
        """Return the server's process number once the guard has told it.

        Raises:
            EmbeddedTemporalError: The guard ended instead.
        """
        while self.pid is None:
            await self._next_line()
        return self.pid

    async def _next_line(self) -> None:
        self.check_running()
        self._news.clear()
        await self._news.wait()

    def check_running(self) -> None:
        """Raise `EmbeddedTemporalError` with the server's last words if it has ended."""
        if self.exited.is_set():
            raise EmbeddedTemporalError(
                f"the embedded Temporal ended at its start (status {self._process.returncode}); "
                f"its last words:\n{self.last_words()}"
            )

    def last_words(self) -> str:
        """Return the last lines of the server's output, indented, for an error text."""
        return "\n".join(f"  {line}" for line in list(self._output)[-OUTPUT_LINES_SHOWN:]) or "  (none)"

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Ask the server to stop, wait up to `grace_s` seconds, then kill it; it is gone when this returns or raises.

        Safe to call again, and to cancel: a cancelled stop kills at once, as one without grace does.
        """
        try:
            if grace_s > 0 and not self.exited.is_set():
                with contextlib.suppress(OSError):  # the guard has just ended
                    os.write(self._leash_fd, _STOP)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(grace_s):
                        await self.exited.wait()
        finally:
            close_owned(self._leash_fd)  # kills what is left
            try:
                async with asyncio.timeout(KILL_WAIT_S):
                    await self.exited.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()  # a stuck guard; on Linux the server dies with it
                await self.exited.wait()
            await asyncio.wait([self._watch])

    async def _watch_process(self) -> None:
        stream = self._process.stdout
        rest = b""
        try:
            while stream is not None and (data := await stream.read(READ_BYTES)):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._take(line)
                rest = rest[:OUTPUT_LINE_BYTES_MAX]
            if rest:
                self._take(rest)
            await self._process.wait()
        finally:
            close_owned(self._leash_fd)
            self.exited.set()
            self._news.set()

    def _take(self, line: bytes) -> None:
        text = line[:OUTPUT_LINE_BYTES_MAX].decode(errors="replace").rstrip()
        if self.pid is None and (match := _PID.match(text)):
            self.pid = int(match[1])
        elif match := _ANNOUNCEMENT.search(text):
            self._announced_port = int(match[1])
        elif text:
            self._output.append(text)
        self._news.set()
