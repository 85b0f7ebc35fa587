"""One attempt at a tool call, through the ledger (design section 6).

The ledger is asked before the tool is called and told after; in between nothing is known, and nothing is guessed:

- what the ledger says to be done is returned without a call (P3),
- what is in doubt is asked of the tool's own check, never begun again (P4),
- what was begun and returned is recorded even where the attempt is told to stop meanwhile, and is what the attempt
  comes to: an outcome that is known must not become one that is in doubt.

No call is tried again here. Retries belong to the workflow, which shows each as an attempt of its own. Only the
recording of a result is, for a while: it is known, and nobody else knows it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Protocol

from pydantic import JsonValue

from perdure.core import faults, limits
from perdure.core.artifacts import Artifact, Asks, Returned, WithFiles
from perdure.core.content import FilePart, HandedOver, ResultStatus, ToolEntry, ToolResult
from perdure.core.effects import EffectRequest, Word
from perdure.core.errors import BegunError, Fenced, InvariantBroken, StoreUnavailable, ToolError
from perdure.core.log import Batch
from perdure.core.ports import Call, Check, Execution, Ledgered, Store, ToolPort
from perdure.core.tool_calls import Connects, Resumes
from perdure.tools.handing_over import handed_over
from perdure.tools.keeping import asking, keep_files, keep_question, kept_question
from perdure.tools.notes import Notes, take
from perdure.tools.results import problem_text, shown

_SETTLE_SHARE_MAX: Final = 0.5
_CHECK_SHARE_MAX: Final = 0.35
"""Shares of a tool's timeout: settling and checking both fit in one attempt, with room for the ledger."""

_UNANSWERED: Final = "it had asked a person, and did not go on before it was answered"


class Sleep(Protocol):
    """Waits for so many seconds."""

    def __call__(self, delay: float, /) -> Awaitable[object]:
        """Wait."""
        ...


class LedgerExecutor:
    """Runs calls of `tools` for the worker named `worker`. Takes no locks; may serve any number of calls at once."""

    def __init__(
        self,
        store: Store,
        tools: Mapping[str, ToolPort],
        worker: str,
        now_ms: Callable[[], int],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._tools = tools
        self._worker = worker
        self._now_ms = now_ms
        self._sleep = sleep
        self._late: set[asyncio.Task[None]] = set()

    async def execute(
        self,
        batch: Batch,
        request: EffectRequest,
        call_id: str,
        arguments: dict[str, JsonValue],
        word: Word | None = None,
    ) -> Execution:
        """Run one attempt of one call; the batch is written with the ledger's first answer.

        A person's `word` settles what is still in doubt, in place of the tool's check; what is recorded wins over it.
        A tool that this worker does not have, that is not what the task was told, or that the arguments no longer fit,
        begins nothing: the ledger says what became of the key and closes one that never began (`not_begun`, with the
        reason).

        Raises:
            Unavailable: The tool is somewhere else and could not be reached. Nothing was begun.
            Fenced: Refused before it began (P9), or its key was closed before its result came (P3).
            KeyReused: The key was begun with another tool or other arguments. Nothing was begun.
            StoreUnavailable: The store did not answer. Nothing was called.
            BegunError: The tool was called and no result is recorded. The cause says why.
        """
        request = request.model_copy(update={"worker": self._worker})
        tool = self._tools.get(request.tool)
        refused = await self._refused(tool, request, arguments)
        if refused:
            request = request.model_copy(update={"resolve_only": True})
        asked = None if request.answer is None else await kept_question(self._store, request.answer.asked)
        faults.reach("tool.before_begun", request.tool, request.task_id)
        ledgered = await self._store.begin_effect(batch, request, self._now_ms())
        match ledgered.verdict:
            case "done":
                return _recorded(ledgered)
            case "closed":
                return Execution(outcome="closed")
            case "asked":
                return asking(str(ledgered.asked), await kept_question(self._store, str(ledgered.asked)))
            case "not_begun":
                return Execution(outcome="not_begun", reason=refused or (_UNANSWERED if ledgered.asked else ""))
            case "in_doubt" if word is not None:
                return await self._settle(request, call_id, word)
            case "in_doubt":
                return await self._resolve(tool, batch, request, call_id, refused)
            case "begin":
                if tool is None or refused:
                    raise InvariantBroken("P3", f"{request.key} was begun although it was to be resolved only")
                return await self._call(tool, request, call_id, arguments, asked)

    async def _refused(self, tool: ToolPort | None, request: EffectRequest, arguments: dict[str, JsonValue]) -> str:
        """Return why nothing may begin, or an empty text."""
        if tool is None:
            names = ", ".join(sorted(self._tools)) or "none"
            return f"this worker has no tool {request.tool!r}; its tools: {names}"
        if request.resolve_only:
            return ""
        if request.schema_digest not in {None, tool.spec.schema_digest}:
            return f"the schema of {request.tool} changed since this task began; a new task takes the new one"
        if request.answer is not None and not isinstance(tool, Resumes):
            return f"{request.tool} had asked a person, and in this worker it does not take an answer"
        return tool.problem(arguments) or (
            await tool.ready(request.schema_digest) if isinstance(tool, Connects) else ""
        )

    # --- begun: call and record ---------------------------------------------------------------------------------

    async def _call(
        self,
        tool: ToolPort,
        request: EffectRequest,
        call_id: str,
        arguments: dict[str, JsonValue],
        asked: Asks | None = None,
    ) -> Execution:
        """Call the tool and record what it returned. A stop is handed on to the tool, but not to the recording.

        A tool that does not end within `STOP_GRACE_S` of its stop is in doubt; what it returns later is still recorded.
        """
        faults.reach("tool.begun", request.tool, request.task_id)
        notes = Notes()
        calling = asyncio.create_task(_called(tool, arguments, request, asked, notes))
        # After the task's own first step: when the tool waits for the first time, it is under way.
        inside = asyncio.get_running_loop().call_soon(faults.reach, "tool.inside", request.tool, request.task_id)
        stopped = await _ended(calling, hand_on=True)
        inside.cancel()
        if not calling.done():
            self._leave(self._record_late(calling, request, call_id))
            raise asyncio.CancelledError
        if calling.cancelled():
            if stopped:
                raise asyncio.CancelledError
            raise BegunError(f"{request.tool} was cancelled from within")
        error = calling.exception()
        if error is not None:
            raise asyncio.CancelledError if stopped else error
        status, value = calling.result()
        faults.reach("tool.after_effect", request.tool, request.task_id)
        recording = asyncio.create_task(self._kept(request, call_id, status, value))
        stopped = await _ended(recording, hand_on=False) or stopped
        if stopped and (recording.cancelled() or recording.exception() is not None):
            raise asyncio.CancelledError  # what it came to finds the next run
        try:
            return recording.result().model_copy(update={"notes": notes.latest})
        except StoreUnavailable as error:
            raise BegunError(f"{request.tool} ended, but its result could not be recorded: {error}") from error

    async def _record_late(
        self, calling: "asyncio.Task[tuple[ResultStatus, Returned]]", request: EffectRequest, call_id: str
    ) -> None:
        await asyncio.wait({calling})
        if not calling.cancelled() and calling.exception() is None:
            await self._kept(request, call_id, *calling.result())

    def _leave(self, late: Coroutine[Any, Any, None]) -> None:
        """Let it go on by itself: nobody waits for it any more, and its failure leaves the call in doubt as it is."""
        task = asyncio.create_task(late)
        self._late.add(task)

        def noticed(task: "asyncio.Task[None]") -> None:
            self._late.discard(task)
            if not task.cancelled():
                task.exception()

        task.add_done_callback(noticed)

    async def _kept(self, request: EffectRequest, call_id: str, status: ResultStatus, value: Returned) -> Execution:
        """Record what the tool returned, offered again while the store does not answer: nobody else knows it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + limits.RECORD_WITHIN_S
        while True:
            try:
                return await self._record(request, call_id, status, value)
            except StoreUnavailable:
                if loop.time() >= until:
                    raise
            await self._sleep(limits.RECORD_PAUSE_S)

    async def _record(self, request: EffectRequest, call_id: str, status: ResultStatus, value: Returned) -> Execution:
        """Record a result, or a question; what stands already wins. On a closed key the result is late."""
        if isinstance(value, Asks):
            return await self._ask(request, value)
        given, files, told = await self._parts(value)
        part = shown(told)
        blob = None if part.whole is None else await self._store.put_blob(part.whole, part.media_type)
        result = ToolResult(
            call_id=call_id,
            tool=request.tool,
            status=status,
            text=request.note + part.text,
            blob=blob,
            handed_over=given,
            files=files,
        )
        entry = ToolEntry(result=result)
        ledgered = await self._store.finish_effect(request.key, request.attempt, entry, self._now_ms())
        faults.reach("tool.done", request.tool, request.task_id)
        if ledgered.verdict == "closed":
            raise Fenced(f"P3: {request.key} was closed before the result of attempt {request.attempt} came")
        return _recorded(ledgered)

    async def _parts(
        self, value: JsonValue | Artifact | WithFiles
    ) -> tuple[HandedOver | None, tuple[FilePart, ...], JsonValue]:
        """Return what of a result is handed over, which files are kept, and what is told."""
        if isinstance(value, WithFiles):
            told = await keep_files(self._store, value)
            return told.handed_over, told.files, told.text
        if isinstance(value, Artifact):
            given, text = handed_over(value)
            return given, (), text
        return None, (), value

    async def _ask(self, request: EffectRequest, asks: Asks) -> Execution:
        """Record that the attempt ended by asking; what stands already wins."""
        digest = await keep_question(self._store, asks)
        ledgered = await self._store.ask_effect(request.key, request.attempt, digest, self._now_ms())
        faults.reach("tool.asked", request.tool, request.task_id)
        match ledgered.verdict:
            case "done":
                return _recorded(ledgered)
            case "closed":
                return Execution(outcome="closed")
            case _:
                return asking(digest, asks)

    # --- in doubt: settle and ask -------------------------------------------------------------------------------

    async def _resolve(
        self, tool: ToolPort | None, batch: Batch, request: EffectRequest, call_id: str, refused: str
    ) -> Execution:
        """Ask the tool's check, after a request that was on its way has had time to arrive (P4)."""
        if tool is None:
            return Execution(outcome="in_doubt", reason=refused)
        await self._sleep(min(tool.settle_s, tool.spec.timeout_s * _SETTLE_SHARE_MAX))
        answer, reason = await self._asked(tool, request)
        faults.reach("tool.checked", request.tool, request.task_id)
        if answer.answer == "happened":
            return await self._record(request, call_id, "ok", answer.result)
        if answer.answer == "never":
            return await self._close(request)
        # The first attempt may have lived on and recorded its result while this one waited.
        again = request.model_copy(update={"resolve_only": True})
        ledgered = await self._store.begin_effect(batch, again, self._now_ms())
        match ledgered.verdict:
            case "done":
                return _recorded(ledgered)
            case "closed":
                return Execution(outcome="closed")
            case _:
                return Execution(outcome="in_doubt", reason=reason)

    async def _close(self, request: EffectRequest) -> Execution:
        """Close the key of what did not happen; a result that was recorded meanwhile wins."""
        ledgered = await self._store.close_effect(request.key, self._now_ms())
        faults.reach("tool.key_closed", request.tool, request.task_id)
        return _recorded(ledgered) if ledgered.verdict == "done" else Execution(outcome="closed")

    async def _settle(self, request: EffectRequest, call_id: str, word: Word) -> Execution:
        """Record what a person said became of the call."""
        if word.happened:
            return await self._record(request, call_id, "ok", f"A person says: {word.text}")
        return await self._close(request)

    async def _asked(self, tool: ToolPort, request: EffectRequest) -> tuple[Check, str]:
        """Return the check's answer, and a reason where it settles nothing."""
        within_s = tool.spec.timeout_s * _CHECK_SHARE_MAX
        bound = asyncio.timeout(within_s)
        try:
            async with bound:
                answer = await tool.check(_call_of(request))
        except asyncio.CancelledError:
            if _is_stopped():
                raise
            return Check.unknown(), f"the check of {request.tool} was cancelled from within"
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a user's check may raise anything; it then says nothing
            if bound.expired():
                return Check.unknown(), f"the check of {request.tool} did not answer within {within_s:g} s"
            return Check.unknown(), f"the check of {request.tool} failed: {type(error).__name__}: {problem_text(error)}"
        if answer.answer == "not_yet":
            return answer, f"the check of {request.tool} says that it did not happen so far"
        return answer, f"the check of {request.tool} cannot tell, or it has none"


def _call_of(request: EffectRequest) -> Call:
    return Call(idempotency_key=request.key, attempt=request.attempt, task_id=request.task_id, tool=request.tool)


def _recorded(ledgered: Ledgered) -> Execution:
    """Return the result that stands."""
    entry = ledgered.entry
    if ledgered.verdict != "done" or not isinstance(entry, ToolEntry) or ledgered.digest is None:
        raise InvariantBroken("P3", f"the ledger answered {ledgered.verdict!r} without the result of a tool call")
    return Execution(outcome="result", digest=ledgered.digest, status=entry.result.status)


async def _called(
    tool: ToolPort, arguments: dict[str, JsonValue], request: EffectRequest, asked: Asks | None, notes: Notes
) -> tuple[ResultStatus, Returned]:
    """Call the tool, or go on with what it had asked, and return the status and value of its result.

    Whatever else it raises leaves the call open.
    """
    take(notes)
    call = _call_of(request)
    try:
        if asked is not None and request.answer is not None and isinstance(tool, Resumes):
            return "ok", await tool.resume(arguments, call, asked.kept, request.answer.text)
        return "ok", await tool.invoke(arguments, call)
    except ToolError as error:
        return "error", problem_text(error) or "The tool says that it did not happen, and gives no reason."
    except (Exception, SystemExit) as error:
        raise BegunError(f"{call.tool} raised {type(error).__name__}: {problem_text(error)}") from error


async def _ended(task: "asyncio.Task[object]", *, hand_on: bool) -> bool:
    """Wait until `task` has ended, and return whether the caller was told to stop meanwhile.

    With `hand_on` the stop cancels the task and its end is waited for up to `STOP_GRACE_S`; without, the task goes on
    for `STORE_WRITE_TIMEOUT_S` and is cancelled then.
    """
    stopped = False
    within_s = limits.STOP_GRACE_S if hand_on else limits.STORE_WRITE_TIMEOUT_S
    while not task.done():
        grace_s = within_s if stopped else None
        try:
            done, _ = await asyncio.wait({task}, timeout=grace_s)
        except asyncio.CancelledError:
            stopped = True
            if hand_on:
                task.cancel()
            continue
        if not done and hand_on:
            break
        if not done:
            task.cancel()
    return stopped


def _is_stopped() -> bool:
    current = asyncio.current_task()
    return current is None or current.cancelling() > 0
