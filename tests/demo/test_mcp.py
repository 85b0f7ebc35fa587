"""The demo over MCP servers: the same play and the same verdict as with Python functions."""

import os
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest
from pydantic import JsonValue

from perdure.cli.demo.agent import shop_agent, shop_tools
from perdure.cli.demo.sources import NAMES
from perdure.cli.demo.world import BLENDER_ORDER, World, tracking_number
from perdure.core.artifacts import WithFiles
from perdure.core.errors import ToolError
from perdure.core.ports import Call
from perdure.core.sources import ToolSource
from tests.demo.test_demo import played
from tests.temporal.bench import until

pytestmark = pytest.mark.slow


def call(tool: str, key: str) -> Call:
    return Call(idempotency_key=key, attempt=1, task_id="t", tool=tool)


async def test_servers_and_functions_are_the_same_tools(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world.db", date(2031, 3, 12))
    plain = {tool.spec.name: tool for tool in shop_tools(world)}
    async with shop_agent(world, mcp=True).opened() as agent:
        specs = {tool.name: tool for tool in agent.spec().tools}
        assert set(specs) == {NAMES[name] for name in plain}
        for name, tool in plain.items():
            served = specs[NAMES[name]]
            assert served.model_copy(update={"name": name, "schema_digest": None}) == tool.spec
        ports = {tool.spec.name: tool for tool in agent.tools if not isinstance(tool, ToolSource)}
        ship, refund = ports["orders.ship_replacement"], ports["orders.refund"]
        where: dict[str, JsonValue] = {"order_id": BLENDER_ORDER, "address": "here"}
        assert await ship.invoke(where, call("ship", "t/1/0")) == tracking_number("t/1/0")
        found = await ship.check(call("ship", "t/1/0"))
        assert (found.answer, found.result) == ("happened", tracking_number("t/1/0"))
        assert (await ship.check(call("ship", "t/2/0"))).answer == "never"
        with pytest.raises(ToolError, match="closed"):
            await ship.invoke(where, call("ship", "t/2/0"))
        with pytest.raises(ToolError, match="photo"):
            await refund.invoke({"order_id": BLENDER_ORDER, "amount": 10}, call("refund", "t/3/0"))
        order = await ports["orders.get_order"].invoke({"order_id": BLENDER_ORDER}, call("get", "t/4/0"))
        assert not isinstance(order, WithFiles)
        assert order == world.get_order(BLENDER_ORDER)
    assert len(world.snapshot()["shipments"]) == 1


async def test_killed_twice_over_mcp_the_verdict_is_the_same(tmp_path: Path) -> None:
    done = await played(tmp_path, "--mcp", "--json")
    assert done.status == 0, (done.lines, done.errors)
    verdict = done.verdict
    assert done.broken == []
    assert {row["tool"] for row in verdict["effects"]} == {
        *("orders.list_open_orders", "orders.get_order", "orders.ship_replacement", "policy.look_up_policy")
    }
    with closing(sqlite3.connect(verdict["world"])) as connection:
        assert connection.execute("SELECT count(*) FROM shipments").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM refunds").fetchall() == [(0,)]
        assert connection.execute("SELECT count(*) FROM calls WHERE tool = 'get_order'").fetchall() == [(2,)]
    plain = await played(tmp_path, "--json")
    assert plain.status == 0, plain.errors
    shapes = [[judgement["promise"] for judgement in each.verdict["judgements"]] for each in (done, plain)]
    assert shapes[0] == shapes[1]
    await until(lambda: _servers_over(Path(verdict["world"])) == [])


def _servers_over(world: Path) -> list[str]:
    """Return the processes that still have the world in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            if str(world).encode() in command:
                found.append(entry.name)
    return found
