"""Every outcome of a `once` call at every moment relative to `begun` and `done`, as one table (P3, P4).

`ledger` is what the first attempt leaves there, `changed` how often it changed the outside by then. Then the second
attempt comes: of a tool without a check, and of one whose check knows and can close a key. After a stop that is the
next run's, which begins nothing. Whatever happened, the outside is changed once at most, under one key.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from perdure import Call, OutcomeUnknown, ToolError
from perdure.core.errors import BegunError, Fenced
from perdure.core.ports import Execution
from tests.tools.bench import TASK, Bench
from tests.tools.striking import Acting, Strike, spare
from tests.tools.test_races import Point, soon

TABLE = """
outcome    moment        ledger  changed  no_check   check
result     after_done    done    1        result     result
refusal    after_begun   done    0        result     result
exception  after_begun   open    0        in_doubt   closed
exception  after_effect  open    1        in_doubt   result
unknown    after_begun   open    0        in_doubt   closed
unknown    after_effect  open    1        in_doubt   result
timeout    before_begun  none    0        result     result
timeout    after_begun   open    0        in_doubt   closed
timeout    after_effect  open    1        in_doubt   result
timeout    after_done    done    1        result     result
stop       before_begun  none    0        not_begun  not_begun
stop       after_begun   open    0        in_doubt   closed
stop       after_effect  open    1        in_doubt   result
stop       after_done    done    1        result     result
death      before_begun  none    0        result     result
death      after_begun   open    0        in_doubt   closed
death      after_effect  open    1        in_doubt   result
death      after_done    done    1        result     result
"""

NEVER = {
    "a call has its result when it is done, not earlier": {
        ("result", "before_begun"),
        ("result", "after_begun"),
        ("result", "after_effect"),
    },
    "a ToolError says that nothing was changed": {("refusal", "after_effect")},
    "a tool raises while it is called, not before and not after": set(
        product(("refusal", "exception", "unknown"), ("before_begun", "after_done"))
    ),
}
"""What cannot be, and why."""

OUTCOMES = ("result", "refusal", "exception", "unknown", "timeout", "stop", "death")
MOMENTS = ("before_begun", "after_begun", "after_effect", "after_done")
POINTS = dict(zip(MOMENTS, ("tool.before_begun", "tool.begun", "tool.after_effect", "tool.done"), strict=True))
ROOT = Path(__file__).parents[2]
KEY, NEXT_KEY = f"{TASK}/1/0", f"{TASK}/1/0/2"


class Row(NamedTuple):
    outcome: str
    moment: str
    ledger: str
    changed: str
    no_check: str
    check: str


ROWS = [Row(*line.split()) for line in TABLE.strip().splitlines()[1:]]


def test_the_table_has_every_outcome_at_every_moment() -> None:
    told = [(row.outcome, row.moment) for row in ROWS]
    assert sorted([*told, *set().union(*NEVER.values())]) == sorted(product(OUTCOMES, MOMENTS))


@pytest.mark.parametrize("checks", [False, True], ids=["no_check", "check"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.outcome}-{row.moment}")
async def test_p3_every_outcome_at_every_moment(
    bench: Bench, tmp_path: Path, store_url: str, row: Row, checks: bool
) -> None:
    ending = await FIRST[row.outcome](bench, tmp_path, store_url, row.moment, checks)
    acting = Acting(tmp_path, checks=checks)
    assert (await bench.outcome())[0] == row.ledger
    assert acting.changes == [KEY] * int(row.changed)

    bench.held.before.clear()
    bench.held.after.clear()
    second = await bench.execute(acting.act, attempt=2, resolve_only=row.outcome == "stop")
    assert second.outcome == (row.check if checks else row.no_check)
    await ending()
    if second.outcome == "closed" and row.outcome != "stop":
        third = await bench.execute(acting.act, attempt=3, generation=2)
        assert (await bench.result(third)).text == "done"
        assert acting.changes == [NEXT_KEY]
    assert len(acting.changes) <= 1
    stands = await bench.execute(acting.act, attempt=4, resolve_only=True)
    if second.outcome == "result":
        assert stands == second, "what stands is what was told"
    elif second.outcome == "in_doubt" and row.outcome == "timeout":
        assert (await bench.result(stands)).text == "done", "its late result is in the ledger"
        assert acting.changes == [KEY]
    else:
        assert stands.outcome == second.outcome


# --- the first attempt ------------------------------------------------------------------------------------------

Ending = Callable[[], Awaitable[None]]
First = Callable[[Bench, Path, str, str, bool], Awaitable[Ending]]


async def over() -> None:
    """The first attempt is over already."""


async def returns(bench: Bench, place: Path, store_url: str, moment: str, checks: bool) -> Ending:
    assert (await bench.execute(Acting(place, checks=checks).act)).status == "ok"
    return over


def raises(error: Exception) -> First:
    async def strike(call: Call) -> None:
        raise error

    async def first(bench: Bench, place: Path, store_url: str, moment: str, checks: bool) -> Ending:
        acting = striking(place, moment, strike, checks)
        if isinstance(error, ToolError):
            assert (await bench.execute(acting.act)).status == "error"
        else:
            with pytest.raises(BegunError):
                await bench.execute(acting.act)
        return over

    return first


async def is_stopped(bench: Bench, place: Path, store_url: str, moment: str, checks: bool) -> Ending:
    point, running = await held(bench, place, moment, checks)
    running.cancel()
    if moment == "after_done":
        point.release.set()
        assert (await soon(running)).outcome == "result"
        return over
    with pytest.raises(asyncio.CancelledError):
        await soon(running)
    return over


async def is_timed_out(bench: Bench, place: Path, store_url: str, moment: str, checks: bool) -> Ending:
    """Nobody waits for it any more, and it lives on: it ends after the second attempt."""
    point, running = await held(bench, place, moment, checks)

    async def ends() -> None:
        point.release.set()
        done, _ = await asyncio.wait({running}, timeout=20)
        assert done
        assert isinstance(running.exception(), BegunError | Fenced | None)

    return ends


async def dies(bench: Bench, place: Path, store_url: str, moment: str, checks: bool) -> Ending:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.tools.striking", str(place), store_url, POINTS[moment]), cwd=ROOT
    )
    async with asyncio.timeout(60):
        assert await process.wait() == -9
    return over


async def held(bench: Bench, place: Path, moment: str, checks: bool) -> tuple[Point, "asyncio.Task[Execution]"]:
    """Start the first attempt and hold it at that moment."""
    point = Point()

    async def strike(call: Call) -> None:
        await point()

    if moment == "before_begun":
        bench.held.before["begin_effect"] = point
    elif moment == "after_done":
        bench.held.after["finish_effect"] = point
    running = asyncio.create_task(bench.execute(striking(place, moment, strike, checks).act))
    await soon(point.reached.wait())
    return point, running


def striking(place: Path, moment: str, strike: Strike, checks: bool) -> Acting:
    before = strike if moment == "after_begun" else spare
    after = strike if moment == "after_effect" else spare
    return Acting(place, checks=checks, before=before, after=after)


FIRST: dict[str, First] = {
    "result": returns,
    "refusal": raises(ToolError("the order is closed")),
    "exception": raises(OSError("the line broke")),
    "unknown": raises(OutcomeUnknown(KEY, "the bank timed out")),
    "timeout": is_timed_out,
    "stop": is_stopped,
    "death": dies,
}
