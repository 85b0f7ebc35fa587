"""The killer: goes through a schedule, and notes whom it killed when, and whether they had work in hand."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from temporalio.client import Client

from perdure.cli.chaos.evidence import Kill
from perdure.cli.chaos.hosting import Host
from perdure.cli.chaos.schedule import PlannedKill
from perdure.cli.chaos.victims import busy_pids, chosen, kill
from perdure.temporal.embedded import find_record

LOOK_EVERY_S: Final = 0.05
"""How often it is looked whether there is somebody to kill again: they are other processes, and nobody calls back."""


class Killer:
    """Kills by a schedule, processes that were started here and no others."""

    def __init__(self, plan: Sequence[PlannedKill], host: Host, client: Client, task_id: str, database: Path) -> None:
        self.done: list[Kill] = []
        self._plan = plan
        self._host = host
        self._client = client
        self._task_id = task_id
        self._database = database

    async def work(self) -> None:
        """Do all kills of the schedule, one after the other; a gap begins when somebody is there to be killed."""
        for planned in self._plan:
            while not self._host.workers():  # noqa: ASYNC110 - see LOOK_EVERY_S
                await asyncio.sleep(LOOK_EVERY_S)
            await asyncio.sleep(planned.gap_s)
            while not await self._kill(planned):  # noqa: ASYNC110 - see LOOK_EVERY_S
                await asyncio.sleep(LOOK_EVERY_S)

    async def _kill(self, planned: PlannedKill) -> bool:
        match planned.target:
            case "worker":
                busy = await busy_pids(self._client, self._task_id)
                running = self._host.workers()
                pid = chosen(busy, running, planned.draw)
                return pid is not None and self._note(planned, pid, (pid,), busy=pid in busy)
            case "app":
                busy = await busy_pids(self._client, self._task_id)
                running, pid = self._host.workers(), self._host.app_pid
                if pid is None or not running:
                    return False  # it is just starting; a kill now would hit nothing that a user could lose
                return self._note(planned, pid, (pid, *running), busy=any(each in running for each in busy))
            case "temporal":
                record = find_record(self._database)
                if record is None or record.server_pid is None or record.address is None:
                    return False
                return self._note(planned, record.server_pid, (record.server_pid,), busy=True)

    def _note(self, planned: PlannedKill, pid: int, taken: tuple[int, ...], *, busy: bool) -> bool:
        at_ms = time.time_ns() // 1_000_000
        if not kill(pid):
            return False
        self.done.append(Kill(target=planned.target, at_ms=at_ms, pids=taken, busy=busy))
        return True
