"""A tool's own check: what it is given, and how its answers are read (P4)."""

import functools
from collections.abc import Callable
from typing import Any, cast

import pytest
from pydantic import BaseModel

from perdure.core.errors import ConfigurationError
from perdure.core.ports import Call, Check
from perdure.tools import tool

CALL = Call(idempotency_key="t/1/0", attempt=2, task_id="t", tool="refund")


class Order(BaseModel):
    order_id: str
    total: float = 1.0


def two_arguments(other: str, key: str) -> object:
    return [other, key]


async def asked(check: Callable[[Any], object] | None) -> Check:
    @tool(check=check)
    def refund() -> None: ...

    return await refund.check(CALL)


async def test_without_a_check_the_outcome_is_unknown() -> None:
    assert await asked(None) == Check.unknown()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Check.happened("r-1"), Check.happened("r-1")),
        (Check.never(), Check.never()),
        (Check.not_yet(), Check.not_yet()),
        (Check.unknown(), Check.unknown()),
        (None, Check.not_yet()),
        ("r-1", Check.happened("r-1")),
        (Order(order_id="7"), Check.happened({"order_id": "7", "total": 1.0})),
    ],
)
async def test_answers_of_plain_and_async_checks(answer: object, expected: Check) -> None:
    async def later(key: str) -> object:
        return answer

    def wrapped(key: str) -> object:
        return later(key)

    assert await asked(lambda key: answer) == expected
    assert await asked(later) == expected
    assert await asked(wrapped) == expected


@pytest.mark.parametrize("answer", [True, False, 0, "", [], {}, ()])
async def test_an_answer_that_could_mean_either_is_refused(answer: object) -> None:
    with pytest.raises(ConfigurationError, match="does not say whether the effect happened"):
        await asked(lambda key: answer)


async def test_a_check_takes_the_key_or_the_call() -> None:
    def by_key(key: str) -> object:
        return ["key", key]

    def by_call(call: Call) -> object:
        return ["call", call.idempotency_key]

    def by_text(call: "Call") -> object:
        return ["call", call.task_id]

    by_text.__annotations__["call"] = "ports.Call"
    assert (await asked(by_key)).result == ["key", "t/1/0"]
    assert (await asked(by_call)).result == ["call", "t/1/0"]
    assert (await asked(by_text)).result == ["call", "t"]
    assert (await asked(functools.partial(cast(Any, two_arguments), "x"))).result == ["x", "t/1/0"]
