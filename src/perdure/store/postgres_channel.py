"""The channel of processes on several hosts: LISTEN/NOTIFY in the database that they share.

A notification goes in a transaction of its own, unsynced, on a connection of its own: within the transactions that
write, PostgreSQL would commit one at a time, with the sync to disk inside. What is sent while one is on its way goes
with the next, and that a task was written to is said once. Who comes later has not heard what was sent before.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it comes without types
from sqlalchemy import URL, NullPool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from perdure.core import limits
from perdure.store.channel import written, written_in

_NAME: Final = "perdure"
_EVERYBODY: Final = ("everybody",)
_TASKS_AT_ONCE_MAX: Final = limits.DATAGRAM_BYTES_MAX // 512
"""Ids have at most 128 characters; what was too long is found by asking."""

_CUT_OFF: Final = (asyncpg.PostgresError, asyncpg.InterfaceError)


class PostgresChannel:
    """One connection that sends and hears, made with the first use and anew when it is lost."""

    def __init__(self, url: URL) -> None:
        timeout = {"timeout": limits.STORE_WRITE_TIMEOUT_S}
        self._engine = create_async_engine(url, poolclass=NullPool, connect_args=timeout)
        self._waiting: deque[bytes] = deque()
        self._written: dict[str, None] = {}
        self._heard: Callable[[bytes], None] | None = None
        self._work = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._closed = False

    def peers(self) -> tuple[str, ...]:
        """Return one name for all: nobody knows who listens."""
        return _EVERYBODY

    def send(self, peer: str, data: bytes) -> bool:
        """Send it to all; False while what was sent before is on its way."""
        task_ids = written_in(data)
        if task_ids is not None:
            self._written.update(dict.fromkeys(task_ids))
        elif len(self._waiting) >= limits.DATAGRAMS_AT_ONCE_MAX:
            return False
        else:
            self._waiting.append(data)
        self._go_on()
        return True

    def listen(self, heard: Callable[[bytes], None]) -> None:
        """Hand on what others send from the moment at which the connection stands."""
        if self._heard is None:
            self._heard = heard
            self._go_on()

    async def close(self) -> None:
        """Close the connection; what waits is dropped."""
        self._closed = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    def _go_on(self) -> None:
        self._work.set()
        if self._running is None and not self._closed:
            self._running = asyncio.create_task(self._run(), name="perdure-store-channel")

    async def _run(self) -> None:
        while True:
            # Whatever cuts a connection off, nothing durable hangs on it.
            with contextlib.suppress(OSError, TimeoutError, DBAPIError, *_CUT_OFF):
                async with self._engine.connect() as connection:
                    raw = await connection.get_raw_connection()
                    await self._connected(raw.driver_connection)
            self._waiting.clear()
            self._written.clear()
            await asyncio.sleep(limits.TOLD_AGAIN_S)

    async def _connected(self, connection: Any) -> None:
        """Send and hear on the driver's own connection, until it is lost."""
        connection.add_termination_listener(lambda _: self._work.set())
        await connection.execute("SET synchronous_commit = off")
        listening = False
        while not connection.is_closed():
            self._work.clear()
            if self._heard is not None and not listening:
                await connection.add_listener(_NAME, _others(connection.get_server_pid(), self._heard))
                listening = True
            if self._written:
                task_ids = list(self._written)[:_TASKS_AT_ONCE_MAX]
                for task_id in task_ids:
                    del self._written[task_id]
                await connection.execute("SELECT pg_notify($1, $2)", _NAME, written(task_ids).decode())
            elif self._waiting:
                await connection.execute("SELECT pg_notify($1, $2)", _NAME, self._waiting.popleft().decode())
            else:
                await self._work.wait()


def _others(own: int, heard: Callable[[bytes], None]) -> Callable[[Any, int, str, object], None]:
    def hand_on(_: Any, sender: int, __: str, payload: object) -> None:
        if sender != own:
            heard(str(payload).encode())

    return hand_on
