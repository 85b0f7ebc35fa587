"""What the executor's tests stand on: the real store, a place to hold or break its calls, and short ways to ask."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from pydantic import JsonValue

from perdure.core.agent import EffectClass
from perdure.core.content import ToolEntry, ToolResult
from perdure.core.effects import EffectRequest, effect_key, request_digest
from perdure.core.log import Batch, TaskHeader
from perdure.core.ports import EffectRow, Execution, Store, ToolPort
from perdure.tools import FunctionTool, LedgerExecutor

TASK = "task-1"
NOW_MS = 1_700_000_000_000

Hook = Callable[[], Awaitable[None]]


class Held:
    """A store with hooks before and after its methods: to hold a call open, or to let it fail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.before: dict[str, Hook] = {}
        self.after: dict[str, Hook] = {}

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in self.before and name not in self.after:
            return method

        async def hooked(*args: Any, **kwargs: Any) -> Any:
            if name in self.before:
                await self.before[name]()
            result = await method(*args, **kwargs)
            if name in self.after:
                await self.after[name]()
            return result

        return hooked


class Bench:
    """One task's calls, executed against one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.held = Held(store)
        self.slept_s: list[float] = []
        self.while_settling: Hook | None = None

    async def sleep(self, delay_s: float) -> None:
        """Settle at once, and let the test do what happens meanwhile."""
        self.slept_s.append(delay_s)
        if self.while_settling is not None:
            await self.while_settling()

    def executor(self, *tools: ToolPort, store: Store | None = None) -> LedgerExecutor:
        """Return an executor of a worker that has these tools."""
        by_name: Mapping[str, ToolPort] = {tool.spec.name: tool for tool in tools}
        used = cast(Store, self.held) if store is None else store
        return LedgerExecutor(used, by_name, "worker-1", lambda: NOW_MS, self.sleep)

    def request(
        self,
        tool: str,
        effect: EffectClass = "once",
        arguments: dict[str, JsonValue] | None = None,
        *,
        index: int = 0,
        attempt: int = 1,
        generation: int = 1,
        resolve_only: bool = False,
    ) -> EffectRequest:
        """Return a request of turn 1 of run 1."""
        return EffectRequest(
            key=effect_key(TASK, 1, index, generation),
            task_id=TASK,
            run=1,
            turn=1,
            index=index,
            attempt=attempt,
            tool=tool,
            effect=effect,
            request_digest=request_digest(tool, arguments or {}),
            worker="not yet known",
            resolve_only=resolve_only,
        )

    async def execute(
        self, tool: FunctionTool[..., Any], arguments: dict[str, JsonValue] | None = None, **request: Any
    ) -> Execution:
        """Run one attempt of a call of `tool`, by a worker that has it."""
        asked = self.request(tool.spec.name, tool.spec.effect, arguments, **request)
        return await self.executor(tool).execute(BATCH, asked, "call-1", arguments or {})

    async def result(self, execution: Execution) -> ToolResult:
        """Return the recorded result that an execution names."""
        assert execution.outcome == "result"
        entry = await self.store.read_entry(TASK, execution.digest)
        assert isinstance(entry, ToolEntry)
        assert entry.result.status == execution.status
        return entry.result

    async def row(self, index: int = 0, generation: int = 1) -> EffectRow | None:
        """Return the ledger's row of a call, or None."""
        key = effect_key(TASK, 1, index, generation)
        return next((row for row in await self.store.effects(TASK) if row.key == key), None)

    async def outcome(self, index: int = 0, generation: int = 1) -> tuple[str, list[int]]:
        """Return what the ledger says of a call: its outcome, and the attempts that began."""
        row = await self.row(index, generation)
        return ("none", []) if row is None else (row.outcome, [attempt.attempt for attempt in row.begun])


BATCH = Batch(task_id=TASK, header=TaskHeader(task_id=TASK, context_id="context-1", agent_id="shop", principal="local"))
