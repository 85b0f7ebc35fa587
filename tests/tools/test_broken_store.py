"""A store that does not answer, at each point of a call (P3, P4)."""

import pytest

from perdure.core import limits
from perdure.core.errors import BegunError, StoreUnavailable
from perdure.core.ports import Check
from perdure.tools import tool
from tests.tools.bench import Bench


async def broken() -> None:
    raise StoreUnavailable("the disk is full")


async def test_without_the_ledgers_word_nothing_is_called(bench: Bench) -> None:
    called: list[str] = []

    @tool(name="act")
    async def act() -> None:
        called.append("act")

    bench.held.before["begin_effect"] = broken
    with pytest.raises(StoreUnavailable):
        await bench.execute(act)
    assert called == []


@pytest.mark.parametrize("method", ["put_blob", "finish_effect"])
async def test_a_result_that_cannot_be_recorded_leaves_a_begun_call(
    bench: Bench, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RECORD_WITHIN_S", 0.05)

    @tool
    async def act() -> str:
        return "x" * (limits.TOOL_TEXT_BYTES_MAX + 1)

    bench.held.before[method] = broken
    with pytest.raises(BegunError, match="its result could not be recorded") as caught:
        await bench.execute(act)
    assert isinstance(caught.value.__cause__, StoreUnavailable)
    assert await bench.outcome() == ("open", [1])


@pytest.mark.parametrize("method", ["put_blob", "finish_effect"])
async def test_p4_a_store_that_comes_back_soon_keeps_what_is_known(bench: Bench, method: str) -> None:
    tried: list[str] = []

    async def broken_twice() -> None:
        tried.append(method)
        if len(tried) < 3:
            await broken()

    world: list[str] = []

    @tool(effect="once")
    async def act() -> str:
        world.append("acted")
        return "x" * (limits.TOOL_TEXT_BYTES_MAX + 1)

    bench.held.before[method] = broken_twice
    assert (await bench.execute(act)).outcome == "result"
    assert (world, len(tried)) == (["acted"], 3)
    assert await bench.outcome() == ("done", [1])


@pytest.mark.parametrize(
    ("method", "answer"), [("finish_effect", Check.happened("r-1")), ("close_effect", Check.never())]
)
async def test_a_store_that_breaks_while_a_doubt_is_resolved_is_just_unavailable(
    bench: Bench, method: str, answer: Check
) -> None:
    @tool(check=lambda key: answer)
    async def act() -> None:
        raise OSError

    with pytest.raises(BegunError):
        await bench.execute(act)
    bench.held.before[method] = broken
    with pytest.raises(StoreUnavailable):
        await bench.execute(act, attempt=2)
    del bench.held.before[method]
    assert (await bench.execute(act, attempt=3)).outcome in {"result", "closed"}
