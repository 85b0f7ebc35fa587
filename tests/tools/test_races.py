"""Two attempts at one call, and stops at each point of a call (P3, P4, P9)."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from perdure.core import limits
from perdure.core.errors import BegunError, Fenced
from perdure.core.ports import Call, Check, Execution
from perdure.store import open_store
from perdure.tools import FunctionTool, tool
from tests.tools.bench import BATCH, NOW_MS, Bench, Hook

T = TypeVar("T")

KEY = "task-1/1/0"


class Open:
    """A tool that is held open in the middle of its call."""

    def __init__(self, **settings: Any) -> None:
        self.calls: list[str] = []
        self.entered = asyncio.Event()
        self.release = asyncio.Event()

        @tool(name="act", **settings)
        async def act(call: Call) -> str:
            self.calls.append(call.idempotency_key)
            self.entered.set()
            await self.release.wait()
            return f"by attempt {call.attempt}"

        self.act: FunctionTool[..., Any] = act


class Point:
    """A point in a call that is reached, and held until it is released."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def __call__(self) -> None:
        """Stand here."""
        self.reached.set()
        await self.release.wait()


async def soon(awaited: Coroutine[Any, Any, T] | asyncio.Task[T]) -> T:
    return await asyncio.wait_for(awaited, 20)


async def stopped(running: asyncio.Task[Execution]) -> None:
    """The attempt ends as one that was told to stop."""
    with pytest.raises(asyncio.CancelledError):
        await soon(running)
    assert running.cancelled()


# --- two attempts at one call -----------------------------------------------------------------------------------


async def test_of_two_workers_that_begin_one_once_call_exactly_one_calls(bench: Bench, store_url: str) -> None:
    other = await open_store(store_url)
    calls: list[str] = []

    @tool
    async def act(call: Call) -> str:
        calls.append(call.idempotency_key)
        return "done"

    async def attempt(index: int, number: int) -> Execution:
        executor = bench.executor(act, store=(bench.store, other)[number - 1])
        return await executor.execute(BATCH, bench.request("act", index=index, attempt=number), "call-1", {})

    pairs = await asyncio.gather(
        *(attempt(index, number) for index in range(15) for number in (1, 2)), return_exceptions=True
    )
    await other.close()
    assert sorted(calls) == sorted(f"task-1/1/{index}" for index in range(15))
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        outcomes = sorted(
            "fenced" if isinstance(e, Fenced) else getattr(e, "outcome", repr(e)) for e in (first, second)
        )
        assert outcomes in (["in_doubt", "result"], ["result", "result"], ["fenced", "result"])


@pytest.mark.parametrize("answer", [Check.never(), Check.not_yet(), Check.unknown(), Check.happened("another word")])
async def test_a_result_that_came_while_settling_wins_over_the_check(bench: Bench, answer: Check) -> None:
    world = Open(check=lambda key: answer)
    first = asyncio.create_task(bench.execute(world.act))
    await soon(world.entered.wait())

    async def first_ends() -> None:
        world.release.set()
        await soon(asyncio.shield(first))  # type: ignore[arg-type]

    bench.while_settling = first_ends
    second = await soon(bench.execute(world.act, attempt=2))
    assert second == await first
    assert (await bench.result(second)).text == "by attempt 1"
    assert world.calls == [KEY]


async def test_a_result_that_comes_after_its_key_was_closed_is_late_and_fenced(bench: Bench) -> None:
    world = Open(check=lambda key: Check.never())
    first = asyncio.create_task(bench.execute(world.act))
    await soon(world.entered.wait())
    assert await bench.execute(world.act, attempt=2) == Execution(outcome="closed")
    world.release.set()
    with pytest.raises(Fenced, match=f"P3: {KEY} was closed before the result of attempt 1"):
        await soon(first)
    row = await bench.row()
    assert row is not None
    assert (row.outcome, row.late) == ("closed", True)


async def test_a_key_that_another_worker_closed_while_settling_is_closed(bench: Bench) -> None:
    world = Open(check=lambda key: Check.unknown())
    first = asyncio.create_task(bench.execute(world.act))
    await soon(world.entered.wait())

    async def closed() -> None:
        await bench.store.close_effect(KEY, NOW_MS)

    bench.while_settling = closed
    assert await bench.execute(world.act, attempt=2) == Execution(outcome="closed")
    first.cancel()
    await stopped(first)


async def test_of_two_results_of_an_idempotent_call_the_first_stands(bench: Bench) -> None:
    world = Open(effect="idempotent")
    first = asyncio.create_task(bench.execute(world.act))
    await soon(world.entered.wait())
    second = asyncio.create_task(bench.execute(world.act, attempt=2))
    while len(world.calls) < 2:
        world.entered.clear()
        await soon(world.entered.wait())
    world.release.set()
    assert await soon(first) == await soon(second)
    assert world.calls == [KEY, KEY]


# --- told to stop, at each point --------------------------------------------------------------------------------


async def test_stopped_before_anything(bench: Bench) -> None:
    world = Open()
    running = asyncio.create_task(bench.execute(world.act))
    running.cancel()
    await stopped(running)
    assert await bench.row() is None


async def test_stopped_before_it_began(bench: Bench) -> None:
    world = Open()
    point = bench.held.before["begin_effect"] = Point()
    running = asyncio.create_task(bench.execute(world.act))
    await soon(point.reached.wait())
    running.cancel()
    await stopped(running)
    assert await bench.row() is None


async def test_stopped_between_the_ledgers_word_and_the_call(bench: Bench) -> None:
    world = Open()
    point = bench.held.after["begin_effect"] = Point()
    running = asyncio.create_task(bench.execute(world.act))
    await soon(point.reached.wait())
    running.cancel()
    await stopped(running)
    assert world.calls == []
    assert await bench.outcome() == ("open", [1])


async def test_stopped_in_the_call(bench: Bench) -> None:
    world = Open()
    running = asyncio.create_task(bench.execute(world.act))
    await soon(world.entered.wait())
    running.cancel()
    await stopped(running)
    assert await bench.outcome() == ("open", [1])


async def test_a_tool_that_ends_in_order_when_stopped_is_recorded(bench: Bench) -> None:
    entered = asyncio.Event()

    @tool
    async def act() -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "paid, the receipt was left out"
        return "never reached"

    running = asyncio.create_task(bench.execute(act))
    await soon(entered.wait())
    running.cancel()
    known = await soon(running)
    assert (await bench.result(known)).text == "paid, the receipt was left out"
    assert await bench.execute(act, attempt=2, resolve_only=True) == known


async def test_a_tool_that_fails_when_stopped_ends_as_stopped(bench: Bench) -> None:
    entered = asyncio.Event()

    @tool
    async def act() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the clean-up failed")

    running = asyncio.create_task(bench.execute(act))
    await soon(entered.wait())
    running.cancel()
    await stopped(running)
    assert await bench.outcome() == ("open", [1])


async def test_a_tool_that_goes_on_when_stopped_holds_nobody_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends without it; what it comes to is known as soon as it is (P4)."""
    monkeypatch.setattr(limits, "STOP_GRACE_S", 0.01)
    entered, release = asyncio.Event(), asyncio.Event()

    @tool
    async def act() -> str:
        entered.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return "paid"

    running = asyncio.create_task(bench.execute(act))
    await soon(entered.wait())
    running.cancel()
    await stopped(running)
    assert await bench.outcome() == ("open", [1])
    point = bench.held.after["finish_effect"] = Point()
    release.set()
    await soon(point.reached.wait())
    point.release.set()
    assert await bench.outcome() == ("done", [1])


async def test_a_plain_function_that_ends_after_the_stop_is_recorded(bench: Bench) -> None:
    entered, release = threading.Event(), threading.Event()

    @tool
    def act() -> str:
        entered.set()
        assert release.wait(20)
        return "paid"

    running = asyncio.create_task(bench.execute(act))
    assert await asyncio.to_thread(entered.wait, 20)
    running.cancel()
    release.set()
    assert (await soon(running)).outcome == "result"
    assert await bench.outcome() == ("done", [1])


@pytest.mark.parametrize("method", ["put_blob", "finish_effect"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_stopped_while_the_result_is_recorded_it_is_recorded_all_the_same(
    bench: Bench, method: str, when: str
) -> None:
    @tool
    async def act() -> str:
        return "x" * (limits.TOOL_TEXT_BYTES_MAX + 1)

    hooks: dict[str, Hook] = getattr(bench.held, when)
    point = hooks[method] = Point()
    running = asyncio.create_task(bench.execute(act))
    await soon(point.reached.wait())
    running.cancel()
    running.cancel()
    point.release.set()
    assert (await soon(running)).outcome == "result"
    assert await bench.outcome() == ("done", [1])


async def test_a_stop_does_not_wait_for_ever_for_the_record(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STORE_WRITE_TIMEOUT_S", 0.01)
    world = Open()
    world.release.set()
    point = bench.held.before["finish_effect"] = Point()
    running = asyncio.create_task(bench.execute(world.act))
    await soon(point.reached.wait())
    running.cancel()
    await stopped(running)
    assert await bench.outcome() == ("open", [1])


@pytest.mark.parametrize("at", ["settling", "check"])
async def test_stopped_while_in_doubt_nothing_is_decided(bench: Bench, at: str) -> None:
    point = Point()
    world = Open()

    async def check(key: str) -> Check:
        await point()
        return Check.never()

    @tool(name="act", check=check)
    async def act() -> None:
        raise OSError

    if at == "settling":
        bench.while_settling = point
    with pytest.raises(BegunError):
        await bench.execute(act)
    running = asyncio.create_task(bench.execute(act, attempt=2))
    await soon(point.reached.wait())
    running.cancel()
    await stopped(running)
    assert await bench.outcome() == ("open", [1])
    assert world.calls == []


# --- beside each other ------------------------------------------------------------------------------------------


async def test_a_held_plain_function_holds_nobody_else(bench: Bench) -> None:
    entered, release = threading.Event(), threading.Event()

    @tool(name="held")
    def held() -> str:
        entered.set()
        assert release.wait(20)
        return "late"

    @tool(effect="read")
    async def quick() -> str:
        return "early"

    running = asyncio.create_task(bench.execute(held))
    assert await asyncio.to_thread(entered.wait, 20)
    assert (await soon(bench.execute(quick, index=1))).outcome == "result"
    release.set()
    assert (await bench.result(await soon(running))).text == "late"


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable")


async def test_a_tool_sees_the_callers_context_variables(bench: Bench) -> None:
    @tool(effect="read")
    async def later() -> str:
        return VARIABLE.get()

    @tool(effect="read")
    def plain() -> str:
        return VARIABLE.get()

    VARIABLE.set("seen")
    assert (await bench.result(await bench.execute(later))).text == "seen"
    assert (await bench.result(await bench.execute(plain, index=1))).text == "seen"
