"""Lines of standard input, awaited: a person may take days, and the task's events go on being shown meanwhile.

The event loop watches the descriptor. A thread in `input()` was refused: it cannot be called back when the question
was answered elsewhere or a signal came, and the process would hang on it at its end.

What a person typed before a question stood there is no answer to it: a second, impatient Enter would approve the next
call unseen. So a terminal is emptied as a question is put. Lines of a pipe or a file are different: they were written
for whatever will be asked, in that order, and emptying a pipe would make what a script means depend on its timing.
"""

import asyncio
import contextlib
import os
import select
import sys
import termios
from collections import deque

from perdure.core import limits
from perdure.core.errors import InvalidInput

CHUNK_BYTES = 65536


class TerminalLines:
    """Reads standard input line by line."""

    def __init__(self) -> None:
        self._fd = -1 if sys.stdin is None or sys.stdin.closed else sys.stdin.fileno()
        self._buffer = b""
        self._lines: deque[bytes] = deque()
        self._ended = self._fd < 0

    @property
    def interactive(self) -> bool:
        """Whether a person sits at the other end."""
        return self._fd >= 0 and os.isatty(self._fd)

    def fileno(self) -> int:
        """Return the descriptor; negative where there is no standard input."""
        return self._fd

    async def next(self) -> str | None:
        """Return the next line without its end, or None when the input has ended.

        Raises `InvalidInput` for a line longer than an answer may be.
        """
        while not self._lines and not self._ended:
            await self._readable()
            self._take(self._read())
        return self._lines.popleft().decode(errors="replace") if self._lines else None

    def drop_early(self) -> bool:
        """Forget what was typed so far, whole lines or not, and return whether there was any; on a terminal only.

        In the background nothing is dropped, nor could be: what is typed there goes to the shell.
        """
        if not self.interactive or not self._in_foreground:
            return False
        with contextlib.suppress(termios.error):  # the terminal has gone, which the next read tells
            waits, _, _ = select.select([self._fd], [], [], 0)
            dropped = bool(self._lines or self._buffer or waits)
            termios.tcflush(self._fd, termios.TCIFLUSH)
            self._lines.clear()
            self._buffer = b""
            return dropped
        return False

    @property
    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True  # no terminal that controls jobs

    def _take(self, data: bytes) -> None:
        *whole, self._buffer = (self._buffer + data).split(b"\n")
        self._lines.extend(whole)
        if not data:
            self._ended = True
            if self._buffer:
                self._lines.append(self._buffer)
        elif len(self._buffer) > limits.ANSWER_BYTES_MAX:
            raise InvalidInput("answer", f"is longer than {limits.ANSWER_BYTES_MAX} bytes; send files by message")

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, CHUNK_BYTES)
        except OSError:
            return b""  # the terminal has gone

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self._fd, _mark, readable)
        except PermissionError:
            return  # a regular file or /dev/null, which cannot be watched and never makes anyone wait
        try:
            await readable
        finally:
            loop.remove_reader(self._fd)


def _mark(readable: "asyncio.Future[None]") -> None:
    if not readable.done():
        readable.set_result(None)
