"""Each clause of the embedded server's contract, against the real binary and real processes."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from perdure.core.errors import EmbeddedTemporalError
from perdure.temporal.embedded import EmbeddedTemporal
from perdure.temporal.embedded_binary import find_binary
from perdure.temporal.embedded_lock import DatabaseHeldError, DatabaseLock, lock_path
from perdure.temporal.embedded_server import ServerProcess
from perdure.temporal.listeners import listeners
from tests.embedded.processes import is_running, owner_of, stand_in, until

pytestmark = pytest.mark.slow  # real servers or workers come and go in each test

LOOPBACK = int.from_bytes(bytes([127, 0, 0, 1]), sys.byteorder)

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def socket_table() -> str:
    return subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout


async def free(database: Path) -> None:
    """Prove that nobody holds the database."""
    assert EmbeddedTemporal.find(database) is None
    lock = await DatabaseLock.acquire(database)
    lock.release()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- loopback only ----------------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("ui", [False, True])
async def test_every_listener_is_on_loopback(database: Path, ui: bool) -> None:
    async with await EmbeddedTemporal.start(database, ui=ui) as server:
        # It answers before the last of its parts listens.
        await until(lambda: len(listeners(server.pid) or ()) >= 6 + ui)
        found = listeners(server.pid)
        assert found is not None  # frontend, HTTP, metrics, history, matching, worker: none was overlooked
        assert {address for address, _ in found} == {f"{LOOPBACK:08X}"}
        assert int(server.address.rpartition(":")[2]) in {port for _, port in found}
        if ui:
            assert server.ui_url is not None
            with await asyncio.to_thread(urllib.request.urlopen, server.ui_url) as page:
                assert page.status == 200
        else:
            assert server.ui_url is None
        if shutil.which("ss"):  # the same by another witness
            table = await asyncio.to_thread(socket_table)
            rows = [row.split() for row in table.splitlines() if f"pid={server.pid}," in row]
            assert len(rows) >= len(found)
            assert all(row[3].startswith("127.0.0.1:") for row in rows)


# --- private ----------------------------------------------------------------------------------------------------


async def test_files_are_private_also_when_they_were_looser(database: Path) -> None:
    files = [database, *(database.with_name(database.name + end) for end in ("-wal", "-shm", ".lock"))]
    before = os.umask(0o022)
    try:
        async with await EmbeddedTemporal.start(database):
            assert {path.name: mode(path) for path in files} == {path.name: 0o600 for path in files}
            assert mode(database.parent) == 0o700
        left = [path for path in files if path.exists()]
        assert database in left
        for path in left:
            path.chmod(0o644)
        async with await EmbeddedTemporal.start(database):
            assert {path.name: mode(path) for path in files} == {path.name: 0o600 for path in files}
    finally:
        os.umask(before)


@pytest.mark.parametrize("suffix", ["", "-wal", ".lock"])
async def test_a_symbolic_link_in_a_files_place_is_refused(database: Path, suffix: str, tmp_path: Path) -> None:
    database.parent.mkdir(mode=0o700)
    target = tmp_path / "elsewhere"
    target.write_text("")
    target.chmod(0o644)
    if suffix == "":
        target = tmp_path / "a folder"
        target.mkdir(mode=0o755)
    database.with_name(database.name + suffix).symlink_to(target)
    with pytest.raises(EmbeddedTemporalError, match=r"database: .* cannot be used"):
        await EmbeddedTemporal.start(database)
    assert mode(target) in {0o644, 0o755}


async def test_a_folder_that_others_can_write_to_is_refused(database: Path) -> None:
    database.parent.mkdir(mode=0o700)
    database.parent.chmod(0o770)
    with pytest.raises(EmbeddedTemporalError, match=r"can be written by others .*; run `chmod go-w"):
        await EmbeddedTemporal.start(database)
    assert not list(database.parent.iterdir())


async def test_the_servers_environment_holds_no_keys(database: Path, tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", f"env > {tmp_path}/env; umask > {tmp_path}/umask; exit 1")
    environment = {"HOME": "/home/somebody", "TEMPORAL_API_KEY": "hidden", "OPENAI_API_KEY": "hidden"}
    with pytest.raises(EmbeddedTemporalError):
        await EmbeddedTemporal.start(database, binary_path=binary, environment=environment)
    told = (tmp_path / "env").read_text()
    assert "HOME=/home/somebody" in told
    assert "hidden" not in told
    assert int((tmp_path / "umask").read_text(), 8) == 0o077


# --- one owner, others join -------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_second_owner_is_refused_by_name_and_others_find_the_first(database: Path) -> None:
    assert EmbeddedTemporal.find(database) is None
    async with owner_of(database) as owner:
        with pytest.raises(DatabaseHeldError, match=f"belongs to the running process {owner.process.pid};"):
            await EmbeddedTemporal.start(database)
        assert EmbeddedTemporal.find(database) == owner.address
        assert EmbeddedTemporal.find(database.parent / ".." / "data" / "temporal.db") == owner.address
        assert is_running(owner.server_pid)


async def test_within_one_process_a_second_owner_is_refused_too(database: Path) -> None:
    async with await EmbeddedTemporal.start(database) as server:
        with pytest.raises(DatabaseHeldError, match=f"process {os.getpid()}"):
            await EmbeddedTemporal.start(database)
        assert EmbeddedTemporal.find(database) == server.address
    assert EmbeddedTemporal.find(database) is None


async def test_a_stale_record_is_never_believed(database: Path) -> None:
    database.parent.mkdir(mode=0o700)
    lock_path(database).write_text(f'{{"owner_pid": {os.getpid()}, "address": "127.0.0.1:1"}}')
    assert EmbeddedTemporal.find(database) is None
    lock_path(database).write_text("not a record")
    async with await EmbeddedTemporal.start(database) as server:
        assert EmbeddedTemporal.find(database) == server.address


# --- gone with its owner ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("fork",)], ids=["alone", "with a forked child left"])
async def test_the_server_goes_when_its_owner_is_killed_and_the_next_starts_at_once(
    database: Path, options: tuple[str, ...]
) -> None:
    async with owner_of(database, *options) as owner:
        try:
            os.kill(owner.process.pid, signal.SIGKILL)  # not waited for: the next one starts at once
            async with await EmbeddedTemporal.start(database) as server:
                assert not is_running(owner.server_pid)
                assert server.pid != owner.server_pid
                assert EmbeddedTemporal.find(database) == server.address
            assert not is_running(owner.guard_pid)
        finally:
            if owner.forked_pid is not None:
                assert is_running(owner.forked_pid)
                os.kill(owner.forked_pid, signal.SIGKILL)


@linux
@pytest.mark.slow
async def test_the_server_goes_when_owner_and_guard_are_both_killed(database: Path) -> None:
    async with owner_of(database) as owner:
        os.kill(owner.guard_pid, signal.SIGKILL)
        owner.process.kill()
        await owner.process.wait()
        await until(lambda: not is_running(owner.server_pid))
        await free(database)


@pytest.mark.slow
async def test_the_lock_is_held_while_the_old_server_lives(database: Path) -> None:
    """The dangerous moment: the owner is dead, its server is not. A stopped guard and server stretch it."""
    async with owner_of(database) as owner:
        for pid in (owner.guard_pid, owner.server_pid):
            os.kill(pid, signal.SIGSTOP)
        try:
            owner.process.kill()
            await owner.process.wait()
            assert EmbeddedTemporal.find(database) is None
            next_one = asyncio.create_task(EmbeddedTemporal.start(database))
            done, _ = await asyncio.wait([next_one], timeout=0.7)  # longer than a start takes
            assert not done
            assert is_running(owner.server_pid)
        finally:
            os.kill(owner.guard_pid, signal.SIGCONT)
        async with await next_one:
            assert not is_running(owner.server_pid)


async def test_a_term_signal_to_the_guard_stops_the_server_in_order(database: Path) -> None:
    async with await EmbeddedTemporal.start(database) as server:
        pid = server.pid
        os.kill(server.guard_pid, signal.SIGTERM)
        await asyncio.wait_for(server.wait(), 10)
        assert not is_running(pid)


async def test_stopping_ends_server_and_guard_and_frees_the_database(database: Path) -> None:
    server = await EmbeddedTemporal.start(database)
    await server.stop()
    assert not is_running(server.pid)
    assert not is_running(server.guard_pid)
    await server.stop()
    await free(database)


async def test_a_cancelled_stop_kills_at_once(database: Path) -> None:
    server = await EmbeddedTemporal.start(database)
    stopping = asyncio.create_task(server.stop(grace_s=60))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert not is_running(server.pid)
    assert EmbeddedTemporal.find(database) is None


async def test_a_server_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", "trap '' TERM; echo 'Server: here:1'; while :; do read -r _ < /dev/zero; done")
    server = await ServerProcess.spawn([str(binary)], tmp_path, None, os.environ)
    pid = await server.known_pid()
    await server.announced(1)
    await server.stop(grace_s=0.2)
    assert not is_running(pid)


# --- a failed start is one clear error --------------------------------------------------------------------------


async def test_a_database_in_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedTemporalError, match=r"database: .*cannot be used: .*name a file in a folder"):
        await EmbeddedTemporal.start(tmp_path / "file" / "temporal.db")


async def test_a_file_that_is_no_database_shows_the_servers_words_and_frees_the_lock(tmp_path: Path) -> None:
    database = tmp_path / "temporal.db"
    shutil.copyfile(__file__, database)
    with pytest.raises(EmbeddedTemporalError, match=r"(?s)ended at its start.*file is not a database"):
        await EmbeddedTemporal.start(database)
    database.rename(tmp_path / "away")
    await free(database)


async def test_a_binary_that_exits_shows_its_last_words(database: Path, tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", "i=0; while [ $i -lt 99 ]; do i=$((i+1)); echo line $i; done; exit 3")
    with pytest.raises(EmbeddedTemporalError, match=r"(?s)status 3.*line 99$") as caught:
        await EmbeddedTemporal.start(database, binary_path=binary)
    assert "line 1\n" not in str(caught.value)


async def test_a_binary_that_cannot_be_run(database: Path, tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", "")
    binary.write_bytes(b"\x7fELF and nothing else")
    with pytest.raises(EmbeddedTemporalError, match=r"cannot run .*temporal: .*Exec format error"):
        await EmbeddedTemporal.start(database, binary_path=binary)


async def test_a_binary_that_never_answers_is_stopped_and_reported(database: Path, tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", f"echo $$ > {tmp_path}/pid; echo thinking; exec tail -f /dev/null")
    with pytest.raises(EmbeddedTemporalError, match=r"(?s)within 0.5 s \(startup_timeout_s\).*thinking"):
        await EmbeddedTemporal.start(database, binary_path=binary, startup_timeout_s=0.5)
    assert not is_running(int((tmp_path / "pid").read_text()))
    assert EmbeddedTemporal.find(database) is None


async def test_a_cancelled_start_leaves_nothing_behind(database: Path, tmp_path: Path) -> None:
    binary = stand_in(
        tmp_path / "bin", f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; tail -f /dev/null"
    )
    start = asyncio.create_task(EmbeddedTemporal.start(database, binary_path=binary))
    await until((tmp_path / "pid").exists)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not is_running(int((tmp_path / "pid").read_text()))
    await free(database)


async def test_a_port_lost_to_someone_else_is_chosen_again(database: Path, tmp_path: Path) -> None:
    script = (
        f"if [ ! -e {tmp_path}/tried ]; then touch {tmp_path}/tried; "
        'echo "Error: listen tcp 127.0.0.1:1: bind: address already in use"; exit 1; fi; '
        f'exec {find_binary()} "$@"'
    )
    async with await EmbeddedTemporal.start(database, binary_path=stand_in(tmp_path / "bin", script)) as server:
        assert EmbeddedTemporal.find(database) == server.address
    assert (tmp_path / "tried").exists()
