"""Descriptors whose closing means something: a lock that ends with its holder, a pipe whose break is a signal.

A forked child (not an executed one) gets copies of them, and would hold the lock or the pipe open after its parent
died. So they are closed in every child that Python forks.
"""

import os
from typing import Final

_owned: Final[set[int]] = set()
_hooked: Final[set[str]] = set()


def own(fd: int) -> int:
    """Mark `fd` as this process's alone and return it."""
    if not _hooked:
        os.register_at_fork(after_in_child=_close_all)
        _hooked.add("after_in_child")
    _owned.add(fd)
    return fd


def close_owned(fd: int) -> None:
    """Close `fd`, once; later calls do nothing."""
    if fd in _owned:
        _owned.discard(fd)
        os.close(fd)


def _close_all() -> None:
    for fd in tuple(_owned):
        close_owned(fd)
