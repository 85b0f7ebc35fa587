"""Functions as tools: declared, called directly, invoked, checked."""

import asyncio
import contextvars
import dataclasses
import functools
import gc
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, assert_type

import pytest
from pydantic import BaseModel, computed_field

from perdure.core import limits
from perdure.core.agent import RetryPolicy, ToolSpec
from perdure.core.errors import ConfigurationError, ToolError
from perdure.core.ports import Call, ToolPort
from perdure.tools import FunctionTool, tool

CALL = Call(idempotency_key="t/1/0", attempt=2, task_id="t", tool="refund")


class Order(BaseModel):
    order_id: str
    total: float = 1.0


@dataclasses.dataclass
class Point:
    x: int


class Poisoned(BaseModel):
    @computed_field
    def value(self) -> int:
        raise KeyError("gone")


# --- declared ---------------------------------------------------------------------------------------------------


def test_a_bare_decorator_means_once_alone_and_the_default_times() -> None:
    @tool
    async def refund(order_id: str) -> str:
        """Pay back."""
        return order_id

    assert refund.spec == ToolSpec(name="refund", effect="once", parallel=False)
    assert refund.schema.name == "refund"
    assert refund.schema.description == "Pay back."
    assert refund.__doc__ == "Pay back."
    assert repr(refund) == "<tool refund (once)>"


@pytest.mark.parametrize(
    ("effect", "parallel", "expected"),
    [
        ("read", None, True),
        ("idempotent", None, False),
        ("once", None, False),
        ("read", False, False),
        ("once", True, True),
    ],
)
def test_only_reads_are_parallel_by_default(
    effect: Literal["read", "idempotent", "once"], parallel: bool | None, expected: bool
) -> None:
    @tool(effect=effect, parallel=parallel)
    def probe() -> None: ...

    assert probe.spec.effect == effect
    assert probe.spec.parallel is expected


def test_every_setting_reaches_the_spec() -> None:
    retry = RetryPolicy(attempts_max=7)

    @tool(
        effect="idempotent",
        check=lambda key: None,
        timeout_s=40,
        heartbeat_timeout_s=3,
        retry=retry,
        settle_s=2,
        name="pay-back",
        description="Other words.",
    )
    def refund() -> None:
        """Ignored."""

    assert refund.spec == ToolSpec(
        name="pay-back", effect="idempotent", timeout_s=40, heartbeat_timeout_s=3, retry=retry
    )
    assert refund.schema.description == "Other words."
    assert refund.settle_s == 2


def test_settling_defaults_to_the_limit_half_the_timeout_or_nothing() -> None:
    def check(key: str) -> None: ...

    def probe() -> None: ...

    assert tool(check=check)(probe).settle_s == limits.SETTLE_S
    assert tool(check=check, timeout_s=4)(probe).settle_s == 2
    assert tool()(probe).settle_s == 0, "without a check there is nothing to wait for"


def two_arguments(key: str, other: str) -> None: ...
def no_argument() -> None: ...
def only_by_name(*, key: str) -> None: ...


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"effect": "twice"}, "effect"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"heartbeat_timeout_s": -1}, "heartbeat_timeout_s"),
        ({"settle_s": -1}, "settle_s"),
        ({"settle_s": 6, "timeout_s": 10}, "settle_s"),
        ({"check": "no function"}, "check"),
        ({"check": two_arguments}, "check"),
        ({"check": no_argument}, "check"),
        ({"check": only_by_name}, "check"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings: dict[str, Any], field: str) -> None:
    def probe() -> None: ...

    with pytest.raises(ConfigurationError) as caught:
        tool(**settings)(probe)
    assert caught.value.field == f"tool 'probe', {field}"


# --- still the function -----------------------------------------------------------------------------------------


async def test_a_tool_is_still_its_function_with_its_types() -> None:
    @tool
    async def later(order_id: str) -> Order:
        return Order(order_id=order_id)

    @tool(effect="read")
    def now(x: int, y: int = 1) -> int:
        return x + y

    made = later("7")
    assert await assert_type(made, Coroutine[Any, Any, Order]) == Order(order_id="7")
    assert_type(now(1, y=2), int)
    with pytest.raises(TypeError):
        now("1", z=2)  # type: ignore[call-arg, arg-type]
    assert isinstance(now, FunctionTool)
    assert now(1, y=2) == 3
    port: ToolPort = now
    assert port.spec.name == "now"


# --- invoked ----------------------------------------------------------------------------------------------------


async def test_the_call_is_given_to_the_parameter_that_asks_for_it() -> None:
    @tool
    def plain(order_id: str, call: Call) -> list[str]:
        return [order_id, call.idempotency_key, str(call.attempt)]

    @tool
    async def later(*, call: Call) -> str:
        return call.task_id

    assert await plain.invoke({"order_id": "7"}, CALL) == ["7", "t/1/0", "2"]
    assert await later.invoke({}, CALL) == "t"


async def test_arguments_that_do_not_fit_never_reach_the_function() -> None:
    @tool
    def refund(amount: int) -> None:
        pytest.fail("called")

    with pytest.raises(ToolError, match="Not begun: the arguments of refund do not fit"):
        await refund.invoke({"amount": "ten"}, CALL)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        ("text", "text"),
        ({"a": [1, 2.5, True, None]}, {"a": [1, 2.5, True, None]}),
        (Order(order_id="7"), {"order_id": "7", "total": 1.0}),
        ([Point(1), Point(2)], [{"x": 1}, {"x": 2}]),
        ({1: "a"}, {"1": "a"}),
        (b"bytes", "bytes"),
    ],
)
async def test_a_result_becomes_json(value: object, shown: object) -> None:
    @tool
    def give() -> object:
        return value

    assert await give.invoke({}, CALL) == shown


@pytest.mark.parametrize("value", [object(), b"\xff", Poisoned(), threading.Lock()])
async def test_a_result_without_a_json_form_does_not_make_the_call_fail(value: object) -> None:
    @tool
    def give() -> object:
        return value

    result = await give.invoke({}, CALL)
    assert isinstance(result, str)
    assert result.startswith("The call was made and ended normally, but its result cannot be shown")


async def test_a_result_that_contains_itself_does_not_make_the_call_fail() -> None:
    loop: list[object] = []
    loop.append(loop)

    @tool
    def give() -> object:
        return loop

    assert "cannot be shown" in str(await give.invoke({}, CALL))


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable")


async def test_context_variables_reach_plain_and_async_functions() -> None:
    @tool
    def plain() -> str:
        return VARIABLE.get()

    @tool
    async def later() -> str:
        return VARIABLE.get()

    VARIABLE.set("seen")
    assert await plain.invoke({}, CALL) == "seen"
    assert await later.invoke({}, CALL) == "seen"


async def test_a_plain_function_blocks_nobody() -> None:
    entered, release = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        entered.set()
        assert release.wait(10)
        return "done"

    running = asyncio.create_task(slow.invoke({}, CALL))
    assert await asyncio.to_thread(entered.wait, 10)
    release.set()  # Reached only because the loop was free.
    assert await running == "done"


async def test_a_plain_wrapper_of_an_async_function_is_awaited() -> None:
    def passing(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @passing
    async def wrapped(x: int) -> int:
        return x + 1

    assert await wrapped.invoke({"x": 1}, CALL) == 2


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(3)])
async def test_what_a_future_cannot_carry_is_an_error_of_the_call(error: BaseException) -> None:
    @tool
    def ends() -> None:
        raise error

    with pytest.raises(RuntimeError, match="the function"):
        await asyncio.wait_for(ends.invoke({}, CALL), 10)


async def test_a_cancelled_plain_function_is_waited_for_and_its_result_kept() -> None:
    entered, release = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        entered.set()
        assert release.wait(10)
        return "done"

    running = asyncio.create_task(slow.invoke({}, CALL))
    assert await asyncio.to_thread(entered.wait, 10)
    running.cancel()
    release.set()
    assert await running == "done"


async def test_a_plain_function_that_does_not_end_is_left_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STOP_GRACE_S", 0.01)
    entered, release = threading.Event(), threading.Event()
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    loop.set_default_executor(ThreadPoolExecutor(max_workers=1))

    @tool
    def slow() -> str:
        entered.set()
        assert release.wait(10)
        raise ValueError("nobody hears this")

    running = asyncio.create_task(slow.invoke({}, CALL))
    while not entered.is_set():
        await asyncio.wait({running}, timeout=0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    release.set()
    await loop.run_in_executor(None, lambda: None)  # The one thread has left the function.
    gc.collect()
    assert complaints == []


async def test_a_plain_function_that_has_not_started_never_starts() -> None:
    entered, release, called = threading.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(max_workers=1))

    def occupy() -> None:
        entered.set()
        assert release.wait(10)

    @tool
    def late() -> None:
        called.set()

    occupied = loop.run_in_executor(None, occupy)
    entered.wait(10)
    running = asyncio.create_task(late.invoke({}, CALL))
    await asyncio.sleep(0)  # It stands in the queue of the pool, behind the function that occupies its one thread.
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    release.set()
    await occupied
    await loop.run_in_executor(None, lambda: None)  # The queue has been worked off.
    assert not called.is_set()
