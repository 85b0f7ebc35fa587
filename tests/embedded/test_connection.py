"""The one door: what is shared, who owns, and what a failed open says and leaves."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from perdure.core.errors import ConfigurationError, EmbeddedTemporalError, Unavailable
from perdure.temporal.connection import _answered_no, _connect_failure, temporal_client, users_of
from perdure.temporal.embedded import EmbeddedTemporal
from perdure.temporal.embedded_lock import DatabaseHeldError, running
from perdure.temporal.settings import EmbeddedSettings, MemorySettings, RemoteSettings, TlsSettings
from tests.embedded.processes import is_running, owner_of, stand_in, until
from tests.embedded.workflows import TASK_QUEUE, Greeting, Waiting

pytestmark = pytest.mark.slow  # real servers or workers come and go in each test

SECRET = "the-key-itself"


def server_pid(database: Path) -> int:
    record = running(database)
    assert record is not None
    assert record.server_pid is not None
    return record.server_pid


# --- sharing ----------------------------------------------------------------------------------------------------


async def test_one_connection_is_shared_and_the_last_release_stops_the_server(database: Path) -> None:
    settings = EmbeddedSettings(database=database)
    same = EmbeddedSettings(database=database.parent / ".." / "data" / "temporal.db", own="auto")
    async with contextlib.AsyncExitStack() as first, contextlib.AsyncExitStack() as others:
        client = await first.enter_async_context(temporal_client(settings))
        pid = server_pid(database)
        opened = await asyncio.gather(*(others.enter_async_context(temporal_client(same)) for _ in range(4)))
        assert all(each is client for each in opened)
        assert users_of(settings) == 5
        await first.aclose()  # whoever opened it may leave first
        assert is_running(pid)
        assert await client.count_workflows() is not None
        await others.aclose()
        assert not is_running(pid)
        assert users_of(settings) == 0


async def test_concurrent_first_opens_start_one_server(database: Path) -> None:
    settings = EmbeddedSettings(database=database)
    all_here = asyncio.Barrier(8)

    async def visit() -> int:
        async with temporal_client(settings):
            await all_here.wait()
            return server_pid(database)

    assert len(set(await asyncio.gather(*(visit() for _ in range(8))))) == 1


async def test_an_open_during_a_close_waits_for_it(database: Path) -> None:
    settings = EmbeddedSettings(database=database)
    async with contextlib.AsyncExitStack() as first:
        await first.enter_async_context(temporal_client(settings))
        pid = server_pid(database)
        leaving = asyncio.create_task(first.aclose())
        await asyncio.sleep(0)
        async with temporal_client(settings):
            assert not is_running(pid)
            assert is_running(server_pid(database))
        await leaving


async def test_one_users_cancellation_does_not_cut_anothers_opening(database: Path) -> None:
    settings = EmbeddedSettings(database=database)

    async def hold(opened: asyncio.Event, leave: asyncio.Event) -> None:
        async with temporal_client(settings):
            opened.set()
            await leave.wait()

    opened, leave = asyncio.Event(), asyncio.Event()
    first = asyncio.create_task(hold(asyncio.Event(), asyncio.Event()))
    second = asyncio.create_task(hold(opened, leave))
    await until(lambda: users_of(settings) == 2)
    first.cancel()
    await asyncio.wait_for(opened.wait(), 15)
    leave.set()
    await second
    assert first.cancelled()


async def test_when_all_give_up_the_opening_is_undone(database: Path, tmp_path: Path) -> None:
    binary = stand_in(
        tmp_path / "bin", f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; tail -f /dev/null"
    )
    settings = EmbeddedSettings(database=database, binary_path=binary)

    async def visit() -> None:
        async with temporal_client(settings):
            raise AssertionError("never opens")

    visits = [asyncio.create_task(visit()) for _ in range(3)]
    await until((tmp_path / "pid").exists)
    for each in visits:
        each.cancel()
    await asyncio.wait(visits)
    assert all(each.cancelled() for each in visits)
    assert not is_running(int((tmp_path / "pid").read_text()))
    assert users_of(settings) == 0


async def test_a_failed_open_tells_all_and_leaves_nothing_behind(database: Path, tmp_path: Path) -> None:
    binary = stand_in(tmp_path / "bin", "echo broken; exit 1")
    failing = EmbeddedSettings(database=database, binary_path=binary)

    async def visit() -> None:
        async with temporal_client(failing):
            raise AssertionError("never opens")

    outcomes = await asyncio.gather(visit(), visit(), visit(), return_exceptions=True)
    assert [type(each) for each in outcomes] == [EmbeddedTemporalError] * 3
    assert "broken" in str(outcomes[0])
    assert users_of(failing) == 0
    async with temporal_client(EmbeddedSettings(database=database)):
        pass


async def test_a_server_in_memory_is_never_shared() -> None:
    async with temporal_client(MemorySettings()) as one, temporal_client(MemorySettings()) as other:
        assert one.service_client.config.target_host != other.service_client.config.target_host


# --- owning and joining -----------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_with_a_live_owner_always_refuses_and_the_others_join(database: Path) -> None:
    async with owner_of(database) as owner:
        with pytest.raises(DatabaseHeldError, match=f"process {owner.process.pid}"):
            async with temporal_client(EmbeddedSettings(database=database)):
                pass
        for own in ("auto", "never"):
            async with temporal_client(EmbeddedSettings(database=database, own=own)) as client:
                assert client.service_client.config.target_host == owner.address
                with pytest.raises(EmbeddedTemporalError, match="this process has joined"):
                    async with temporal_client(EmbeddedSettings(database=database)):
                        pass
        assert is_running(owner.server_pid)  # leaving a joined server does not stop it
        owner.process.kill()
        await owner.process.wait()
        async with temporal_client(EmbeddedSettings(database=database, own="auto")):
            assert running(database) is not None
            assert server_pid(database) != owner.server_pid


async def test_without_an_owner_never_says_so(database: Path) -> None:
    with pytest.raises(EmbeddedTemporalError, match="database: no server runs on"):
        async with temporal_client(EmbeddedSettings(database=database, own="never")):
            pass
    assert not list(database.parent.parent.iterdir())


# --- remote -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with await EmbeddedTemporal.start(None) as server:
        yield server.address


async def test_a_remote_temporal_is_the_same_door(address: str) -> None:
    settings = RemoteSettings(address=address)
    async with temporal_client(settings) as client, temporal_client(settings) as again:
        assert client is again
        async with temporal_client(RemoteSettings(address=address, api_key=SecretStr(SECRET), tls=False)) as keyed:
            assert keyed is not client
        handle = await client.start_workflow(Waiting.run, Greeting(text="hello"), id="w", task_queue=TASK_QUEUE)
        async with Worker(client, task_queue=TASK_QUEUE, workflows=[Waiting]):
            await handle.signal(Waiting.release)
            assert await handle.result() == Greeting(text="hello", times=(1,))
    with pytest.raises(ConfigurationError, match="namespace: 'elsewhere' does not exist"):
        async with temporal_client(RemoteSettings(address=address, namespace="elsewhere")):
            pass
    with pytest.raises(Unavailable, match=f"address: Temporal at {address} does not answer with TLS; check"):
        async with temporal_client(RemoteSettings(address=address, tls=True)):
            pass


async def test_nobody_at_the_address() -> None:
    settings = RemoteSettings(address="127.0.0.1:1", api_key=SecretStr(SECRET))
    with pytest.raises(Unavailable, match=r"address: Temporal at 127.0.0.1:1 does not answer") as caught:
        async with temporal_client(settings):
            pass
    assert SECRET not in str(caught.value)
    assert users_of(settings) == 0


async def test_silence_at_the_address_is_bounded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are made, and never accepted
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unavailable, match=r"no answer within 0.2 s"):
            async with temporal_client(RemoteSettings(address=address, connect_timeout_s=0.2)):
                pass


async def test_unreadable_and_broken_tls_files_are_named(tmp_path: Path, address: str) -> None:
    missing = RemoteSettings(address=address, tls=TlsSettings(ca=tmp_path / "missing.pem"))
    with pytest.raises(ConfigurationError, match=r"tls\.ca: cannot be read: .*missing\.pem"):
        async with temporal_client(missing):
            pass
    broken = TlsSettings(client_cert=Path(__file__), client_key=Path(__file__))
    with pytest.raises(ConfigurationError, match="tls: a certificate or key file is not PEM"):
        async with temporal_client(RemoteSettings(address=address, tls=broken)):
            pass


@pytest.mark.parametrize("status", [RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED])
def test_a_refused_key_is_named_and_not_shown(status: RPCStatusCode) -> None:
    settings = RemoteSettings(address="h:1", api_key=SecretStr(SECRET))
    for error in (
        _answered_no(settings, RPCError("no", status, b"")),
        _connect_failure(settings, "Failed client connect: Status { code: Unauthenticated }"),
    ):
        assert isinstance(error, ConfigurationError)
        assert error.field == "api_key"
        assert SECRET not in str(error)


# --- TLS with one's own authority and a client certificate ------------------------------------------------------


def certificates(folder: Path) -> None:
    """Make an authority, and a server's and a client's certificate by it, with the openssl command."""
    folder.mkdir()

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl("req", "-x509", *new_key, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    for name in ("server", "client"):
        (folder / f"{name}.ext").write_text("subjectAltName=DNS:temporal.test\nbasicConstraints=CA:FALSE\n")
        openssl("req", *new_key[:-2], "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signer = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext")
        openssl("x509", "-req", "-in", f"{name}.csr", *signer, "-out", f"{name}.pem")


@contextlib.asynccontextmanager
async def tls_in_front_of(address: str, folder: Path) -> AsyncIterator[str]:
    """Serve TLS that asks for a client certificate, and pass the bytes on to `address`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")

    open_now: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back_reader, back_writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(pump(reader, back_writer), pump(back_reader, writer))
        finally:
            for each in (writer, back_writer):
                each.transport.abort()
                with contextlib.suppress(OSError, ssl.SSLError):
                    await each.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        open_now.add(task)
        task.add_done_callback(open_now.discard)

    async with await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for task in tuple(open_now):
        task.cancel()
    await asyncio.gather(*open_now, return_exceptions=True)


async def test_tls_with_an_own_authority_and_a_client_certificate(address: str, tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    await asyncio.to_thread(certificates, folder)
    tls = TlsSettings(
        ca=folder / "ca.pem",
        client_cert=folder / "client.pem",
        client_key=folder / "client.key",
        server_name="temporal.test",
    )
    async with tls_in_front_of(address, folder) as front:
        async with temporal_client(RemoteSettings(address=front, tls=tls)) as client:
            assert await client.service_client.check_health()
        for wrong in (
            TlsSettings(ca=folder / "ca.pem", server_name="temporal.test"),
            tls.model_copy(update={"server_name": "other.test"}),
            tls.model_copy(update={"ca": None}),
        ):
            with pytest.raises(Unavailable, match="does not answer with TLS"):
                async with temporal_client(RemoteSettings(address=front, tls=wrong, connect_timeout_s=5)):
                    pass
