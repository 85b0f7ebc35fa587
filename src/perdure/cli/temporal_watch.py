"""Noticing that the embedded Temporal, which a command owns or has joined, is gone."""

import asyncio
import os
from pathlib import Path

from perdure.app.settings import Settings
from perdure.core.errors import Unavailable
from perdure.temporal.embedded import find_record
from perdure.temporal.settings import EmbeddedSettings

TEMPORAL_LOOK_S = 0.5
"""How often it is looked whether the Temporal that is used is still there; a look reads one small file."""


async def until_temporal_ends(settings: Settings) -> None:
    """Raise `Unavailable` when the embedded Temporal has an owner no more, or another one than when this began.

    A server that died is none of this: its owner starts it again on the same ports, and everything here reconnects.
    One that was joined ends with its owner. Taking its place was refused: the workers would have to move too, and the
    same command, given again, does all that.
    """
    if not isinstance(settings.temporal, EmbeddedSettings):
        await asyncio.Event().wait()  # the SDK reconnects to a remote one by itself
        return
    database = settings.temporal.database
    used = _owner(database)
    while _owner(database) == used:  # noqa: ASYNC110 - another process ends it, and sets no event
        await asyncio.sleep(TEMPORAL_LOOK_S)
    joined = used is not None and used != os.getpid()
    why = f" with process {used}, which had started it" if joined else " and could not be started again"
    raise Unavailable(f"the embedded Temporal has ended{why}")


def _owner(database: Path) -> int | None:
    record = find_record(database)
    return None if record is None else record.owner_pid
