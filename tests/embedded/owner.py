"""A process that owns an embedded server until it is killed; says where it runs as one line of JSON."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from perdure.temporal.embedded import EmbeddedTemporal


async def main(database: Path, forks: bool) -> None:
    server = await EmbeddedTemporal.start(database)
    forked = os.fork() if forks else None
    if forked == 0:
        signal.pause()  # a child that holds copies of whatever was not closed at the fork
    said = {"address": server.address, "pid": server.pid, "guard": server.guard_pid, "forked": forked}
    print(json.dumps(said), flush=True)
    await asyncio.Event().wait()


asyncio.run(main(Path(sys.argv[1]), "fork" in sys.argv[2:]))
