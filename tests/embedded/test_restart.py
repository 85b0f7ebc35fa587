"""A server that dies while its owner lives comes back where it was; one that cannot is given up, and that is said."""

import asyncio
import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest
from temporalio.worker import Worker

from perdure.core import fleet_limits
from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.connection import temporal_client
from perdure.temporal.embedded import EmbeddedTemporal, find_record
from perdure.temporal.embedded_binary import find_binary
from perdure.temporal.embedded_launch import HOST
from perdure.temporal.embedded_lock import DatabaseHeldError
from perdure.temporal.settings import EmbeddedSettings
from tests.embedded.processes import is_running, owner_of, stand_in, until
from tests.embedded.workflows import TASK_QUEUE, Greeting, Waiting

pytestmark = pytest.mark.slow  # real servers or workers come and go in each test


async def killed(server: EmbeddedTemporal) -> int:
    """Kill the server and return its process number once it is gone."""
    pid = server.pid
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(server.wait(), 10)
    return pid


async def test_it_comes_back_on_the_same_address_and_the_lock_stays_held(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with await EmbeddedTemporal.start(database) as server:
        address, guard_pid = server.address, server.guard_pid
        pid = await killed(server)
        assert EmbeddedTemporal.find(database) is None  # a dead server's address is not given out
        record = find_record(database)
        assert record is not None
        assert record.owner_pid == os.getpid()
        with pytest.raises(DatabaseHeldError):
            await EmbeddedTemporal.start(database)
        await until(lambda: server.restarts == 1)
        assert EmbeddedTemporal.find(database) == server.address == address
        assert server.pid != pid
        assert not is_running(pid)
        assert not is_running(guard_pid)
        assert "ended by itself" in caplog.text
        assert f"runs again at {address}" in caplog.text
    assert find_record(database) is None


@pytest.mark.slow
async def test_clients_and_workers_go_on_in_the_owner_and_where_it_was_joined(database: Path) -> None:
    settings = EmbeddedSettings(database=database, own="auto")
    async with owner_of(database) as owner, temporal_client(settings) as client:
        async with Worker(client, task_queue=TASK_QUEUE, workflows=[Waiting]) as worker:
            handle = await client.start_workflow(Waiting.run, Greeting(text="hi"), id="w", task_queue=TASK_QUEUE)
            os.kill(owner.server_pid, signal.SIGKILL)
            await until(lambda: not is_running(owner.server_pid))
            await handle.signal(Waiting.release)  # waits until the server is back
            async with asyncio.timeout(20):
                assert await handle.result() == Greeting(text="hi", times=(1,))
            assert worker.is_running
        assert EmbeddedTemporal.find(database) == owner.address


async def test_a_port_that_is_taken_for_a_moment_is_waited_for(
    database: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    binary = switched(tmp_path, "[ -e {down} ] && sleep 60")
    async with await EmbeddedTemporal.start(database, binary_path=binary) as server:
        port = int(server.address.rpartition(":")[2])
        (tmp_path / "down").touch()  # the first restart hangs, until the port is ours
        await killed(server)
        hung = await next_server(server)
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((HOST, port))
            taken.listen()
            (tmp_path / "down").unlink()
            os.killpg(hung, signal.SIGKILL)
            await until(lambda: "address already in use" in caplog.text)
        await until(lambda: server.restarts == 1)
        assert server.address.endswith(f":{port}")


async def test_one_that_does_not_come_up_again_is_given_up(
    database: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_limits, "TEMPORAL_RESTARTS_MAX", 2)
    binary = switched(tmp_path, "[ -e {down} ] && {{ echo broken for good; exit 1; }}")
    async with await EmbeddedTemporal.start(database, binary_path=binary) as server:
        (tmp_path / "down").touch()
        await killed(server)
        await asyncio.wait_for(server.given_up.wait(), 20)
        assert "broken for good" in caplog.text
        assert "is not started again" in caplog.text
        assert find_record(database) is None  # nobody waits for it any more
        with contextlib.suppress(EmbeddedTemporalError):
            await EmbeddedTemporal.start(database, binary_path=binary)
    async with await EmbeddedTemporal.start(database) as again:
        assert again.restarts == 0


async def test_stopping_in_the_middle_of_a_restart_leaves_nothing(database: Path, tmp_path: Path) -> None:
    binary = switched(tmp_path, "[ -e {down} ] && sleep 60")
    server = await EmbeddedTemporal.start(database, binary_path=binary)
    (tmp_path / "down").touch()
    await killed(server)
    hung = await next_server(server)
    stopping = asyncio.create_task(server.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert not is_running(hung)
    assert find_record(database) is None
    async with await EmbeddedTemporal.start(database) as again:
        assert again.address


async def test_one_in_memory_has_nothing_to_come_back_to(caplog: pytest.LogCaptureFixture) -> None:
    async with await EmbeddedTemporal.start(None) as server:
        await killed(server)
        await asyncio.wait_for(server.given_up.wait(), 10)
        assert server.restarts == 0
        assert "ended by itself" in caplog.text


def switched(folder: Path, when_down: str) -> Path:
    """Return a binary that is the real one while the file `down` does not exist."""
    script = f'echo $$ > {folder}/started\n{when_down.format(down=folder / "down")}\nexec {find_binary(None)} "$@"'
    return stand_in(folder / "bin", script)


async def next_server(server: EmbeddedTemporal) -> int:
    """Return the process number of the restart that is under way."""
    started = server._launch.binary.parent.parent / "started"

    def pid() -> int:
        text = started.read_text().strip()
        return int(text) if text.isdecimal() else 0

    await until(lambda: pid() not in (0, server.pid) and is_running(pid()))
    return pid()
