"""The demo's agent: what its tools do with the world, how a worker finds it, and how an answer is read."""

import asyncio
from datetime import date
from pathlib import Path

import pytest

from perdure.cli.demo.agent import HOLD_VARIABLE, MODEL_VARIABLE, WORLD_VARIABLE, agent_from, shop_tools
from perdure.cli.demo.script import ADDRESS, ANSWER, address_in
from perdure.cli.demo.world import BLENDER_ORDER, World, tracking_number
from perdure.core.errors import ConfigurationError, ToolError
from perdure.core.ports import Call, ToolPort
from tests.embedded.processes import WAIT_S


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.create(tmp_path / "world.db", date(2031, 3, 12))


def named(tools: tuple[ToolPort, ...], name: str) -> ToolPort:
    return next(tool for tool in tools if tool.spec.name == name)


async def _received(world: World) -> None:
    while not world.calls():  # noqa: ASYNC110 - the world notifies nobody
        await asyncio.sleep(0.01)


def call(tool: str, key: str = "t/1/0", attempt: int = 1) -> Call:
    return Call(idempotency_key=key, attempt=attempt, task_id="t", tool=tool)


def test_the_tools_have_the_classes_of_what_they_do(world: World) -> None:
    tools = shop_tools(world)
    assert {tool.spec.name: tool.spec.effect for tool in tools} == {
        "list_open_orders": "read",
        "get_order": "idempotent",
        "look_up_policy": "read",
        "refund": "once",
        "ship_replacement": "once",
    }
    assert {tool.spec.heartbeat_timeout_s for tool in tools} == {5.0}


async def test_a_refusal_of_the_world_is_told_to_the_model(world: World) -> None:
    refund = named(shop_tools(world), "refund")
    with pytest.raises(ToolError, match="photo"):
        await refund.invoke({"order_id": BLENDER_ORDER, "amount": 10}, call("refund"))
    assert [(c.tool, c.outcome) for c in world.calls()] == [("refund", "refused")]


async def test_the_check_knows_what_happened_and_closes_what_did_not(world: World) -> None:
    ship = named(shop_tools(world), "ship_replacement")
    await ship.invoke({"order_id": BLENDER_ORDER, "address": "here"}, call("ship_replacement", "t/1/0"))
    happened = await ship.check(call("ship_replacement", "t/1/0"))
    assert (happened.answer, happened.result) == ("happened", tracking_number("t/1/0"))
    assert (await ship.check(call("ship_replacement", "t/2/0"))).answer == "never"
    with pytest.raises(ToolError, match="closed"):
        await ship.invoke({"order_id": BLENDER_ORDER, "address": "here"}, call("ship_replacement", "t/2/0"))
    assert len(world.snapshot()["shipments"]) == 1


async def test_get_order_is_held_open_at_its_first_attempt_after_the_world_has_logged_it(
    world: World, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    get_order = named(shop_tools(world, hold), "get_order")
    held = asyncio.create_task(get_order.invoke({"order_id": BLENDER_ORDER}, call("get_order")))
    async with asyncio.timeout(WAIT_S):
        await _received(world)
        second = await get_order.invoke({"order_id": BLENDER_ORDER}, call("get_order", attempt=2))
        assert not held.done()
        hold.unlink()
        assert await held == second


def test_a_worker_finds_its_world_by_the_environment(world: World) -> None:
    agent = agent_from({WORLD_VARIABLE: str(world.path), HOLD_VARIABLE: "", MODEL_VARIABLE: ""})
    assert agent.model_name == "scripted"
    assert agent_from({WORLD_VARIABLE: str(world.path), MODEL_VARIABLE: "openai:gpt-5"}).model_name == "openai:gpt-5"
    for environment in ({}, {WORLD_VARIABLE: str(world.path.with_name("none.db"))}):
        with pytest.raises(ConfigurationError, match=WORLD_VARIABLE):
            agent_from(environment)


@pytest.mark.parametrize(
    ("answer", "address"),
    [
        (ANSWER, ADDRESS),
        ("Replacement to: 1 Elm Street, Lima.", "1 Elm Street, Lima"),
        ("1 Elm Street, Lima", "1 Elm Street, Lima"),
        ("Send it to 9 Way to Go", "9 Way to Go"),
    ],
)
def test_the_address_is_read_out_of_an_answer(answer: str, address: str) -> None:
    assert address_in(answer) == address
