"""Every fault point × every class of effect: real workers, killed exactly there, judged by the outside's own log."""

from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from temporalio.client import Client

from perdure.core.faults import POINTS
from tests.crash.acting import CLASSES
from tests.crash.arena import ASK, Arena, arena
from tests.crash.expected import expected

pytestmark = [pytest.mark.asyncio(loop_scope="session")]

TWICE = {
    # The check closed the key at the outside and its answer was lost: asked again, it says the same.
    "tool.begun,tool.checked": ("checked", "unchecked"),
    "tool.begun,tool.key_closed": ("checked",),
    # The check found the effect and its answer was lost. Without a check it is unknown, however often one looks.
    "tool.after_effect,tool.checked": ("checked", "unchecked"),
}
"""Two deaths of one call: points that only a first death leads to."""

ELSEWHERE = {"tool.checked", "tool.key_closed", "store.committed"}
"""Points that no first death reaches, and one that is no task's own (`test_commits.py`)."""

ONCE = dict.fromkeys((point for point in POINTS if point not in ELSEWHERE), CLASSES)

QUICK = {"tool.begun", "tool.after_effect", "model.inside"}
"""What the quick tests take of it; with every point it takes minutes."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(server: tuple[str, Client], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    points = {_case(points, effect): points for points, effects in (ONCE | TWICE).items() for effect in effects}
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
