"""The public API as a typed user sees it. Nothing runs here: the type checker is the test."""

import sqlite3
from collections.abc import AsyncIterator
from typing import Literal, assert_type

from pydantic import JsonValue
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from perdure import (
    ONCE_TABLE,
    Agent,
    App,
    ApprovalRule,
    Call,
    Check,
    OutcomeUnknown,
    Task,
    TaskEvent,
    ToolError,
    load_agent,
    once_check,
    open_app,
    tool,
)


@tool(effect="read")
async def get_order(order_id: str, *, verbose: bool = False) -> dict[str, str]:
    return {"id": order_id, "verbose": str(verbose)}


async def find_refund(key: str) -> Check:
    return Check.never() if key else Check.unknown()


@tool(effect="once", check=find_refund, ask="amount > 100")
async def refund(order_id: str, amount: float, call: Call) -> str:
    if amount < 0:
        raise ToolError("an amount must be positive")
    assert_type(call.idempotency_key, str)
    assert_type(call.attempt, int)
    return f"{order_id} {amount}"


async def kept(call: Call, engine: AsyncEngine, plain: sqlite3.Connection, connection: Connection) -> None:
    async with engine.begin() as later:
        once = await call.once(later)
        assert_type(bool(once), bool)
        assert_type(once.result, JsonValue)
        await once.record({"paid": 1})
    async with AsyncSession(engine) as session:
        await (await call.once(session)).record(1)
    call.once(plain).record(1)
    call.once(connection).record(1)
    with Session() as here:
        call.once(here).record(1)


@tool(effect="once", in_doubt="ask", check=once_check(lambda: sqlite3.connect("shop.db")))
def pay(amount: float, call: Call) -> JsonValue:
    with sqlite3.connect("shop.db") as connection:
        connection.execute(ONCE_TABLE)
        once = call.once(connection)
        if not once:
            return once.result
    raise OutcomeUnknown(call.idempotency_key, "the bank timed out")


@tool
def add(left: int, right: int) -> int:
    return left + right


agent = Agent("shop", model="openai:gpt-5", tools=[get_order, refund, add], instructions="Help.")
assert_type(load_agent("shop.toml"), Agent)
careful = Agent(
    "careful",
    model="openai:gpt-5",
    fallbacks=["anthropic:claude-sonnet-4-5"],
    approvals=[ApprovalRule(then="deny", tool="refund", when="amount > 1000"), ApprovalRule(then="ask", effect="once")],
    asks_expire_in_s=3600,
)


async def main() -> None:
    assert_type(await get_order("A-1", verbose=True), dict[str, str])
    assert_type(add(1, 2), int)
    async with open_app(agent) as app:
        assert_type(app, App)
        task = await app.send("hello")
        assert_type(task, Task)
        events = task.events(after=0)
        assert_type(events, AsyncIterator[TaskEvent])
        async for event in events:
            assert_type(event.text, str)
            if event.needs_approval:
                await task.approve(event.help_id, by="alice", arguments={"amount": 50}, digest=event.call_digest)
                await task.decline(event.help_id, "not today")
            await task.answer(event.help_id, "yes")
            await task.answer(event.help_id, {"size": "S", "count": 2}, by="alice")
        number = await task.send("later", lane="queue", message_id="m-1")
        assert_type(number, int)
        assert_type(await task.steer("m-1"), int)
        assert_type(await task.withdraw("m-1"), int)
        for waiting in (await task.inbox()).parked:
            assert_type(waiting.lane, Literal["steer", "queue"])
            assert_type(waiting.tail, int)
        assert_type(await task.stop(), bool)
        assert_type(await task.result(), str)
