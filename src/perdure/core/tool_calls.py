"""Who makes tool calls, and what one may need besides: a connection first, and a person's answer in the middle.

A tool may end an attempt by asking (`artifacts.Asks`). Nothing of it is under way then, so that the wait for a person
holds no worker and no connection (P8). What the tool wants to have kept is kept, and the call goes on in a further
attempt under the same key, after whatever restarts there were. Until it has ended, it has not happened.
"""

from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from perdure.core.artifacts import Returned
from perdure.core.effects import EffectRequest, Word
from perdure.core.log import Batch
from perdure.core.ports import Call, Execution


@runtime_checkable
class Reads(Protocol):
    """A tool that may take its arguments for something else than was written: "DELETE " for "delete"."""

    def as_read(self, arguments: dict[str, JsonValue]) -> dict[str, object]:
        """Return the arguments as the tool takes them, in values of JSON; an `object()` for what has no such value.

        What was left out stays out, and so does what the tool does not declare: it may well ignore that.
        """
        ...


@runtime_checkable
class Resumes(Protocol):
    """A tool that may ask."""

    async def resume(self, arguments: dict[str, JsonValue], call: Call, kept: JsonValue, answer: str) -> Returned:
        """Go on with a call that asked; returns and raises as `invoke` does."""
        ...


@runtime_checkable
class Connects(Protocol):
    """A tool that is somewhere else: whether it can be called is known before anything is begun."""

    async def ready(self, registered: str | None) -> str:
        """Return why no call may begin now, or an empty text.

        `registered` is the digest of the tool's schema as its task was told it; None where it was not.

        Raises `Unavailable` where the tool cannot be reached: the attempt has begun nothing, and another may succeed.
        """
        ...


class ToolExecutor(Protocol):
    """Runs tool calls through the ledger."""

    async def execute(
        self,
        batch: Batch,
        request: EffectRequest,
        call_id: str,
        arguments: dict[str, JsonValue],
        word: Word | None = None,
    ) -> Execution:
        """Run one attempt of one call; `word` settles what is still in doubt.

        Raises `Fenced`, `KeyReused` or `StoreUnavailable` when nothing was begun; `BegunError` when the tool was
        called and ended without a result, so that the workflow decides by the effect class what comes next.
        """
        ...
