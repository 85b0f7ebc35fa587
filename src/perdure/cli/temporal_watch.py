"""Noticing that the embedded Temporal, which a command owns or has joined, is gone."""

import asyncio
import os

from perdure.app.settings import Settings
from perdure.core.errors import Unavailable
from perdure.temporal.embedded import find_record
from perdure.temporal.settings import EmbeddedSettings

TEMPORAL_LOOK_S = 0.5
"""How often it is looked whether the Temporal that is used is still there; a look reads one small file."""


async def until_temporal_ends(settings: Settings) -> None:
    """Raise `Unavailable` when the embedded Temporal is gone, or belongs to another process than when this began.

    One that was joined ends with its owner. Taking its place was refused: the workers would have to move too, and the
    same command, given again, does all that.
    """
    if not isinstance(settings.temporal, EmbeddedSettings):
        await asyncio.Event().wait()  # the SDK reconnects to a remote one by itself
        return
    used = find_record(settings.temporal.database)
    while find_record(settings.temporal.database) == used:  # noqa: ASYNC110 - another process ends it, and sets no event
        await asyncio.sleep(TEMPORAL_LOOK_S)
    joined = used is not None and used.owner_pid != os.getpid()
    why = f" with process {used.owner_pid}, which had started it" if used is not None and joined else " by itself"
    raise Unavailable(f"the embedded Temporal has ended{why}")
