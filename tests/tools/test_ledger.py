"""Every verdict of the ledger and every outcome of a call, for the three classes (design section 6; P3, P4)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from perdure.core.agent import EffectClass
from perdure.core.errors import BegunError, Fenced, KeyReused, ToolError
from perdure.core.log import Batch
from perdure.core.ports import Call, Check, Execution
from perdure.tools import FunctionTool, tool
from tests.tools.bench import BATCH, TASK, Bench

CLASSES: list[EffectClass] = ["read", "idempotent", "once"]


class World:
    """The outside: the keys and attempts of the calls that reached it, and what becomes of them there."""

    def __init__(self, effect: EffectClass, check: Callable[[str], object] | None = None) -> None:
        self.calls: list[tuple[str, int]] = []
        self.fails: list[BaseException] = []

        @tool(effect=effect, check=check, name="act")
        async def act(call: Call) -> str:
            self.calls.append((call.idempotency_key, call.attempt))
            if self.fails:
                raise self.fails.pop(0)
            return f"done by attempt {call.attempt}"

        self.act: FunctionTool[..., Any] = act


async def left_open(bench: Bench, world: World, **request: Any) -> None:
    """Let the first attempt end without a result."""
    world.fails.append(OSError("the line broke"))
    with pytest.raises(BegunError):
        await bench.execute(world.act, **request)


# --- begun ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", CLASSES)
async def test_what_returned_is_recorded_and_never_called_again(bench: Bench, effect: EffectClass) -> None:
    world = World(effect)
    first = await bench.execute(world.act)
    assert (await bench.result(first)).text == "done by attempt 1"
    assert first.status == "ok"
    assert await bench.outcome() == ("done", [1])
    assert await bench.execute(world.act, attempt=2) == first
    assert await bench.execute(world.act, attempt=3, resolve_only=True) == first
    assert world.calls == [("task-1/1/0", 1)]


async def test_the_ledger_names_the_worker_that_ran_the_call(bench: Bench) -> None:
    await bench.execute(World("once").act)
    row = await bench.row()
    assert row is not None
    assert [attempt.worker for attempt in row.begun] == ["worker-1"]


@pytest.mark.parametrize("effect", CLASSES)
async def test_a_tool_error_says_that_it_did_not_happen_and_ends_the_call(bench: Bench, effect: EffectClass) -> None:
    world = World(effect)
    world.fails.append(ToolError("the order is closed"))
    first = await bench.execute(world.act)
    assert first.status == "error"
    assert (await bench.result(first)).text == "the order is closed"
    assert await bench.execute(world.act, attempt=2) == first
    assert len(world.calls) == 1


async def test_a_tool_error_without_a_text_still_says_something(bench: Bench) -> None:
    world = World("once")
    world.fails.append(ToolError(""))
    assert "did not happen" in (await bench.result(await bench.execute(world.act))).text


@pytest.mark.parametrize("effect", CLASSES)
@pytest.mark.parametrize("error", [OSError("the line broke"), SystemExit(2), TimeoutError(), asyncio.CancelledError()])
async def test_anything_else_that_is_raised_leaves_the_outcome_open(
    bench: Bench, effect: EffectClass, error: BaseException
) -> None:
    world = World(effect)
    world.fails.append(error)
    with pytest.raises(BegunError, match="act") as caught:
        await bench.execute(world.act)
    if not isinstance(error, asyncio.CancelledError):
        assert caught.value.__cause__ is error
    assert await bench.outcome() == ("open", [1])


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_what_is_safe_to_repeat_begins_again_with_the_same_key(bench: Bench, effect: EffectClass) -> None:
    world = World(effect)
    await left_open(bench, world)
    second = await bench.execute(world.act, attempt=2)
    assert (await bench.result(second)).text == "done by attempt 2"
    assert world.calls == [("task-1/1/0", 1), ("task-1/1/0", 2)]
    assert await bench.outcome() == ("done", [1, 2])


# --- in doubt ---------------------------------------------------------------------------------------------------


async def test_once_without_a_check_stays_in_doubt_and_is_never_called_again(bench: Bench) -> None:
    world = World("once")
    await left_open(bench, world)
    second = await bench.execute(world.act, attempt=2)
    assert second == Execution(outcome="in_doubt", reason="the check of act cannot tell, or it has none")
    assert len(world.calls) == 1
    assert bench.slept_s == [0], "there is nothing to wait for"
    assert await bench.outcome() == ("open", [1])


@pytest.mark.parametrize("answer", [Check.happened("r-1"), "r-1"])
async def test_a_check_that_knows_the_result_ends_the_doubt(bench: Bench, answer: object) -> None:
    world = World("once", lambda key: answer)
    await left_open(bench, world)
    second = await bench.execute(world.act, attempt=2)
    assert (await bench.result(second)).text == "r-1"
    assert second.status == "ok"
    assert await bench.outcome() == ("done", [1])
    assert await bench.execute(world.act, attempt=3) == second
    assert len(world.calls) == 1


async def test_a_key_that_will_never_happen_is_closed_and_the_call_begins_under_the_next(bench: Bench) -> None:
    asked: list[str] = []

    def check(key: str) -> Check:
        asked.append(key)
        return Check.never()

    world = World("once", check)
    await left_open(bench, world)
    assert await bench.execute(world.act, attempt=2) == Execution(outcome="closed")
    assert await bench.execute(world.act, attempt=3) == Execution(outcome="closed"), "the old key keeps refusing"
    assert (await bench.execute(world.act, attempt=3, generation=2)).outcome == "result"
    assert world.calls == [("task-1/1/0", 1), ("task-1/1/0/2", 3)]
    assert asked == ["task-1/1/0"]
    assert await bench.outcome() == ("closed", [1])


def gone(key: str) -> object:
    raise KeyError("the shop's log is gone")


def leaves(key: str) -> object:
    raise SystemExit(1)


async def hangs(key: str) -> object:
    await asyncio.Event().wait()
    return "never reached"


async def gives_up(key: str) -> object:
    raise asyncio.CancelledError


async def breaks_off(key: str) -> object:
    raise TimeoutError("the shop was slow")


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (lambda key: Check.not_yet(), "did not happen so far"),
        (lambda key: None, "did not happen so far"),
        (lambda key: Check.unknown(), "cannot tell"),
        (lambda key: True, "return Check.happened(result)"),
        (gone, 'the check of act failed: KeyError: "the shop\'s log is gone"'),
        (leaves, "the check of act failed: SystemExit: 1"),
        (breaks_off, "the check of act failed: TimeoutError: the shop was slow"),
        (gives_up, "the check of act was cancelled from within"),
    ],
)
async def test_a_check_that_settles_nothing_leaves_the_doubt_with_its_reason(
    bench: Bench, check: Callable[[str], object], reason: str
) -> None:
    world = World("once", check)
    await left_open(bench, world)
    second = await bench.execute(world.act, attempt=2)
    assert second.outcome == "in_doubt"
    assert reason in second.reason
    assert len(world.calls) == 1
    assert await bench.outcome() == ("open", [1])


async def test_a_check_that_does_not_answer_is_given_up_within_the_attempt(bench: Bench) -> None:
    @tool(check=hangs, timeout_s=0.2)
    async def act() -> None:
        raise OSError

    with pytest.raises(BegunError):
        await bench.execute(act)
    second = await asyncio.wait_for(bench.execute(act, attempt=2), 10)
    assert second == Execution(outcome="in_doubt", reason="the check of act did not answer within 0.07 s")


async def test_the_check_is_asked_after_the_tools_settle_time(bench: Bench) -> None:
    seen: list[str] = []

    @tool(check=lambda key: seen.append("asked"), settle_s=3)
    async def act() -> None:
        raise OSError

    async def settling() -> None:
        seen.append("settling")

    bench.while_settling = settling
    with pytest.raises(BegunError):
        await bench.execute(act)
    await bench.execute(act, attempt=2)
    assert bench.slept_s == [3]
    assert seen == ["settling", "asked"]


class LongSettling(FunctionTool[..., Any]):
    """A tool of another make, that wants to wait longer than its attempt may last."""

    @property
    def settle_s(self) -> float:
        """An hour."""
        return 3600


async def test_settling_is_bounded_by_half_of_the_attempt(bench: Bench) -> None:
    spec = World("once").act.spec.model_copy(update={"timeout_s": 20})
    act = LongSettling(gone_without_result, spec=spec, description=None, check=None, settle_s=0)
    with pytest.raises(BegunError):
        await bench.execute(act)
    await bench.execute(act, attempt=2)
    assert bench.slept_s == [10]


async def gone_without_result() -> None:
    raise OSError


# --- resolving what a stopped run left open ---------------------------------------------------------------------


@pytest.mark.parametrize("effect", CLASSES)
async def test_resolving_what_never_began_begins_nothing_and_closes_the_key(bench: Bench, effect: EffectClass) -> None:
    world = World(effect)
    assert await bench.execute(world.act, resolve_only=True) == Execution(outcome="not_begun")
    assert await bench.execute(world.act, attempt=2) == Execution(outcome="closed"), "a late attempt is refused"
    assert world.calls == []


@pytest.mark.parametrize("effect", CLASSES)
async def test_resolving_what_began_asks_the_check_for_every_class(bench: Bench, effect: EffectClass) -> None:
    world = World(effect, lambda key: "r-1")
    await left_open(bench, world)
    resolved = await bench.execute(world.act, attempt=2, resolve_only=True)
    assert (await bench.result(resolved)).text == "r-1"
    assert len(world.calls) == 1


# --- refused before it begins -----------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", CLASSES)
async def test_a_stopped_run_begins_nothing(bench: Bench, effect: EffectClass) -> None:
    world = World(effect)
    await bench.store.write(Batch(task_id=TASK, header=BATCH.header, fence=1), 0)
    with pytest.raises(Fenced, match="P9"):
        await bench.execute(world.act)
    assert world.calls == []


@pytest.mark.parametrize("effect", ["read", "idempotent"])
async def test_an_older_attempt_does_not_begin_after_a_newer_one(bench: Bench, effect: EffectClass) -> None:
    world = World(effect)
    await left_open(bench, world, attempt=2)
    with pytest.raises(Fenced, match="P3"):
        await bench.execute(world.act, attempt=1)
    assert len(world.calls) == 1


async def test_a_key_is_bound_to_its_arguments(bench: Bench) -> None:
    @tool(effect="idempotent")
    async def pay(amount: int) -> int:
        return amount

    await bench.execute(pay, {"amount": 1})
    with pytest.raises(KeyReused, match="P3"):
        await bench.execute(pay, {"amount": 2}, attempt=2)


async def test_arguments_that_do_not_fit_begin_nothing(bench: Bench) -> None:
    @tool
    async def pay(amount: int) -> None:
        pytest.fail("called")

    refused = await bench.execute(pay, {"amount": "ten"})
    assert refused.outcome == "not_begun"
    assert "amount: Input should be a valid integer" in refused.reason
    assert await bench.outcome() == ("closed", [])
    assert await bench.execute(pay, {"amount": "ten"}, attempt=2) == refused, "asked again, the answer is the same"


async def test_arguments_that_no_longer_fit_do_not_hide_what_was_begun(bench: Bench) -> None:
    world = World("once", lambda key: "r-1")
    await left_open(bench, world)

    @tool(name="act", check=lambda key: "r-1")
    async def act(added: int) -> None:
        pytest.fail("called")

    resolved = await bench.execute(act, attempt=2)
    assert (await bench.result(resolved)).text == "r-1"


@pytest.mark.parametrize("effect", CLASSES)
async def test_a_tool_that_this_worker_lacks_begins_nothing_and_hides_nothing(
    bench: Bench, effect: EffectClass
) -> None:
    world = World(effect)
    lacking = bench.executor(tool(effect="read")(gone_without_result))
    reason = "this worker has no tool 'act'; its tools: gone_without_result"

    refused = await lacking.execute(BATCH, bench.request("act", effect), "call-1", {})
    assert refused == Execution(outcome="not_begun", reason=reason)
    assert await bench.outcome() == ("closed", [])

    await left_open(bench, world, index=1)
    doubtful = await lacking.execute(BATCH, bench.request("act", effect, index=1, attempt=2), "call-1", {})
    assert doubtful == Execution(outcome="in_doubt", reason=reason)

    done = await bench.execute(world.act, index=2)
    assert await lacking.execute(BATCH, bench.request("act", effect, index=2, attempt=2), "call-1", {}) == done
    assert len(world.calls) == 2
