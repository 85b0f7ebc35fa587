"""The keeper: a tiny process between a worker and an MCP server, so that the server never outlives the worker.

Run as a file by a bare interpreter (`python -I -S keeper.py END_S COMMAND…`): it imports the standard library only, and
little of it, because every start waits for it.

The server has the worker's pipes for itself; the keeper keeps a copy of the input, reads nothing, and learns from the
kernel when the worker's end is gone:

- The worker closed it: the server has `END_S` seconds to end by itself, then it is killed.
- The worker died, however it died: the server is killed at once. What it was at is done again or looked up elsewhere.
- The server ends: the keeper ends with its status.
- The keeper is killed: on Linux the server dies with it (a parent-death signal, sound here because it has one thread).

Whatever the server started ends with it, also what has left its process group: on Linux orphans come to the keeper,
which kills until none is left.
"""

import contextlib
import os
import select
import signal
import sys
import time
from types import FrameType

INPUT_FD = 0
OUTPUT_FD = 1
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
NOT_RUN = 127
"""Exit status when the command cannot be run, as in a shell."""

LOOK_EVERY_S = 0.01
"""How often a server that was asked to end is looked at, and the worker beside it."""

ROUNDS_MAX = 100
"""Rounds of killing what the server left: each finds what was started since the last."""


def main() -> int:
    """Run the server given in the arguments, keep it, and return its exit status."""
    end_s, command = float(sys.argv[1]), sys.argv[2:]
    worker_pid, keeper_pid = os.getppid(), os.getpid()
    ask_kernel(PR_SET_CHILD_SUBREAPER, 1)
    wake_fd = watch_signals()
    leash_fd = os.dup(INPUT_FD)
    server_pid = os.fork()
    if server_pid == 0:
        os.close(leash_fd)
        become_server(command, keeper_pid)
    # The server's alone from here on: whoever else held them would keep an end from being seen.
    null_fd = os.open(os.devnull, os.O_RDWR)
    os.dup2(null_fd, INPUT_FD)
    os.dup2(null_fd, OUTPUT_FD)
    try:
        return keep(server_pid, leash_fd, wake_fd, worker_pid, end_s)
    finally:
        end_orphans()


def watch_signals() -> int:
    """Turn signals into bytes on a pipe; return its reading end."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    signal.set_wakeup_fd(write_fd)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, noted)
    return read_fd


def noted(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the byte on the pipe is what counts. Signals to end reach the server too: it is in the same group."""


def ask_kernel(what: int, value: int) -> None:
    """Set one of Linux's process attributes; elsewhere there is none."""
    if sys.platform != "linux":
        return
    try:
        import ctypes  # noqa: PLC0415 - half of the keeper's start-up time, and Linux's alone

        ctypes.CDLL(None, use_errno=True).prctl(what, value)
    except (ImportError, OSError, AttributeError):
        return  # a Python without ctypes: the leash must do


def become_server(command: list[str], keeper_pid: int) -> None:
    """Replace this (forked) process by the server; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        ask_kernel(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper_pid:
            os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error}\n")
        sys.stderr.flush()
    os._exit(NOT_RUN)


def keep(server_pid: int, leash_fd: int, wake_fd: int, worker_pid: int, end_s: float) -> int:
    """Wait for the server's end, or bring it about when the worker's end of the pipe is gone; return its status."""
    poller = select.poll()
    poller.register(wake_fd, select.POLLIN)
    poller.register(leash_fd, 0)  # nothing is read: only that the other end is gone is told
    until_s: float | None = None
    while True:
        left_ms = None if until_s is None else LOOK_EVERY_S * 1000
        for fd, told in poller.poll(left_ms):
            if fd == wake_fd:
                os.read(wake_fd, 64)
            elif told & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                poller.unregister(leash_fd)
                until_s = time.monotonic() + end_s
        pid, status = os.waitpid(server_pid, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if until_s is not None and (os.getppid() != worker_pid or time.monotonic() >= until_s):
            os.kill(server_pid, signal.SIGKILL)


def end_orphans() -> None:
    """Kill what the server started and left behind, and what that started, until nothing is left."""
    for _ in range(ROUNDS_MAX):
        for pid in children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(LOOK_EVERY_S / 2)


def children() -> list[int]:
    """Return this process's children, as far as the system tells."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except (OSError, ValueError):
        return []


if __name__ == "__main__":
    sys.exit(main())
