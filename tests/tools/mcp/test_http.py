"""Servers at a URL: what is sent to them, and that what fails there fails alone."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from perdure import ClientCredentials, McpServer, ToolRules
from perdure.core.errors import BegunError, ToolError, Unavailable
from tests.tools.mcp.shop import SERVER, Shop, call, named, until

pytestmark = pytest.mark.slow

GUARDED = Path(__file__).with_name("guarded_server.py")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


class Served:
    """The shop at a port, started and killed by a test."""

    def __init__(self, folder: Path, port: int, program: Path = SERVER) -> None:
        self.folder = folder
        self._program = program
        self.port = port
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        command = (sys.executable, str(self._program), str(self.folder), str(self.port))
        self._process = await asyncio.create_subprocess_exec(*command)
        await until(lambda: answers(self.port))

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()


@contextlib.asynccontextmanager
async def served(shop: Shop, program: Path = SERVER) -> AsyncIterator[Served]:
    at = Served(shop.folder, free_port(), program)
    await at.start()
    try:
        yield at
    finally:
        await at.kill()


async def test_headers_are_filled_in_from_the_environment_and_masked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "a-token-of-the-shop")
    async with (
        served(shop) as at,
        McpServer("shop", url=at.url, headers={"Authorization": "Bearer ${SHOP_TOKEN}"}).opened() as tools,
    ):
        look_up = named(tools)["look_up"]
        assert look_up.spec.effect == "read"
        assert await look_up.invoke({"word": "a-token-of-the-shop"}, call()) == "${SHOP_TOKEN}: found"
    assert [line["sent"] for line in shop.told("calls")] == ["Bearer a-token-of-the-shop"]


async def test_a_server_that_is_killed_leaves_its_calls_open_and_is_found_again(shop: Shop) -> None:
    shop.be("hold-after")
    rules = {"refund": ToolRules(check="find_refund")}
    async with served(shop) as at, McpServer("shop", url=at.url, rules=rules).opened() as tools:
        refund, look_up = named(tools)["refund"], named(tools)["look_up"]
        under_way = asyncio.create_task(refund.invoke({"order_id": "A"}, call()))
        await shop.reached("after")
        await at.kill()
        with pytest.raises(BegunError, match="the MCP server 'shop'"):
            await under_way
        with pytest.raises(ToolError, match="Not begun: the MCP server 'shop' failed: cannot be reached"):
            await refund.invoke({"order_id": "B"}, call("t/1/1"))
        checking = asyncio.create_task(refund.check(call()))
        await at.start()
        assert (await checking).answer == "happened", "a check waits for a server that is away"
        assert await look_up.invoke({"word": "w"}, call("t/1/2")) == "w: found"
    assert [line["order"] for line in shop.world] == ["A"]


async def test_tokens_are_got_for_credentials_from_the_environment(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SECRET", "its-secret")
    async with served(shop, GUARDED) as at:
        issuer = at.url.removesuffix("/mcp")
        known = ClientCredentials("perdure", "${SHOP_SECRET}", issuer, scope="orders")
        async with McpServer("shop", url=at.url, oauth=known).opened() as tools:
            assert await named(tools)["hello"].invoke({}, call()) == "hello"
        assert [asked["grant"] for asked in shop.told("tokens")] == ["client_credentials"]
        for wrong in (ClientCredentials("perdure", "another", issuer), replace(known, issuer="https://elsewhere")):
            with pytest.raises(Unavailable, match="MCP server 'shop'"):
                async with McpServer("shop", url=at.url, oauth=wrong).opened():
                    pass
        assert len(shop.told("tokens")) == 2, "the secret was shown to nobody else"


@pytest.mark.parametrize(("status", "retried"), [(401, False), (403, False), (429, True)])
async def test_what_is_turned_away_did_not_begin(shop: Shop, status: int, *, retried: bool) -> None:
    headers, rules = {"Authorization": "Bearer token-of-the-shop"}, {"hello": ToolRules(effect="idempotent")}
    async with (
        served(shop, GUARDED) as at,
        McpServer("shop", url=at.url, headers=headers).opened() as tools,
        McpServer("shop", url=at.url, headers=headers, rules=rules).opened() as safe,
    ):
        (shop.folder / "answer").write_text(str(status))
        with pytest.raises(ToolError, match=f"Not begun: the MCP server 'shop' .*it answers {status}"):
            await named(tools)["hello"].invoke({}, call())
        with pytest.raises(BegunError if retried else ToolError, match=f"it answers {status}"):
            await named(safe)["hello"].invoke({}, call())
        shop.be_no_more("answer")
        assert await named(tools)["hello"].invoke({}, call()) == "hello", "the connection is as it was"


async def test_one_request_that_cannot_be_signed_fails_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SECRET", "its-secret")
    async with served(shop, GUARDED) as at:
        known = ClientCredentials("perdure", "${SHOP_SECRET}", at.url.removesuffix("/mcp"))
        async with McpServer("shop", url=at.url, oauth=known).opened() as tools:
            hello = named(tools)["hello"]
            shop.be("hold")
            under_way = asyncio.create_task(hello.invoke({}, call()))
            await shop.reached("hello")
            shop.be("revoked")
            shop.be("broken")
            with pytest.raises(ToolError, match=r"Not begun: .* it could not be signed"):
                await hello.invoke({}, call("t/1/1"))
            for name in ("revoked", "broken", "hold"):
                shop.be_no_more(name)
            assert await under_way == "hello"
            assert await hello.invoke({}, call("t/1/2")) == "hello"


async def test_one_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="the MCP server 'shop' failed: cannot be reached"):
        async with McpServer("shop", url=f"http://127.0.0.1:{free_port()}/mcp").opened():
            pass
