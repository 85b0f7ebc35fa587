"""Workers and a service that die in the middle of HTTP calls, judged by the service's own log (P3, P4)."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client

from perdure import App, Task
from perdure.app.faults import once_paths
from perdure.app.judging import broken_promises
from perdure.app.supervisor import Fleet, supervised
from perdure.core.faults import read_faults
from tests.crash.expected import UNKNOWN, Outcome
from tests.temporal.bench import Bench, event, until
from tests.tools.http.acting import acting
from tests.tools.http.running import Service, running

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

ROOT = Path(__file__).parents[3]
WITHIN_S = 60.0

CALLS = {"read": "get_order", "idempotent": "put_order", "checked": "refund", "unchecked": "pay"}
POINTS = ("tool.before_begun", "tool.begun", "tool.inside", "tool.after_effect", "tool.done", "tool.before_completion")
"""`tool.inside` is here the moment at which the tool looks for its connection: nothing was sent."""


class Place:
    """Workers that die of their faults, and a service that is started again whenever it died."""

    def __init__(self, bench: Bench, app: App, service: Service, faults: dict[str, Path]) -> None:
        self._bench = bench
        self._app = app
        self._service = service
        self._faults = faults

    async def play(self, case: str, effect: str, trouble: str = "") -> Outcome:
        """Run one case to its end, and return what the service's log and the answer show."""
        task = await self.send(case, effect, trouble)
        return await self.outcome(task, case)

    async def send(self, case: str, effect: str, trouble: str = "") -> Task:
        task_id = self.task_of(case)
        return await self._app.send(f"{CALLS[effect]} {task_id} {trouble}".strip(), task_id=task_id)

    async def outcome(self, task: Task, case: str) -> Outcome:
        async with asyncio.timeout(WITHIN_S):
            answer = await task.result()
        if case in self._faults:
            await until(self._faults[case].exists)
        events = [found async for found in task.events()]
        assert broken_promises(events, await self._app.store.effects(task.id)) == ()
        await self._bench.sound(task, self._app.store)
        return Outcome(
            UNKNOWN if answer.startswith(UNKNOWN) else answer.partition(":")[0],
            tuple(self._generation(line["key"], task.id) for line in self.arrivals(task)),
            tuple(self._generation(key, task.id) for key in self._service.effects if key.startswith(f"{task.id}/")),
        )

    def arrivals(self, task: Task) -> list[dict[str, str]]:
        """Return the requests of the task's call; what its check asked is none."""
        return [
            line
            for line in self._service.requests
            if not line["path"].endswith("/closed") and task.id in line["path"] + line["body"]
        ]

    async def worker_of(self, task: Task) -> int:
        """Return the process that has the task's call in hand."""
        effects = await self._app.store.effects(task.id)
        return int(effects[0].begun[-1].worker.partition("@")[0])

    def task_of(self, case: str) -> str:
        return f"{self._bench.queue}-{case}"

    @staticmethod
    def _generation(key: str, task_id: str) -> int:
        first = f"{task_id}/1/0"
        return 1 if key in {"", first} else int(key.removeprefix(f"{first}/"))


@contextlib.asynccontextmanager
async def kept_alive(service: Service) -> AsyncIterator[None]:
    """Start the service again whenever it has died."""

    async def keep() -> None:
        while True:
            await asyncio.to_thread(service.wait_dead)
            service.start()

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        service.kill()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(server: tuple[str, Client], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    home = tmp_path_factory.mktemp("http-crashes")
    address, client = server
    bench = Bench(address, home, client)
    cases = {f"{point}-{effect}": point for point in POINTS for effect in CALLS}
    fault = ",".join(f"{point}:{bench.queue}-{case}" for case, point in cases.items())
    paths = dict(zip(cases, once_paths(home / "died", read_faults(fault)), strict=True))
    with running(home) as service:
        environment = {
            "PERDURE_HOME": str(home),
            "PERDURE_TEST_AGENT": bench.queue,
            "PERDURE_TEST_SERVICE": service.url,
            "PERDURE_STORE_URL": bench.settings.store_url,
            "TEMPORAL_ADDRESS": address,
            "TEMPORAL_TLS": "false",
            "PERDURE_FAULT": fault,
            "PERDURE_FAULT_ONCE": str(home / "died"),
        }
        fleet = Fleet("tests.tools.http.acting:agent", bench.queue, ROOT, home / "workers.log", environment, 1, 0.1)
        app = bench.app(acting(bench.queue, service.url), worker=False)
        async with app as opened, supervised(fleet, client, lambda change: None) as supervisor, kept_alive(service):
            watching = asyncio.create_task(supervisor.watch())
            try:
                yield Place(bench, opened, service, paths)
            finally:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching


def killed_worker(point: str, effect: str) -> Outcome:
    """Say what must have come of a call whose worker was killed at that point."""
    written = () if effect == "read" else (1,)
    match point, effect:
        case (("tool.begun" | "tool.inside"), "checked"):
            return Outcome("ok", (2,), (2,))  # the check closed the key; the call began anew under the next
        case (("tool.begun" | "tool.inside"), "unchecked"):
            return Outcome(UNKNOWN, (), ())  # it was never sent, and nobody can know that
        case "tool.after_effect", ("read" | "idempotent"):
            return Outcome("ok", (1, 1), written)
        case "tool.after_effect", "unchecked":
            return Outcome(UNKNOWN, (1,), (1,))
        case _:
            return Outcome("ok", (1,), written)


@pytest.mark.parametrize("effect", CALLS)
@pytest.mark.parametrize("point", POINTS)
async def test_p3_a_worker_killed_around_a_request_makes_no_second_effect(
    place: Place, point: str, effect: str
) -> None:
    assert await place.play(f"{point}-{effect}", effect) == killed_worker(point, effect)


SERVICE_DIES = {
    ("die-before", "read"): Outcome("ok", (1, 1), ()),
    ("die-before", "idempotent"): Outcome("ok", (1, 1), (1,)),
    ("die-before", "checked"): Outcome("ok", (1, 2), (2,)),
    ("die-before", "unchecked"): Outcome(UNKNOWN, (1,), ()),
    ("die-after", "idempotent"): Outcome("ok", (1, 1), (1,)),
    ("die-after", "checked"): Outcome("ok", (1,), (1,)),
    ("die-after", "unchecked"): Outcome(UNKNOWN, (1,), (1,)),
}
"""What must come of a call whose service dies before or after its effect."""


@pytest.mark.parametrize(("trouble", "effect"), SERVICE_DIES)
async def test_p4_a_service_that_dies_in_a_request_is_asked_or_nobody_knows(
    place: Place, trouble: str, effect: str
) -> None:
    assert await place.play(f"{trouble}-{effect}", effect, trouble) == SERVICE_DIES[trouble, effect]


HELD = {
    "idempotent": Outcome("ok", (1, 1), (1,)),
    "checked": Outcome("ok", (1,), (1,)),
    "unchecked": Outcome(UNKNOWN, (1,), (1,)),
}
"""What must come of a call whose worker is killed after the effect, while it waits for the answer."""


@pytest.mark.parametrize("effect", HELD)
async def test_p3_a_worker_killed_while_it_waits_for_an_answer_makes_no_second_effect(
    place: Place, effect: str
) -> None:
    case = f"hold-{effect}"
    task = await place.send(case, effect, "hold")
    await event(task, "tool.started")
    await until(lambda: any(place.arrivals(task)))
    await until(lambda: any(key.startswith(task.id) for key in place._service.effects))
    os.kill(await place.worker_of(task), signal.SIGKILL)
    assert await place.outcome(task, case) == HELD[effect]
