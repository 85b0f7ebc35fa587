"""What the tests of the embedded server share: owners in other processes, stand-in binaries, and waiting."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

WAIT_S = 15.0

OWNER = Path(__file__).with_name("owner.py")


@dataclass(frozen=True)
class Owner:
    """Another process that owns a server."""

    process: asyncio.subprocess.Process
    address: str
    server_pid: int
    guard_pid: int
    forked_pid: int | None


@contextlib.asynccontextmanager
async def owner_of(database: Path, *options: str) -> AsyncIterator[Owner]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(OWNER), str(database), *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(WAIT_S):
            said = json.loads(await process.stdout.readline())
        yield Owner(process, said["address"], said["pid"], said["guard"], said["forked"])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    except ProcessLookupError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


async def until(holds: Callable[[], bool], wait_s: float = WAIT_S) -> None:
    """Wait for the thing itself, with a bound."""
    async with asyncio.timeout(wait_s):
        while not holds():  # noqa: ASYNC110 - other processes cause it, and set no event here
            await asyncio.sleep(0.005)


def stand_in(folder: Path, script: str) -> Path:
    """Write a shell script that takes the binary's place."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / "temporal"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path
