"""The guard: a tiny process between an owner and its embedded server, so that the server never outlives the owner.

Run as a file by a bare interpreter (`python -I -S embedded_guard.py SERVER ARGUMENT…`): it imports nothing but the
standard library, and little of that, because every start waits for it.

The owner holds the writing end of a pipe, the *leash*; the guard reads it as its standard input.

- The leash breaks, which the kernel does however the owner ends: the server is killed at once. It is crash-safe, and
  whoever starts next on the same file waits for it.
- A byte on the leash, or a signal to end: the server is asked to stop (SIGTERM).
- The server ends: the guard ends with its status.
- The guard itself is killed: on Linux the server dies with it (a parent-death signal, which is sound here because
  the guard has one thread). Elsewhere the server would live on, and keep the database locked against a second one.

Whatever other descriptors the guard was given (the database's lock) the server inherits: the lock is held for as
long as any of the three lives.
"""

import contextlib
import os
import select
import signal
import sys
from types import FrameType

LEASH_FD = 0
OUTPUT_FD = 1
PR_SET_PDEATHSIG = 1
NOT_RUN = 127
"""Exit status when the server's binary cannot be run, as in a shell."""


def main() -> int:
    """Run the server given in the arguments under guard and return its exit status."""
    wake_fd = watch_signals()
    guard_pid = os.getpid()
    server_pid = os.fork()
    if server_pid == 0:
        become_server(sys.argv[1:], guard_pid)
    with contextlib.suppress(OSError):  # it has done so itself, or has run or ended already
        os.setpgid(server_pid, server_pid)
    with contextlib.suppress(OSError):  # nobody reads: the owner has ended, and the leash says so next
        os.write(OUTPUT_FD, f"pid {server_pid}\n".encode())
    return guard(server_pid, wake_fd)


def watch_signals() -> int:
    """Turn signals into bytes on a pipe; return its reading end."""
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    signal.set_wakeup_fd(write_fd)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, noted)
    return read_fd


def noted(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the byte on the pipe is what counts."""


def become_server(command: list[str], guard_pid: int) -> None:
    """Replace this (forked) process by the server; never returns."""
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        if sys.platform == "linux":
            die_with_parent()
        if os.getppid() != guard_pid:
            os._exit(NOT_RUN)
        null_fd = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null_fd, LEASH_FD)
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(OUTPUT_FD, f"cannot run {command[0]}: {error}\n".encode())
    os._exit(NOT_RUN)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the guard dies."""
    try:
        import ctypes  # noqa: PLC0415 - half of the guard's start-up time, needed in the child only

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    except (ImportError, OSError, AttributeError):
        return  # a Python without ctypes: the leash alone must do


def guard(server_pid: int, wake_fd: int) -> int:
    """Wait for the server's end, passing on what the leash and the signals say; return its exit status."""
    while True:
        readable, _, _ = select.select([LEASH_FD, wake_fd], [], [])
        if wake_fd in readable:
            numbers = os.read(wake_fd, 64)
            status = ended(server_pid, os.WNOHANG)
            if status is not None:
                return status
            if any(number != signal.SIGCHLD for number in numbers):
                tell(server_pid, signal.SIGTERM)
        if LEASH_FD in readable:
            if not os.read(LEASH_FD, 64):
                tell(server_pid, signal.SIGKILL)
                return ended(server_pid, 0) or 0
            tell(server_pid, signal.SIGTERM)


def tell(server_pid: int, number: int) -> None:
    """Send a signal to the server and to whatever it started: a binary may be a script around the real one."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server_pid, number)


def ended(server_pid: int, options: int) -> int | None:
    """Reap the server; return its exit status (128 + signal when one ended it), or None while it runs.

    What it started and left behind ends with it.
    """
    pid, status = os.waitpid(server_pid, options)
    if pid == 0:
        return None
    tell(server_pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
