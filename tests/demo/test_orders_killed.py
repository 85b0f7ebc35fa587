"""The demo's orders server killed around each call, and its worker at each fault point: one effect, by the world's log.

What is asked for twice under one key the world applies once. But a new key is a new call for it, and a second
replacement is shipped: that is what must not happen.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from perdure import App
from perdure.app.faults import once_paths
from perdure.app.judging import broken_promises
from perdure.app.supervisor import Fleet, supervised
from perdure.cli.demo.world import World, tracking_number
from perdure.core.faults import POINTS, read_faults
from tests.crash.expected import UNKNOWN
from tests.demo.orders_agent import TOOLS, orders_agent
from tests.temporal.bench import Bench, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

ROOT = Path(__file__).parents[2]
WITHIN_S = 90.0
BLIND = "applied_blind"
MOMENTS = ("before", "applied", "answered")
WORKER_POINTS = tuple(
    point
    for point in POINTS
    if point.startswith(("tool.", "model.", "run.", "intake.", "persist."))
    and point not in {"tool.checked", "tool.key_closed", "tool.asked"}
)
"""Every point that a task with one call comes to by itself."""


@dataclass(frozen=True)
class Seen:
    """What the world's log shows of a task's call, in order, and what the answer was."""

    answer: str
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Shop:
    """Workers over one world; `died` has the file of each case's fault."""

    bench: Bench
    app: App
    world: World
    died: dict[str, Path]

    async def play(self, case: str, server: str, tool: str) -> Seen:
        task = await self.app.send(f"{server} {tool}", task_id=self.task_of(case))
        async with asyncio.timeout(WITHIN_S):
            answer = await task.result()
        if case in self.died:
            await until(self.died[case].exists)
        events = [found async for found in task.events()]
        assert broken_promises(events, await self.app.store.effects(task.id)) == ()
        await self.bench.sound(task, self.app.store)
        calls = [each for each in self.world.calls() if each.key.startswith(f"{task.id}/")]
        if tool == "ship_replacement":
            applied = [each for each in calls if each.outcome == "applied"]
            shipped = [row["tracking_number"] for row in self.world.snapshot()["shipments"]]
            assert len(applied) <= 1, "P3: a second replacement"
            for each in applied:
                assert shipped.count(tracking_number(each.key)) == 1
                assert answer.startswith(UNKNOWN) or answer == f"ok: {tracking_number(each.key)}"
        return Seen(answer.partition(":")[0], tuple(each.outcome for each in calls))

    def task_of(self, case: str) -> str:
        return f"{self.bench.queue}-{case}"


@contextlib.asynccontextmanager
async def shop(
    server: tuple[str, Client], home: Path, servers: Sequence[str], cases: dict[str, str]
) -> AsyncIterator[Shop]:
    """Give supervised workers with these servers, which die themselves at these points: by a case's name."""
    address, client = server
    bench = Bench(address, home, client)
    world = World.create(home / "world.db", date(2031, 3, 12))
    for name in servers:
        (home / name).mkdir()
    fault = ",".join(f"{point}:{bench.queue}-{case}" for case, point in cases.items())
    environment = {
        "PERDURE_HOME": str(home),
        "PERDURE_TEST_AGENT": bench.queue,
        "PERDURE_TEST_SERVERS": ",".join(servers),
        "PERDURE_STORE_URL": bench.settings.store_url,
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_TLS": "false",
        "PERDURE_FAULT": fault,
        "PERDURE_FAULT_ONCE": str(home / "died"),
    }
    died = dict(zip(cases, once_paths(home / "died", read_faults(fault)), strict=True)) if cases else {}
    fleet = Fleet("tests.demo.orders_agent:agent", bench.queue, ROOT, home / "workers.log", environment, 1, 0.1)
    app = bench.app(orders_agent(bench.queue, home, servers), worker=False)
    async with app as opened, supervised(fleet, client, lambda change: None) as supervisor:
        watching = asyncio.create_task(supervisor.watch())
        try:
            yield Shop(bench, opened, world, died)
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching


# --- the server dies --------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def dying(server: tuple[str, Client], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    async with shop(server, tmp_path_factory.mktemp("dying"), (*MOMENTS, BLIND), {}) as opened:
        yield opened


DIES = {
    ("before", "list_open_orders"): Seen("ok", ("answered",)),
    ("before", "get_order"): Seen("ok", ("answered",)),
    # The check found nothing and closed the key; the call began anew under the next.
    ("before", "ship_replacement"): Seen("ok", ("closed", "applied")),
    ("applied", "list_open_orders"): Seen("ok", ("answered", "answered")),
    ("applied", "get_order"): Seen("ok", ("answered", "answered")),
    # The check found it.
    ("applied", "ship_replacement"): Seen("ok", ("applied",)),
    (BLIND, "ship_replacement"): Seen("unknown", ("applied",)),
    ("answered", "list_open_orders"): Seen("ok", ("answered",)),
    ("answered", "get_order"): Seen("ok", ("answered",)),
    ("answered", "ship_replacement"): Seen("ok", ("applied",)),
}


@pytest.mark.parametrize(("name", "tool"), DIES)
async def test_p3_an_orders_server_killed_around_a_call_makes_no_second_effect(
    dying: Shop, name: str, tool: str
) -> None:
    assert await dying.play(f"{name}-{tool}", name, tool) == DIES[name, tool]
    assert (dying.bench.home / name / f"{name.partition('_')[0]}:{tool}").exists(), "it was not killed there"


# --- its worker dies --------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def working(server: tuple[str, Client], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    cases = {f"{point}-{tool}": point for point in WORKER_POINTS for tool in TOOLS}
    async with shop(server, tmp_path_factory.mktemp("working"), ("plain",), cases) as opened:
        yield opened


def _points() -> list[object]:
    """Return the points; those away from the tool's call are the same for any tool, and are for the full tests."""
    return [
        pytest.param(point, marks=[] if point.startswith("tool.") else [pytest.mark.full]) for point in WORKER_POINTS
    ]


def worker_killed(point: str, tool: str) -> tuple[Seen, ...]:
    """Return what may come of it: where the request is on its way, the server may have it or not."""
    plain = ("applied",) if tool == "ship_replacement" else ("answered",)
    match point, tool:
        case "tool.begun", "ship_replacement":
            return (Seen("ok", ("closed", "applied")),)
        case "tool.inside", "ship_replacement":
            return (Seen("ok", ("closed", "applied")), Seen("ok", plain))
        case "tool.inside", _:
            return (Seen("ok", plain), Seen("ok", plain * 2))
        case "tool.after_effect", ("list_open_orders" | "get_order"):
            return (Seen("ok", plain * 2),)
        case _:
            return (Seen("ok", plain),)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("point", _points())
async def test_p3_a_worker_killed_around_a_call_to_a_server_makes_no_second_effect(
    working: Shop, point: str, tool: str
) -> None:
    assert await working.play(f"{point}-{tool}", "plain", tool) in worker_killed(point, tool)
