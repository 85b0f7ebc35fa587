"""The demo's support agent: five tools over the outside world.

The agent is built for one world. Worker processes find theirs by environment variables, when the agent is first asked
for; importing this module reads and does nothing.
"""

import asyncio
import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from perdure.app.agent import Agent
from perdure.cli.demo.call_log import WorldRefused
from perdure.cli.demo.script import conversation
from perdure.cli.demo.sources import HEARTBEAT_TIMEOUT_S, HELD_S_MAX, NAMES, shop_sources
from perdure.cli.demo.world import World
from perdure.core.errors import ConfigurationError, ToolError
from perdure.core.ports import Call, Check, ModelPort, ToolPort
from perdure.testing import scripted
from perdure.tools.function import tool

WORLD_VARIABLE: Final = "PERDURE_DEMO_WORLD"
HOLD_VARIABLE: Final = "PERDURE_DEMO_HOLD"
MODEL_VARIABLE: Final = "PERDURE_DEMO_MODEL"
MCP_VARIABLE: Final = "PERDURE_DEMO_MCP"
"""Set where the tools are those of two MCP servers."""

REFERENCE: Final = "perdure.cli.demo.agent:agent"
"""What `perdure worker` is told to load."""

AGENT_ID: Final = "demo-support"
SCRIPTED: Final = "scripted"

HOLD_POLL_S: Final = 0.05

INSTRUCTIONS: Final = """\
You work in a shop's customer support. Look at the customer's open orders, then at the order in question, then at the
policies (damage, refund, replacement) before you offer anything. Ask the customer with ask_participant what only they
can decide or know: whether they want a refund or a replacement, and the address. Do what they decide exactly once, and
end with a short answer that names the tracking number."""


def shop_tools(world: World, hold: Path | None = None) -> tuple[ToolPort, ...]:
    """Return the agent's tools over `world`. While the file `hold` exists, `get_order` is held open once called."""
    return (*_reading(world, hold), *_writing(world))


def _reading(world: World, hold: Path | None) -> tuple[ToolPort, ...]:
    @tool(effect="read", heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S)
    def list_open_orders(customer: str, call: Call) -> list[dict[str, Any]]:
        """List the customer's orders that are on their way or can still be complained about."""
        return world.list_open_orders(customer, call.idempotency_key)

    @tool(effect="idempotent", heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S, timeout_s=HELD_S_MAX)
    async def get_order(order_id: str, call: Call) -> dict[str, Any]:
        """Look up one order."""
        with _refusals():
            order = await asyncio.to_thread(world.get_order, order_id, call.idempotency_key)
        if hold is not None and call.attempt == 1:
            await _while_there_is(hold)
        return order

    @tool(effect="read", heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S)
    def look_up_policy(topic: str, call: Call) -> str:
        """Look up what the shop's rules say on a topic: damage, refund or replacement."""
        return world.look_up_policy(topic, call.idempotency_key)

    return (list_open_orders, get_order, look_up_policy)


def _writing(world: World) -> tuple[ToolPort, ...]:
    def became_of(key: str) -> Check:
        finding = world.find(key)
        return Check.happened(finding.result) if finding.happened else Check.never()

    @tool(effect="once", check=became_of, heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S)
    def refund(order_id: str, amount: float, call: Call) -> str:
        """Pay back an amount in dollars for a damaged order."""
        with _refusals():
            return world.refund(order_id, amount, call.idempotency_key)

    @tool(effect="once", check=became_of, heartbeat_timeout_s=HEARTBEAT_TIMEOUT_S)
    def ship_replacement(order_id: str, address: str, call: Call) -> str:
        """Ship the item of a damaged order again and return the tracking number."""
        with _refusals():
            return world.ship_replacement(order_id, address, call.idempotency_key)

    return (refund, ship_replacement)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Tell the model of the world's refusals: nothing happened."""
    try:
        yield
    except WorldRefused as refusal:
        raise ToolError(str(refusal)) from refusal


async def _while_there_is(hold: Path) -> None:
    # Another process takes the file away, so there is nothing here to be notified by.
    while await asyncio.to_thread(hold.exists):  # noqa: ASYNC110
        await asyncio.sleep(HOLD_POLL_S)


def shop_agent(world: World, hold: Path | None = None, model: str | None = None, *, mcp: bool = False) -> Agent:
    """Return the support agent. `model` is a pydantic-ai name; without one the model is scripted.

    With `mcp` its tools are those of two MCP servers over the same world.
    """
    port: ModelPort | str = model or scripted(*conversation(NAMES if mcp else {}), name=SCRIPTED)
    return Agent(
        AGENT_ID,
        model=port,
        tools=shop_sources(world.path, hold) if mcp else shop_tools(world, hold),
        instructions=INSTRUCTIONS,
        # The demo ends with its task: nobody is there to go on after a failure.
        on_unanswered="fail",
    )


def agent_from(environment: Mapping[str, str]) -> Agent:
    """Return the agent that the environment describes; raises `ConfigurationError` naming the variable."""
    path = environment.get(WORLD_VARIABLE)
    if not path:
        raise ConfigurationError(WORLD_VARIABLE, "is not set; `perdure demo` sets it for the workers that it starts")
    try:
        world = World(Path(path))
    except FileNotFoundError as error:
        raise ConfigurationError(WORLD_VARIABLE, str(error)) from error
    hold = environment.get(HOLD_VARIABLE)
    mcp = bool(environment.get(MCP_VARIABLE))
    return shop_agent(world, Path(hold) if hold else None, environment.get(MODEL_VARIABLE) or None, mcp=mcp)


def __getattr__(name: str) -> Agent:
    if name != "agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return agent_from(os.environ)
