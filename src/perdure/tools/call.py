"""The call as a Python function gets it: what the core knows of it, and what a function may do with that."""

from collections.abc import Awaitable
from typing import Any, cast, overload

from perdure.core import ports
from perdure.tools.once import AsyncOnce, Once, write_key, write_key_async
from perdure.tools.statements import Drives, HasConnection, HasCursor, RunsSync


class Call(ports.Call):
    """What a tool may know of the call it serves; declare a parameter of this type to get it.

    `idempotency_key` is the same for every attempt at this call and different for every other call, for ever: hand
    it to whatever the tool changes. `attempt` counts from 1.
    """

    @overload
    def once(self, connection: RunsSync) -> Awaitable[AsyncOnce]: ...

    @overload
    def once(self, connection: Drives | HasConnection | HasCursor) -> Once: ...

    def once(self, connection: object) -> Awaitable[AsyncOnce] | Once:
        """Write this call's key in the transaction of `connection`, so that it commits together with the effect.

        True the first time: make the change, then `record` its result. False when the key is there already: the
        change was made, `result` is what was recorded. Give the tool `once_check` as its check.

            with engine.begin() as connection:
                once = call.once(connection)
                if once:
                    connection.execute(...)
                    once.record({"refunded": amount})

        Args:
            connection: An open transaction: a `Connection`, `Session`, `AsyncConnection` or `AsyncSession` of
                SQLAlchemy (the last two awaited: `await call.once(connection)`), or a plain DB-API connection. Its
                database has the table `perdure.ONCE_TABLE`.

        Raises:
            Fenced: A check has closed the key. Let it go on, so that the transaction is rolled back.
            ConfigurationError: The connection commits each statement by itself, or there is no such table.
            InvalidInput: It is no connection that this takes.
        """
        if hasattr(connection, "run_sync"):
            return write_key_async(cast(RunsSync, connection), self.idempotency_key)
        return write_key(connection, self.idempotency_key)

    @classmethod
    def of(cls, call: ports.Call) -> "Call":
        """Return the call of an executor as functions get it."""
        return call if isinstance(call, Call) else cls(**call.model_dump())


def is_call(annotation: Any) -> bool:
    """Return whether a parameter annotated so is given the call."""
    return isinstance(annotation, type) and issubclass(annotation, ports.Call)
