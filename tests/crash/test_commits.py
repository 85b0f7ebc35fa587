"""A worker killed after its first commit, its second, its third…: whatever was just recorded, everything holds."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client

from perdure.app.judging import broken_promises
from tests.crash import acting
from tests.crash.arena import WITHIN_S
from tests.crash.expected import UNKNOWN, Outcome, seen
from tests.crash.fleet import fleet
from tests.crash.world import World
from tests.temporal.bench import Bench

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

COMMITS_MAX = 10
COMMITS_MIN = 8
"""What a task with one call writes: its message, two turns of two rows each, the call's two, and the end."""

AT_ONCE = 4
DONE = Outcome("ok: changed", (1,), (1,))


async def test_killed_after_every_commit(server: tuple[str, Client], tmp_path: Path) -> None:
    """P1 to P6 and R14 with the least forgiving tool: `once`, without a check."""
    lanes = asyncio.Semaphore(AT_ONCE)

    async def killed_after(nth: int) -> Outcome | None:
        async with lanes:
            home = tmp_path / str(nth)
            home.mkdir()
            return await _killed_after(Bench(server[0], home, server[1]), nth)

    found = await asyncio.gather(*(killed_after(nth) for nth in range(1, COMMITS_MAX + 1)))
    killed = [outcome for outcome in found if outcome is not None]
    assert len(killed) >= COMMITS_MIN
    assert found[len(killed) :] == [None] * (COMMITS_MAX - len(killed))
    # One of the commits is `begun`, after which nobody can know; after every other one it is as if nobody had died.
    assert killed.count(Outcome(UNKNOWN, (), ())) == 1
    assert killed.count(DONE) == len(killed) - 1


async def _killed_after(bench: Bench, nth: int) -> Outcome | None:
    """Return what came of a task whose first worker died after so many commits; None where it made fewer."""
    fault = f"store.committed@{nth}"
    agent = bench.agent(tools=acting.agent.known_tools, model_heartbeat_timeout_s=acting.HEARTBEAT_S)
    async with bench.app(agent, worker=False) as app, fleet(bench, fault, standby=False) as workers:
        task = await app.send("unchecked")
        async with asyncio.timeout(WITHIN_S):
            answer = await task.result()
        events = [found async for found in task.events()]
        assert broken_promises(events, await app.store.effects(task.id)) == ()
        await bench.sound(task, app.store)
    outcome = seen(World(bench.home / "world.db"), task.id, answer)
    return None if workers.not_fired() else outcome
