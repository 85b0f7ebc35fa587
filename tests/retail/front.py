"""The app of the supervised conversations, as a process: it takes the customers' requests and supervises the workers.

It does what `perdure run` does for one task: it joins the embedded Temporal, which belongs to the process that started
this one, keeps four worker processes and their standby running, and sends messages. Requests come on standard input, a
JSON line each, and may come before there are workers; when the line ends, so does the app, in order. On standard output
it says, a JSON line each, which requests are acknowledged, and what became of its workers.

    python -m tests.retail.front
"""

import asyncio
import json
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from perdure import App, Settings, open_app
from perdure.app.newborn import LOG_FORMAT
from perdure.app.supervisor import Change, Fleet, supervised
from perdure.cli.signals import first_of
from perdure.core.errors import InvalidInput, Unavailable
from perdure.temporal.connection import temporal_client
from tests.retail.clerk import REFERENCE, Place, clerk

PROCESSES = 4
SEND_AGAIN_S = 0.1


@dataclass(frozen=True)
class Front:
    """The app at work: requests come from `line`."""

    app: App
    line: asyncio.StreamReader

    async def take_all(self) -> None:
        """Take requests until the line ends."""
        async with asyncio.TaskGroup() as taking:
            while request := await self.line.readline():
                said = json.loads(request)
                taking.create_task(self._take(said["task_id"], said["text"]))

    async def _take(self, task_id: str, text: str) -> None:
        """Send a request on, as often as it takes until it is durable, always under the same ids."""
        while True:
            try:
                await self.app.send(text, task_id=task_id, message_id=f"{task_id}-m1")
            except Unavailable:
                await asyncio.sleep(SEND_AGAIN_S)
                continue
            except InvalidInput as error:
                if error.field != "task_id":
                    raise
                # It exists: an earlier try came through, perhaps an earlier app's, and its answer did not.
            say(event="acknowledged", task_id=task_id)
            return


def say(**said: object) -> None:
    """Say something in one write, which a kill cannot cut in two."""
    os.write(sys.stdout.fileno(), json.dumps(said).encode() + b"\n")


def _tell(change: Change) -> None:
    say(event=change.kind, pid=change.pid, part=change.part, text=change.text, failed=change.failed)


async def main() -> None:
    """Serve until standard input ends."""
    settings = Settings.from_environment()
    agent = clerk(Place.of(os.environ))
    fleet = Fleet(
        REFERENCE,
        agent.id,
        Path.cwd(),
        log=settings.home / "worker.log",
        processes=PROCESSES,
        rosters=settings.home / "workers",
    )
    line = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(line), sys.stdin)
    async with (
        open_app(agent, settings=settings, worker=False) as app,
        temporal_client(settings.temporal) as client,
    ):

        async def supervise() -> None:
            async with supervised(fleet, client, _tell) as supervisor:
                await supervisor.watch()

        await first_of(Front(app, line).take_all(), supervise())


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=LOG_FORMAT)
    asyncio.run(main())
