"""Calls that take time, are cancelled and are killed: the shop's log always tells which of them happened."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from perdure.core.errors import ToolError
from perdure.core.ports import Call, Check
from perdure.tools import FunctionTool
from tests.retail.data import Json, Task, conversation
from tests.retail.serving import no_hold, seeded_hold, serve
from tests.retail.shop import IDEMPOTENT, ONCE_NAMES, READ_NAMES, RULES, Shop, shop_path, task_of
from tests.retail.small import small_data
from tests.retail.tools import shop_tools

ROOT = Path(__file__).parents[2]
CANCEL: Json = {"order_id": "#G1", "reason": "no longer needed"}
LONG_S = 30.0
BOUND_S = 15.0


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.create(shop_path(tmp_path, "t"), small_data())


def call_of(key: str, tool: str) -> Call:
    return Call(idempotency_key=key, attempt=1, task_id=task_of(key), tool=tool)


def before(key: str, attempt: int) -> tuple[float, float]:
    return LONG_S, 0.0


def after(key: str, attempt: int) -> tuple[float, float]:
    return 0.0, LONG_S


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - the shop's file is written by another thread or process
            await asyncio.sleep(0.005)


def test_all_tools_are_declared_with_their_classes(tmp_path: Path) -> None:
    tools = {tool.spec.name: tool for tool in shop_tools(tmp_path, heartbeat_timeout_s=2.0)}
    assert tools.keys() == RULES.keys()
    assert {name for name, tool in tools.items() if tool.spec.effect == "read"} == READ_NAMES
    assert {name for name, tool in tools.items() if tool.spec.effect == "once"} == ONCE_NAMES
    assert {name for name, tool in tools.items() if tool.spec.effect == "idempotent"} == {
        rule.__name__ for rule in IDEMPOTENT
    }
    assert all(tool.spec.heartbeat_timeout_s == 2.0 for tool in tools.values())


def test_every_call_of_the_forty_fits_its_tool(tasks: tuple[Task, ...], tmp_path: Path) -> None:
    tools = {tool.spec.name: tool for tool in shop_tools(tmp_path)}
    for task in tasks:
        for name, arguments in conversation(task)[0]:
            assert tools[name].problem(arguments) is None


def tool_of(folder: Path, name: str) -> FunctionTool[..., Awaitable[Any]]:
    return next(tool for tool in shop_tools(folder) if tool.spec.name == name)


async def test_a_tool_calls_the_shop_of_its_task(shop: Shop, tmp_path: Path) -> None:
    cancel = tool_of(tmp_path, "cancel_pending_order")
    result = await cancel.invoke(dict(CANCEL), call_of("t/1/0", "cancel_pending_order"))
    assert isinstance(result, dict)
    assert result["status"] == "cancelled"
    with pytest.raises(ToolError, match="cancelled, not pending"):
        await cancel.invoke(dict(CANCEL), call_of("t/2/0", "cancel_pending_order"))
    with pytest.raises(FileNotFoundError, match="no shop"):
        await cancel.invoke(dict(CANCEL), call_of("u/1/0", "cancel_pending_order"))
    assert [(line.key, line.outcome) for line in shop.log()] == [("t/1/0", "applied"), ("t/2/0", "refused")]


@pytest.mark.parametrize("name", sorted(RULES.keys() - READ_NAMES))
async def test_a_check_finds_or_closes_the_key(shop: Shop, tmp_path: Path, name: str) -> None:
    tool = tool_of(tmp_path, name)
    applied = shop.call("cancel_pending_order", CANCEL, "t/1/0")
    assert await tool.check(call_of("t/1/0", name)) == Check.happened(applied.result)
    assert await tool.check(call_of("t/2/0", name)) == Check.never()
    assert [(line.key, line.outcome) for line in shop.log()] == [("t/1/0", "applied"), ("t/2/0", "closed")]


async def test_a_call_cancelled_before_its_effect_did_not_happen(shop: Shop, tmp_path: Path) -> None:
    call = asyncio.create_task(serve(tmp_path, "cancel_pending_order", CANCEL, "t/1/0", 1, before))
    await until(shop.arrivals)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert shop.log() == []
    assert shop.arrivals()[0].left_ms is not None
    assert not shop.find("t/1/0").happened


async def test_a_call_cancelled_after_its_effect_happened(shop: Shop, tmp_path: Path) -> None:
    call = asyncio.create_task(serve(tmp_path, "cancel_pending_order", CANCEL, "t/1/0", 1, after))
    await until(shop.log)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert shop.find("t/1/0").happened


async def test_a_call_cancelled_at_its_effect_is_told_by_the_log(shop: Shop, tmp_path: Path) -> None:
    calls = [
        asyncio.create_task(serve(tmp_path, "modify_pending_order_payment", _pay(at), f"t/{at}/0", 1, no_hold))
        for at in range(20)
    ]
    await until(lambda: len(shop.log()) >= 5)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    found = {f"t/{at}/0": shop.find(f"t/{at}/0").happened for at in range(20)}
    # Threads that were under way commit or come late; nobody learns of it but the log, and that agrees with `find`.
    applied = {line.key for line in shop.log() if line.outcome == "applied"}
    assert {key for key, happened in found.items() if happened} == applied


def _pay(at: int) -> Json:
    return {"order_id": "#P1", "payment_method_id": ("gift_2", "card_1")[at % 2]}


CHILD = """
import asyncio, sys
from pathlib import Path
from tests.retail.serving import serve
times = float(sys.argv[2]), float(sys.argv[3])
arguments = {"order_id": "#G1", "reason": "no longer needed"}
asyncio.run(serve(Path(sys.argv[1]), "cancel_pending_order", arguments, "t/1/0", 1, lambda key, attempt: times))
"""


@pytest.mark.parametrize("happened", [False, True])
def test_a_killed_call_leaves_its_arrival_open_and_the_log_tells(shop: Shop, tmp_path: Path, happened: bool) -> None:
    times = (0.0, LONG_S) if happened else (LONG_S, 0.0)
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path), *map(str, times)], cwd=ROOT)
    try:
        deadline = time.monotonic() + BOUND_S
        while not (shop.log() if happened else shop.arrivals()):
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait(BOUND_S)
    assert [(arrival.pid, arrival.left_ms) for arrival in shop.arrivals()] == [(child.pid, None)]
    assert shop.find("t/1/0").happened == happened
    assert shop.call("cancel_pending_order", CANCEL, "t/1/0").ok == happened


def test_a_seeded_hold_is_within_its_bounds_and_the_same_again() -> None:
    hold = seeded_hold(7, 3.0, 8.0)
    times = [hold(f"t/{at}/0", 1) for at in range(200)]
    assert times == [seeded_hold(7, 3.0, 8.0)(f"t/{at}/0", 1) for at in range(200)]
    assert all(3.0 <= before_s + after_s <= 8.0 for before_s, after_s in times)
    assert min(before_s for before_s, _ in times) < 1.0
    assert max(before_s for before_s, _ in times) > 4.0
    assert hold("t/0/0", 1) != hold("t/0/0", 2)
    assert times != [seeded_hold(8, 3.0, 8.0)(f"t/{at}/0", 1) for at in range(200)]
