"""Answers over real connections: whole for whoever reads, and not kept for whoever does not."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from types import ModuleType

import httpx
import pytest
import uvicorn

from perdure.app.entry import EntrySettings
from perdure.cli.serve import _listener
from perdure.core import door_limits, limits
from tests.a2a.desk import Desk
from tests.a2a.doors import door, entry
from tests.temporal.bench import Bench, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

LARGE = 6_000_000
"""More than the buffers between two processes of one machine hold."""


@contextlib.asynccontextmanager
async def listening(bench: Bench, rules: EntrySettings) -> AsyncIterator[tuple[Desk, uvicorn.Server, int]]:
    """A served app without workers, at a port of this machine; the desk asks it without a connection."""
    async with door(bench, bench.agent(), rules, worker=False) as (app, client):
        listener = _listener("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(app.asgi("http://127.0.0.1"), log_level="warning", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        try:
            yield client, server, listener.getsockname()[1]
        finally:
            server.should_exit = server.force_exit = True
            await serving


@contextlib.asynccontextmanager
async def asked(port: int, head: str, body: bytes = b"") -> AsyncIterator[asyncio.StreamReader]:
    """Ask, and read nothing of what comes but what the test reads."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=1024)
    lines = [head, "Host: 127.0.0.1", "A2A-Version: 1.0", "Content-Type: application/json"]
    writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
    try:
        yield reader
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def read_to_the_end(reader: asyncio.StreamReader) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(65_536):
            found += part
    return found


async def large_task(client: Desk) -> str:
    task_id: str = (await client.send("x" * LARGE, wait=False))["id"]
    return task_id


def asking(what: str, task_id: str) -> tuple[str, bytes]:
    if what == "GetTask":
        return f"GET /tasks/{task_id} HTTP/1.1", b""
    if what == "ListTasks":
        return "GET /tasks HTTP/1.1", b""
    body = {"jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": {"id": task_id}}
    return "POST / HTTP/1.1", json.dumps(body).encode()


STALLING: list[tuple[str, ModuleType, str]] = [
    ("GetTask", limits, "STREAM_STALL_S"),
    ("GetTask", door_limits, "ANSWER_S"),
    ("ListTasks", limits, "STREAM_STALL_S"),
    ("SubscribeToTask", limits, "STREAM_STALL_S"),
]


@pytest.mark.parametrize(("what", "where", "bound"), STALLING, ids=lambda each: each if isinstance(each, str) else "")
async def test_an_answer_that_nobody_reads_is_not_kept(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: str,
    where: ModuleType,
    bound: str,
) -> None:
    """B24: it holds its place until it is cut off, and then holds nothing."""
    monkeypatch.setattr(where, bound, 0.4)
    async with listening(bench, entry(REQUESTS_MAX="1")) as (client, _, port):
        head, body = asking(what, await large_task(client))
        async with asked(port, head, body) as reader:
            first = await reader.readline()
            assert b"200" in first
            async with asked(port, "GET /tasks/t-none HTTP/1.1") as other:
                assert b"503" in await other.readline()
            await until(lambda: "was cut off" in caplog.text)
            async with asked(port, "GET /tasks/t-none HTTP/1.1") as other:
                assert b"404" in await other.readline()
            assert len(await read_to_the_end(reader)) < LARGE


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has it")
async def test_a_connection_that_was_cut_is_dropped_though_nobody_reads_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "STREAM_STALL_S", 0.3)
    monkeypatch.setattr(door_limits, "CONNECTION_STALL_S", 0.6)
    async with listening(bench, entry()) as (client, server, port):
        head, body = asking("GetTask", await large_task(client))
        async with asked(port, head, body) as reader:
            await reader.readline()
            await until(lambda: "was cut off" in caplog.text)
            await until(lambda: not server.server_state.connections)


async def test_who_reads_slowly_gets_all_of_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than a stall in all, and never for so long at once."""
    monkeypatch.setattr(limits, "STREAM_STALL_S", 0.5)
    async with listening(bench, entry()) as (client, _, port):
        head, body = asking("GetTask", await large_task(client))
        async with asked(port, head, body) as reader:
            loop, found, length = asyncio.get_running_loop(), b"", 0
            began_s = loop.time()
            while not length or len(found) < length:
                part = await reader.read(32_768)
                assert part, "cut off"
                found += part
                if not length and b"\r\n\r\n" in found:
                    headers, _, found = found.partition(b"\r\n\r\n")
                    (line,) = [each for each in headers.lower().splitlines() if each.startswith(b"content-length")]
                    length = int(line.split(b":")[1])
                # What is under way is at most so late: the pace of a slow line, not a wait for something.
                await asyncio.sleep(0.8 * (len(found) / LARGE) - (loop.time() - began_s))
    assert loop.time() - began_s > 0.5
    assert json.loads(found)["history"][0]["parts"][0]["text"] == "x" * LARGE


async def test_a_large_event_comes_whole_in_its_stream(bench: Bench) -> None:
    async with listening(bench, entry()) as (client, _, port):
        task_id = await large_task(client)
        async with (
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"A2A-Version": "1.0"}) as http,
            http.stream("POST", f"/tasks/{task_id}:subscribe") as answer,
        ):
            data = [line async for line in _until_data(answer.aiter_lines())][-1]
        assert json.loads(data.removeprefix("data: "))["task"]["history"][0]["parts"][0]["text"] == "x" * LARGE


async def _until_data(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if line.startswith("data: "):
            return
