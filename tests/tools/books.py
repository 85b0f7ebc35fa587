"""A shop's books in a database of its own, written through every kind of connection that `call.once` takes.

Run as `python -m tests.tools.books KIND PLACE STORE MOMENT` it makes one refund through the executor and a store, and
kills itself at the moment that it is told: `before_commit`, after the effect; or `after_commit`, before the ledger
knows.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from perdure import ONCE_TABLE, Call, once_check, tool
from perdure.store import open_store
from perdure.tools import FunctionTool, LedgerExecutor
from tests.tools.bench import BATCH, NOW_MS, Bench

SQLITE_KINDS = ("sqlite3", "connection", "session", "async connection", "async session")
POSTGRES_KINDS = ("postgres connection", "postgres session")

INSERT = text("INSERT INTO refunds (key, amount) VALUES (:key, :amount)")

Moment = Callable[[str], None]


def nothing(moment: str) -> None:
    """Let every moment pass."""


class Books:
    """The refunds that were made, and the tool that makes them. `place` is a file, or a PostgreSQL URL."""

    def __init__(self, kind: str, place: str, at: Moment = nothing) -> None:
        self.kind = kind
        self.place = place
        self.at = at
        self.engine: Any = None
        if kind in {"connection", "session"}:
            self.engine = create_engine(f"sqlite:///{place}", poolclass=NullPool)
        elif kind != "sqlite3":
            url = f"sqlite+aiosqlite:///{place}"
            if kind in POSTGRES_KINDS:
                url = make_url(place).set(drivername="postgresql+asyncpg").render_as_string(hide_password=False)
            self.engine = create_async_engine(url, poolclass=NullPool)

        @tool(name="refund", check=self.check(), settle_s=0)
        async def refund(amount: int, call: Call) -> JsonValue:
            return await self.refund(amount, call)

        self.tool: FunctionTool[..., Any] = refund

    def check(self) -> Callable[[str], object]:
        match self.kind:
            case "sqlite3":
                return once_check(lambda: sqlite3.connect(self.place))
            case "session":
                return once_check(sessionmaker(self.engine))
            case "async session" | "postgres session":
                return once_check(async_sessionmaker(self.engine))
            case _:
                return once_check(self.engine)

    async def refund(self, amount: int, call: Call) -> JsonValue:
        match self.kind:
            case "sqlite3":
                with closing(sqlite3.connect(self.place)) as connection, connection:
                    result = self.write_plainly(amount, call, connection)
            case "connection":
                engine: Engine = self.engine
                with engine.begin() as connected:
                    result = self.write(amount, call, connected)
            case "session":
                with Session(self.engine) as session, session.begin():
                    result = self.write(amount, call, session)
            case "async connection" | "postgres connection":
                async_engine: AsyncEngine = self.engine
                async with async_engine.begin() as later:
                    result = await self.write_later(amount, call, later)
            case _:
                async with AsyncSession(self.engine) as later_session, later_session.begin():
                    result = await self.write_later(amount, call, later_session)
        self.at("after_commit")
        return result

    def write_plainly(self, amount: int, call: Call, connection: sqlite3.Connection) -> JsonValue:
        once = call.once(connection)
        if not once:
            return once.result
        connection.execute("INSERT INTO refunds (key, amount) VALUES (?, ?)", (call.idempotency_key, amount))
        once.record({"refunded": amount})
        self.at("before_commit")
        return {"refunded": amount}

    def write(self, amount: int, call: Call, connection: Any) -> JsonValue:
        once = call.once(connection)
        if not once:
            result: JsonValue = once.result
            return result
        connection.execute(INSERT, {"key": call.idempotency_key, "amount": amount})
        once.record({"refunded": amount})
        self.at("before_commit")
        return {"refunded": amount}

    async def write_later(self, amount: int, call: Call, connection: AsyncConnection | AsyncSession) -> JsonValue:
        once = await call.once(connection)
        if not once:
            return once.result
        await connection.execute(INSERT, {"key": call.idempotency_key, "amount": amount})
        await once.record({"refunded": amount})
        self.at("before_commit")
        return {"refunded": amount}

    # --- the books as an auditor sees them: by a connection of its own, of another kind -----------------------------

    @asynccontextmanager
    async def audited(self) -> AsyncIterator[Callable[[str], Any]]:
        if self.kind in POSTGRES_KINDS:
            async with self.engine.begin() as connection:

                async def read(statement: str) -> Any:
                    result = await connection.exec_driver_sql(statement)
                    return [tuple(row) for row in result] if result.returns_rows else []

                yield read
            return
        with closing(sqlite3.connect(self.place)) as plain, plain:

            async def read_plainly(statement: str) -> Any:
                return plain.execute(statement).fetchall()

            yield read_plainly

    async def open(self) -> None:
        """Make the tables, empty."""
        async with self.audited() as run:
            for statement in (
                ONCE_TABLE,
                "CREATE TABLE IF NOT EXISTS refunds (key TEXT, amount BIGINT)",
                "DELETE FROM refunds",
                "DELETE FROM perdure_effects",
            ):
                await run(statement)

    async def refunds(self) -> list[tuple[str, int]]:
        async with self.audited() as run:
            found: list[tuple[str, int]] = await run("SELECT key, amount FROM refunds ORDER BY key")
            return found

    async def keys(self) -> list[tuple[str, str, str | None]]:
        async with self.audited() as run:
            found: list[tuple[str, str, str | None]] = await run(
                "SELECT key, outcome, result FROM perdure_effects ORDER BY key"
            )
            return found

    async def close(self) -> None:
        if isinstance(self.engine, AsyncEngine):
            await self.engine.dispose()
        elif self.engine is not None:
            self.engine.dispose()


async def main(kind: str, place: str, store_url: str, moment: str) -> None:
    def die(reached: str) -> None:
        if reached == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    books = Books(kind, place, die)
    store = await open_store(store_url)
    executor = LedgerExecutor(store, {"refund": books.tool}, "worker-killed", lambda: NOW_MS)
    request = Bench(store).request("refund", arguments={"amount": 5})
    await executor.execute(BATCH, request, "call-1", {"amount": 5})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
