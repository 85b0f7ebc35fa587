"""Killed around an approval and an expiry: an approved call runs once, and one that nobody approved never does.

Real workers, killed by SIGKILL before and after the question is recorded, before and after the approval is, between it
and the beginning of the call, and at every point of the call itself; judged by the outside's own log.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.client import Client

from tests.crash.arena import APPROVED, Arena, arena
from tests.crash.expected import Outcome, expected

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

EXPIRING = "expiring"
DECLINED = Outcome("not_begun: Declined: nobody approved it in time. It was not begun.", (), ())

POINTS = {
    APPROVED: (
        "model.recorded",
        "emit_event.before",
        "emit_event.after",
        "help.answering",
        "tool.before_begun",
        "tool.begun",
        "tool.inside",
        "tool.after_effect",
        "tool.done",
        "tool.before_completion",
        "help.answering,tool.before_begun",
        "help.answering,tool.begun",
    ),
    EXPIRING: ("emit_event.before", "emit_event.after", "help.closing", "emit_event.before,help.closing"),
}
CASES = [(tool, points) for tool, several in POINTS.items() for points in several]


def _case(tool: str, points: str) -> str:
    return f"{points.replace(',', '-')}-{tool}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(server: tuple[str, Client], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    cases = {_case(tool, points): points for tool, points in CASES}
    async with arena(server, tmp_path_factory.mktemp("asking"), cases) as opened:
        yield opened


@pytest.mark.parametrize("points", POINTS[APPROVED])
async def test_an_approved_call_runs_once_wherever_its_worker_dies(place: Arena, points: str) -> None:
    """What a check finds never to have happened begins anew under its next key, with the approval that it has."""
    came = await place.play(_case(APPROVED, points), APPROVED)
    assert came == expected(points.rpartition(",")[2], "checked")


@pytest.mark.parametrize("points", POINTS[EXPIRING])
async def test_a_call_that_nobody_approves_never_runs_wherever_its_worker_dies(place: Arena, points: str) -> None:
    assert await place.play(_case(EXPIRING, points), EXPIRING) == DECLINED
