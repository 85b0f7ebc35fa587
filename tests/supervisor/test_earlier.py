"""The workers of a supervisor that was killed, and a Temporal that does not answer when the next one starts."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from perdure.app.supervisor import Change, Fleet, supervised
from perdure.core.fleet_limits import DEATH_REQUEST_TIMEOUT_S
from perdure.core.limits import HEARTBEAT_TIMEOUT_S
from perdure.temporal.connection import temporal_client
from perdure.temporal.embedded import EmbeddedTemporal
from perdure.temporal.settings import RemoteSettings
from tests.supervisor.fleet import FOLDER, REFERENCE, app_of, children_of, commanded, environment, is_gone
from tests.supervisor.test_deaths import result
from tests.temporal.bench import Bench, rows_of, until

pytestmark = pytest.mark.slow

OUTAGE_S = DEATH_REQUEST_TIMEOUT_S + 1.5
"""Longer than a request of a report waits, shorter than a worker's connection does."""

WITHIN_S = HEARTBEAT_TIMEOUT_S / 2
"""From when the first new worker is ready; a report that was given up leaves the attempt to its heartbeat timeout."""


async def test_p10_earlier_deaths_are_told_as_soon_as_temporal_answers(tmp_path: Path) -> None:
    async with (
        await EmbeddedTemporal.start(tmp_path / "temporal.db") as server,
        temporal_client(RemoteSettings(address=server.address, tls=False)) as client,
    ):
        bench = Bench(server.address, tmp_path, client)
        changes: list[Change] = []
        async with app_of(bench) as app:
            async with commanded(bench) as command:
                task = await app.send("held")
                await until(lambda: bench.outside.count("held") == 1)
                family = children_of(command.pid)
                command.kill()
                await command.wait()
                await until(lambda: all(is_gone(pid) for pid in family))
            (bench.home / "open").touch()
            rosters = bench.home / "workers"
            fleet = Fleet(
                REFERENCE, bench.queue, FOLDER, bench.home / "workers.log", environment(bench), rosters=rosters
            )
            os.kill(server.pid, signal.SIGSTOP)
            again = asyncio.get_running_loop().call_later(OUTAGE_S, os.kill, server.pid, signal.SIGCONT)
            try:
                async with supervised(fleet, client, changes.append):
                    await until(lambda: bench.outside.count("held.end") == 1, WITHIN_S)
                    assert await result(task) == "ok: held done"
            finally:
                again.cancel()
                os.kill(server.pid, signal.SIGCONT)
            stored = await bench.sound(task, app.store)
        assert "not_reported" in {change.kind for change in changes}
        assert [row.data["failure"] for row in rows_of(stored, "tool.failed")] == ["worker_lost"]
        assert list(rosters.iterdir()) == []


async def test_p10_a_death_that_was_not_told_before_an_orderly_end_is_told_by_the_next(tmp_path: Path) -> None:
    async with (
        await EmbeddedTemporal.start(tmp_path / "temporal.db") as server,
        temporal_client(RemoteSettings(address=server.address, tls=False)) as client,
    ):
        bench = Bench(server.address, tmp_path, client)
        rosters = bench.home / "workers"
        log = bench.home / "workers.log"
        fleet = Fleet(
            REFERENCE, bench.queue, FOLDER, log, environment(bench), processes=1, drain_s=1.0, rosters=rosters
        )
        changes: list[Change] = []
        async with app_of(bench) as app:
            try:
                async with supervised(fleet, client, changes.append) as supervisor:
                    await supervisor.full()
                    task = await app.send("held")
                    await until(lambda: bench.outside.count("held") == 1)
                    os.kill(server.pid, signal.SIGSTOP)
                    for worker in supervisor.workers:
                        os.kill(worker.pid, signal.SIGKILL)
                    await until(lambda: any(change.kind == "died" for change in changes))
            finally:
                os.kill(server.pid, signal.SIGCONT)
            assert len(list(rosters.iterdir())) == 1
            (bench.home / "open").touch()
            async with supervised(fleet, client, changes.append):
                await until(lambda: bench.outside.count("held.end") == 1, WITHIN_S)
                assert await result(task) == "ok: held done"
            await bench.sound(task, app.store)
        assert list(rosters.iterdir()) == []
