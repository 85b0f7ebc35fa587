"""Whom a kill takes: the worker that has a call in hand, as Temporal says, else any of those that were started here."""

import contextlib
import os
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import Client
from temporalio.service import RPCError

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
ASK_WITHIN = timedelta(seconds=1)
"""A Temporal that takes longer is away, perhaps by our own doing."""

CALLS = frozenset({"invoke_tool", "invoke_llm"})


async def busy_pids(client: Client, task_id: str) -> tuple[int, ...]:
    """Return the workers that have an attempt of the task in hand, those with model and tool calls first."""
    try:
        described = (await client.get_workflow_handle(task_id).describe(rpc_timeout=ASK_WITHIN)).raw_description
    except RPCError:
        return ()  # Temporal is away: nobody is known to be busy
    found: list[tuple[bool, int]] = []
    for pending in described.pending_activities:
        pid = pending.last_worker_identity.partition("@")[0]
        if pending.state == STARTED and pid.isdecimal():
            found.append((pending.activity_type.name not in CALLS, int(pid)))
    return tuple(dict.fromkeys(pid for _, pid in sorted(found)))


def chosen(busy: Sequence[int], running: Sequence[int], draw: int) -> int | None:
    """Return whom to kill among those that run here; None when none does."""
    for pid in busy:
        if pid in running:
            return pid
    return running[draw % len(running)] if running else None


def kill(pid: int) -> bool:
    """SIGKILL a process that was started here; return whether it was still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def children_of(pids: Sequence[int]) -> tuple[int, ...]:
    """Return the processes whose parent is one of `pids`, by what the kernel says now."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError, IndexError):
            # "pid (name) state ppid …"; the name may hold anything, also spaces and brackets
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) in pids:
                found.append(int(entry.name))
    return tuple(sorted(found))
