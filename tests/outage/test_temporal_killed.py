"""The embedded Temporal is killed under load, ten times: nothing that was acknowledged is lost, nothing done twice.

The owner of the server works in this process, another worker in a process that has joined. Starts, messages and
completions of activities are tracked one by one by whoever got the acknowledgement; effects by the outside's log.
"""

import asyncio
import os
import random
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from perdure import App, Settings, open_app
from perdure.app.processes import WorkerProcess
from perdure.temporal.connection import temporal_client
from perdure.temporal.embedded import find_record
from perdure.temporal.settings import EmbeddedSettings
from tests.outage.acting import PLACE, agent
from tests.outage.load import Load
from tests.outage.probe import PROBE_QUEUE, Completer, Probe
from tests.temporal.bench import Bench, event, rows_of, until

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2]
KILLS = 10
SENDERS = 3
PROBES = ("probe-1", "probe-2")
ALL_S = 90.0


async def kill_server(database: Path) -> float:
    """Kill the server and wait until its owner has it running again at the same place; return the seconds."""
    before = find_record(database)
    assert before is not None
    assert before.server_pid is not None
    os.kill(before.server_pid, signal.SIGKILL)
    killed_s = time.monotonic()

    def back() -> bool:
        now = find_record(database)
        return now is not None and now.server_pid not in (None, before.server_pid)

    await until(back)
    again = find_record(database)
    assert again is not None
    assert again.address == before.address
    return time.monotonic() - killed_s


def whole(database: Path) -> bool:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)])
    finally:
        connection.close()


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed_ten_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = int(os.environ.get("PERDURE_TEST_SEED", random.randrange(10_000)))
    print(f"seed {seed}")
    moments = random.Random(seed)
    monkeypatch.setenv(PLACE, str(tmp_path))
    settings = Settings.from_environment({}, tmp_path)
    database = tmp_path / "temporal.db"
    assert settings.temporal == EmbeddedSettings(database=database, own="auto")
    down_s = []
    async with (
        asyncio.timeout(ALL_S),
        temporal_client(settings.temporal) as client,
        open_app(agent, settings=settings, drain_s=1) as app,
    ):
        joined = await WorkerProcess.start(
            "tests.outage.acting:agent", tmp_path, folder=FOLDER, log=tmp_path / "worker.log"
        )
        try:
            load, completer = Load(app), Completer(client)
            async with Worker(client, task_queue=PROBE_QUEUE, workflows=[Probe], activities=[completer.step]):
                probes = [await client.start_workflow(Probe.run, id=probe, task_queue=PROBE_QUEUE) for probe in PROBES]
                completing = asyncio.create_task(completer.run())
                senders = [asyncio.create_task(load.send(str(number))) for number in range(SENDERS)]
                await load.more(5)
                await completer.more(2)
                for _ in range(KILLS):
                    await asyncio.sleep(moments.random() * 0.3)  # a moment of chance, not a wait for something
                    down_s.append(await kill_server(database))
                    await load.more(4)
                    await completer.more(1)
                load.ending = True
                await asyncio.gather(*senders)
                for probe in probes:
                    await probe.signal(Probe.end)
                said = {probe.id: await probe.result() for probe in probes}
                completing.cancel()
            await judge(tmp_path, client, app, load)
            assert app.worker_failed is not None
            assert not app.worker_failed.is_set()
            assert joined.returncode is None
        finally:
            await joined.kill()
    print(f"{len(load.tasks)} starts, {load.acknowledged} messages ({load.unanswered} sent again),")
    print(f"{len(completer.acknowledged)} completions; down for {min(down_s):.2f} to {max(down_s):.2f} s")
    assert len(completer.acknowledged) > KILLS
    for (probe_id, number), value in completer.acknowledged.items():
        assert said[probe_id][number] == value, "an acknowledged completion was lost"
    assert whole(database)
    assert whole(tmp_path / "store.db")


async def judge(home: Path, client: Client, app: App, load: Load) -> None:
    """P1, P3, P5 and P6 of every task that was started, from its log and the outside's."""
    bench = Bench(client.service_client.config.target_host, home, client)
    acted = 0
    for task_id in load.tasks:
        task, given = app.task(task_id), load.messages[task_id]
        await event(task, "message.promoted", message_id=given[-1])
        await event(task, "run.ended", end="answered", count=await _runs(task_id, app, given))
        await task.cancel()
        await event(task, "task.status", state="canceled")
        stored = await bench.sound(task, app.store, replays=False)  # P5, P6
        promoted = [row.data["message_id"] for row in rows_of(stored, "message.promoted")]
        assert promoted == given, "P1"
        assert [row.data["reason"] for row in rows_of(stored, "tool.in_doubt")] == []
        acted += len(rows_of(stored, "tool.finished"))
    assert set(bench.outside.keys().values()) == {1}, "P3"
    assert len(bench.outside.all()) == acted == load.acknowledged, "one effect for each message"


async def _runs(task_id: str, app: App, given: list[str]) -> int:
    """Wait until every message was acted on, and return the number of runs that this took."""
    promoted, runs = 0, 0
    async for each in app.task(task_id).events():
        promoted += each.kind == "message.promoted"
        runs += each.kind == "run.started"
        if promoted == len(given):
            return runs
    raise AssertionError(f"{task_id} ended before all its messages were acted on")
