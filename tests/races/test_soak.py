"""Minutes of everything at once: no message lost, doubled or out of order, no second effect, no call after a stop."""

import asyncio
import contextlib
import itertools
import os
import random
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest

from perdure import Settings, open_app
from perdure.app.supervisor import Change, Fleet, supervised
from perdure.temporal.connection import temporal_client
from perdure.temporal.embedded import EmbeddedTemporal, find_record
from perdure.temporal.settings import RemoteSettings
from tests.a2a.house import free_port
from tests.crash.world import TABLES
from tests.kept import keep
from tests.races import known, soaking
from tests.races.breaking import AT_REST, BROKEN, GUARD
from tests.races.checker import Verdict, judge
from tests.races.doors import FrontDoor, PythonDoor
from tests.races.notes import Notes
from tests.races.soak import Soak, Victim, served, worker_of
from tests.races.subscribing import Subscriber
from tests.races.without import MARK
from tests.supervisor.fleet import FOLDER

pytestmark = pytest.mark.slow

FULL = os.environ.get("PERDURE_TEST_FULL") == "1"
TASKS = int(os.environ.get("PERDURE_TEST_SOAK_TASKS", "30" if FULL else "8"))
FOR_S = float(os.environ.get("PERDURE_TEST_SOAK_S", "300" if FULL else "16"))
SEEDS = tuple(int(seed) for seed in os.environ.get("PERDURE_TEST_SOAK_SEEDS", "1 2 3" if FULL else "1").split())
REFERENCE = "tests.races.soaking:agent"
SERVER_SHARE, TEMPORAL_SHARE = 0.2, 0.1
"""Of the deaths: the front door's, and Temporal's. The rest are workers'."""

SERVER_DEATH = 2
"""This death is the front door's in any case: however short a soak is, its streams are begun again."""

BREAKS_WITHIN_S = 60.0
"""Until what is taken out has shown; the rarest takes a stop in the middle of a call, seconds to half a minute."""

SOON_S = 30.0
"""How long is waited there for what nothing wakes."""

SUBSCRIBED = 2
"""Tasks that are followed over the wire too."""

TRIED = (
    *("sends ok", "steers ok", "withdraws ok", "stops ok", "decides ok", "streams"),
    *("stops that could be judged", "stops judged for long", "streams begun again"),
)


@pytest.mark.parametrize("seed", SEEDS)
async def test_whoever_talks_to_it_while_it_is_killed_finds_every_promise_kept(tmp_path: Path, seed: int) -> None:
    clients = Notes(tmp_path / "clients.jsonl")
    async with soaked(tmp_path, clients, seed, [f"t-soak-{number}" for number in range(TASKS)]) as soak:
        await soak.run(FOR_S)
    verdict, counts = judged(soak)
    print(f"seed {seed}: {len(soak.killed)} deaths, {counts}")
    keep(f"soak-{seed}", {"seed": seed, "for_s": FOR_S, "deaths": soak.killed, **counts, "broken": verdict.broken})
    assert verdict.broken == [], f"seed {seed}: {tmp_path}"
    assert soak.killed
    for what in TRIED:
        assert counts.get(what, 0) > 0, f"seed {seed}: nothing was tried: {what}"


def judged(soak: Soak) -> tuple[Verdict, dict[str, int]]:
    """Return the verdict, and its counts with that of the effects."""
    with contextlib.closing(sqlite3.connect(soak.outside.path.with_name("world.db"))) as world:
        world.executescript(TABLES)
        effects = world.execute("SELECT tool, key FROM effects ORDER BY place").fetchall()
    verdict = judge(soak.clients.all(), soak.outside.all(), effects)
    return verdict, {**verdict.counts, "effects": len(effects)}


@pytest.mark.full
async def test_without_its_rules_the_soak_finds_each_broken_and_whole_tasks_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "TOLD_WITHIN_S", SOON_S)
    clients = Notes(tmp_path / "clients.jsonl")
    broken = {f"t-soak-{number}{MARK}{name}": words for number, (name, (_, words)) in enumerate(BROKEN.items())}
    whole = [f"t-soak-whole-{number}" for number in range(2)]
    async with soaked(tmp_path, clients, 1, [*broken, *whole], **{GUARD: "1"}) as soak:

        def missing() -> set[str]:
            told = judged(soak)[0].broken
            return {
                words
                for task, words in broken.items()
                if not any(each.startswith(task + ": " + words) for each in told)
            }

        await soak.run(BREAKS_WITHIN_S, lambda: missing() <= AT_REST)
    assert missing() == set()
    assert [each for each in judged(soak)[0].broken if each.startswith("t-soak-whole-")] == []


@contextlib.asynccontextmanager
async def soaked(home: Path, clients: Notes, seed: int, tasks: Sequence[str], **options: str) -> AsyncIterator[Soak]:
    """Give a soak over a Temporal, workers and a front door that can each be killed. `options` are for the workers."""
    database = home / "temporal.db"
    async with await EmbeddedTemporal.start(database) as temporal:
        url = f"sqlite:///{home / 'store.db'}"
        settings = Settings(home=home, temporal=RemoteSettings(address=temporal.address, tls=False), store_url=url)
        environment = {
            "PERDURE_HOME": str(home),
            "PERDURE_TEST_PLACE": str(home),
            "PERDURE_STORE_URL": url,
            "TEMPORAL_ADDRESS": temporal.address,
            "TEMPORAL_TLS": "false",
            **options,
        }
        changes, port = list[Change](), free_port()
        fleet = Fleet(REFERENCE, soaking.agent.id, FOLDER, home / "workers.log", environment, processes=1, drain_s=0.1)
        words = (
            *(sys.executable, "-m", "perdure.cli.main", "serve", REFERENCE),
            *("--port", str(port), "--no-worker"),
        )
        async with contextlib.AsyncExitStack() as stack:
            app = await stack.enter_async_context(open_app(soaking.agent, settings=settings, worker=False))
            client = await stack.enter_async_context(temporal_client(settings.temporal))
            supervisor = await stack.enter_async_context(supervised(fleet, client, changes.append))
            server = await stack.enter_async_context(served(words, {**os.environ, **environment}, home / "server.log"))
            front = await stack.enter_async_context(httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}"))
            await answers(front, home / "server.log")

            deaths = itertools.count(1)

            async def victims(dice: random.Random) -> Victim | None:
                share = dice.random()
                if next(deaths) == SERVER_DEATH or share < SERVER_SHARE:
                    return None if server.pid is None else Victim("server", server.pid)
                if FULL and share < SERVER_SHARE + TEMPORAL_SHARE:
                    record = find_record(database)
                    if record is None or record.server_pid is None:
                        return None
                    return Victim("temporal", record.server_pid)
                return worker_of(supervisor, dice)

            doors = (PythonDoor(app), FrontDoor(front))
            subscribers = [Subscriber(front, task) for task in tasks[:SUBSCRIBED]]
            yield Soak(app, doors, subscribers, clients, Notes(home / "outside.jsonl"), seed, tuple(tasks), victims)


async def answers(front: httpx.AsyncClient, log: Path) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx.TransportError):
            if (await front.get("/.well-known/agent-card.json")).status_code == 200:
                return
        await asyncio.sleep(0.1)
    raise AssertionError(f"the server does not answer: {log}")
