"""Every fault point × every class of effect: real workers, killed exactly there, judged by the outside's own log."""

from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from temporalio.client import Client

from perdure.core.faults import POINTS
from tests.crash.acting import ALL, CLASSES
from tests.crash.arena import ASK, Arena, arena
from tests.crash.expected import UNKNOWN, expected

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

TWICE = {
    # The check closed the key at the outside and its answer was lost: asked again, it says the same.
    "tool.begun,tool.checked": ("checked", "unchecked"),
    "tool.begun,tool.key_closed": ("checked",),
    # The check found the effect and its answer was lost. Without a check it is unknown, however often one looks.
    "tool.after_effect,tool.checked": ("checked", "unchecked"),
}
"""Two deaths of one call: points that only a first death leads to."""

ELSEWHERE = {
    "tool.asked",
    "tool.checked",
    "tool.key_closed",
    "store.committed",
    *(point for point in POINTS if point.startswith(("send.", "push.", "help."))),
}
"""Points that no first death reaches, one that is no task's own (`test_commits.py`), a server's (`tests/a2a`), that of
a call which asks (`tools/mcp/test_killed_workers.py`), and those of questions (`test_asking.py`)."""

ONCE = dict.fromkeys((point for point in POINTS if point not in ELSEWHERE), CLASSES)

SIDE_BY_SIDE = [point for point in ONCE if point.startswith("tool.")]

QUICK = {"tool.begun", "tool.after_effect", "model.inside"}
"""What the quick tests take of it; with every point it takes minutes."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(server: tuple[str, Client], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    points = {_case(points, effect): points for points, effects in (ONCE | TWICE).items() for effect in effects}
    points |= {_case(point, ALL): point for point in SIDE_BY_SIDE}
    async with arena(server, tmp_path_factory.mktemp("points"), points) as opened:
        yield opened


def _case(points: str, effect: str) -> str:
    return f"{points.replace(',', '-')}-{effect}"


def _cases(points: Mapping[str, tuple[str, ...]]) -> list[object]:
    return [
        pytest.param(point, effect, id=_case(point, effect), marks=[] if point in QUICK else [pytest.mark.slow])
        for point, effects in points.items()
        for effect in effects
    ]


@pytest.mark.parametrize(("point", "effect"), _cases(ONCE))
async def test_killed_at(place: Arena, point: str, effect: str) -> None:
    ask = ASK if point.startswith("emit_event") else ""
    assert await place.play(_case(point, effect), f"{effect}{ask}") == expected(point, effect)


@pytest.mark.parametrize(("points", "effect"), _cases(TWICE))
async def test_killed_twice(place: Arena, points: str, effect: str) -> None:
    first, _ = points.split(",")
    assert await place.play(_case(points, effect), effect) == expected(first, effect)


@pytest.mark.slow
@pytest.mark.parametrize("point", SIDE_BY_SIDE)
async def test_killed_among_siblings(place: Arena, point: str) -> None:
    """B7: four calls side by side; a worker dies where the first comes to the point, its other calls anywhere.

    Which of them that cuts, and where, differs from run to run. What each class promises does not.
    """
    case = _case(point, ALL)
    answers = (await place.finish(case, ALL)).split(" | ")
    task_id = place.task_of(case)
    assert len(answers) == len(CLASSES)
    told = dict(zip(CLASSES, answers, strict=True))
    assert [told["read"], told["idempotent"], told["checked"]] == ["ok: read", "ok: changed", "ok: changed"]
    assert told["unchecked"] == "ok: changed" or told["unchecked"].startswith(UNKNOWN)

    keys = {effect: f"{task_id}/1/{index}" for index, effect in enumerate(CLASSES)}
    effects, arrivals = place.world.effects(task_id), place.world.arrivals(task_id)
    of = {effect: [each for each in effects if _is_of(each, key)] for effect, key in keys.items()}
    assert (of["read"], of["idempotent"]) == ([], [keys["idempotent"]])
    assert len(of["checked"]) == 1
    assert len(of["unchecked"]) <= 1
    assert of["unchecked"] or told["unchecked"].startswith(UNKNOWN)
    for key in arrivals:
        assert arrivals.count(key) == 1 or key in {keys["read"], keys["idempotent"]}, "P3"


def _is_of(key: str, first: str) -> bool:
    return key == first or key.startswith(f"{first}/")
