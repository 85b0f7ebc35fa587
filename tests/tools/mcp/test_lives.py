"""How long a server lives: as long as its worker and no longer, however that ends, and again when it is needed."""

import asyncio
import os
import sys

import pytest

from perdure.core.errors import BegunError, ToolError, Unavailable
from tests.tools.mcp.shop import Shop, call, is_alive, named, until

pytestmark = pytest.mark.slow

WORKER = """
import asyncio, sys
from pathlib import Path
from tests.tools.mcp.shop import Shop, call, named

async def work():
    async with Shop(Path(sys.argv[1])).server().opened() as tools:
        await named(tools)["spawn"].invoke({}, call())
        held = asyncio.create_task(named(tools)["put"].invoke({"name": "a", "value": 1}, call()))
        print("ready", flush=True)
        await held

asyncio.run(work())
"""


async def test_it_ends_with_its_tools_and_with_what_it_started(shop: Shop) -> None:
    async with shop.server().opened() as tools:
        await named(tools)["spawn"].invoke({}, call())
        assert len(shop.pids) == 2
        assert all(map(is_alive, shop.pids))
    assert not any(map(is_alive, shop.pids))


async def test_it_ends_when_its_worker_is_killed_also_in_the_middle_of_a_call(shop: Shop) -> None:
    shop.be("hold-before")
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, str(shop.folder), stdout=asyncio.subprocess.PIPE, cwd=os.getcwd()
    )
    try:
        assert worker.stdout is not None
        assert await worker.stdout.readline() == b"ready\n"
        await shop.reached("before")
        assert all(map(is_alive, shop.pids))
    finally:
        worker.kill()
        await worker.wait()
    await until(lambda: not any(map(is_alive, shop.pids)))
    assert shop.world == [], "the call that was cut off did not go on"


async def test_it_is_killed_when_it_does_not_end_by_itself(shop: Shop) -> None:
    async with shop.odd("deaf").opened():
        (pid,) = shop.pids
    assert not is_alive(pid)


async def test_a_call_in_flight_is_open_and_the_next_one_has_a_new_server(shop: Shop) -> None:
    shop.be("die-before")
    async with shop.server().opened() as tools:
        with pytest.raises(BegunError, match="the MCP server 'shop' ended before it answered"):
            await named(tools)["put"].invoke({"name": "a", "value": 1}, call())
        assert len(shop.pids) == 1, "nobody needs it now"
        assert await named(tools)["put"].invoke({"name": "a", "value": 1}, call(attempt=2)) == {"a": 1}
        assert len(shop.pids) == 2
    assert [line["key"] for line in shop.world] == ["t/1/0"]


async def test_calls_at_once_share_one_server(shop: Shop) -> None:
    shop.be("hold-look_up")
    async with shop.server().opened() as tools:
        look_up = named(tools)["look_up"]
        calls = [asyncio.create_task(look_up.invoke({"word": str(n)}, call(f"t/1/{n}"))) for n in range(10)]
        await shop.reached("look_up", times=10)
        shop.be_no_more("hold-look_up")
        assert await asyncio.gather(*calls) == [f"{n}: found" for n in range(10)]
    assert len(shop.pids) == 1
    assert len({line["key"] for line in shop.told("calls")}) == 10


async def test_a_call_that_is_told_to_stop_is_cancelled_at_the_server(shop: Shop) -> None:
    shop.be("hold-before")
    async with shop.server().opened() as tools:
        putting = asyncio.create_task(named(tools)["put"].invoke({"name": "a", "value": 1}, call()))
        await shop.reached("before")
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        shop.be_no_more("hold-before")
        assert await named(tools)["look_up"].invoke({"word": "w"}, call()) == "w: found", "the connection is as it was"
    assert shop.world == []


async def test_a_death_between_calls_is_noticed_before_the_next_is_sent(shop: Shop) -> None:
    async with shop.server().opened() as tools:
        refund = named(tools)["refund"]
        shop.kill()
        while len(shop.pids) == 1:
            await asyncio.sleep(0.01)  # what the kernel told of the end is heard in between
            assert await refund.ready(refund.spec.schema_digest) == ""
        assert await refund.invoke({"order_id": "A"}, call()) == "refunded A"
    assert len(shop.pids) == 2


async def test_a_server_that_does_not_come_up_again_begins_nothing(shop: Shop) -> None:
    async with shop.server().opened() as tools:
        look_up, refund = named(tools)["look_up"], named(tools)["refund"]
        shop.be("closed")
        shop.kill()
        await until(lambda: not is_alive(shop.pids[0]))
        with pytest.raises(Unavailable, match="ended before it answered"):
            await look_up.ready(None)
        with pytest.raises(ToolError, match="Not begun: the MCP server 'shop'"):
            await refund.invoke({"order_id": "A"}, call())
        with pytest.raises(BegunError, match="the MCP server 'shop'"):
            await look_up.invoke({"word": "w"}, call())
        shop.be_no_more("closed")
        assert await look_up.invoke({"word": "w"}, call()) == "w: found"
    assert shop.world == []


async def test_starts_of_a_server_that_does_not_live_are_held_apart(shop: Shop) -> None:
    async with shop.server().opened() as tools:
        shop.be("closed")
        shop.kill()
        await until(lambda: not is_alive(shop.pids[0]))
        for _ in range(4):
            with pytest.raises(Unavailable):
                await named(tools)["look_up"].ready(None)
    at_s = [line["at_s"] for line in shop.told("starts")]
    assert len(at_s) == 5
    assert at_s[4] - at_s[3] > 0.35, "0.4 s or more, less what a start itself varies by"
