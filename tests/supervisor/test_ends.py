"""Orderly and other ends: of workers one by one, of `perdure worker`, and of the supervisor itself."""

import asyncio
import contextlib
import os
import signal

import pytest

from perdure.core.limits import HEARTBEAT_TIMEOUT_S
from tests.supervisor.fleet import app_of, children_of, commanded, is_gone, state_of, stop, watching
from tests.supervisor.test_deaths import result
from tests.temporal.bench import Bench, rows_of, until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


async def test_a_rolling_restart_in_the_middle_of_once_calls_leaves_nothing_in_doubt(bench: Bench) -> None:
    async with watching(bench, drain_s=20) as watch:
        tasks = [await watch.app.send("once") for _ in range(6)]
        await until(lambda: bench.outside.count("once") == len(tasks))
        before = {child.pid for child in watch.supervisor.workers}
        rolling = asyncio.create_task(watch.supervisor.roll())
        await until(lambda: any(not child.died.done() and child.asked for child in watch.supervisor.workers))
        watch.go()
        for task in tasks:
            assert await result(task) == "ok: once done"
        async with asyncio.timeout(60):
            await rolling
        assert not before & {child.pid for child in watch.supervisor.workers}
        assert len(watch.supervisor.workers) == 4
        for task in tasks:
            stored = await bench.sound(task, watch.app.store)
            assert rows_of(stored, "tool.in_doubt") == []
            assert rows_of(stored, "tool.failed") == []
    assert bench.outside.count("once") == bench.outside.count("once.end") == len(tasks)
    codes = {change.code for change in watch.changes if change.kind == "died"}
    # Not `== {0}`: an interpreter may abort on its way out, after all was done; being killed would say that it was not.
    assert -signal.SIGKILL not in codes, "a worker did not end within its drain"


async def test_what_is_wrong_since_the_workers_started_ends_none_that_works(bench: Bench) -> None:
    """A source of tools that is down or has changed keeps a replacement from starting, and nobody from working."""
    async with watching(bench) as watch:
        ended = asyncio.create_task(watch.supervisor.watch())
        (bench.home / "broken").touch()
        os.kill(watch.supervisor.workers[0].pid, signal.SIGKILL)
        await until(lambda: any("refuses its agent" in each.text for each in watch.changes))
        task = await watch.app.send("once")
        watch.go()
        assert await result(task) == "ok: once done"
        assert not ended.done()
        (bench.home / "broken").unlink()
        await until(lambda: len(watch.supervisor.workers) == 4)
        ended.cancel()


async def test_sigterm_drains_and_counts_no_crash(bench: Bench) -> None:
    """A14, B3: begun calls end within the drain; what did not is resumed, and nobody's crash."""
    async with app_of(bench) as app:
        async with commanded(bench, "--drain", "20") as command:
            task = await app.send("once")
            await until(lambda: bench.outside.count("once") == 1)
            command.terminate()
            (bench.home / "open").touch()
            assert await command.wait() == 128 + signal.SIGTERM
        (bench.home / "open").unlink()
        async with commanded(bench, "--drain", "0.1", "--processes", "2") as command:
            assert await result(task) == "ok: once done"
            cut = await app.send("held")
            await until(lambda: bench.outside.count("held") == 1)
            command.terminate()
            assert await command.wait() == 128 + signal.SIGTERM
        (bench.home / "open").touch()
        async with commanded(bench):
            assert await result(cut) == "ok: held done"
            stored = await bench.sound(task, app.store)
            resumed = await bench.sound(cut, app.store)
            state = await bench.tasks.state(cut.id)
    assert rows_of(stored, "tool.in_doubt") == rows_of(stored, "tool.failed") == []
    # A second one where the next attempt was handed to a worker that was about to end as well.
    assert {row.data["failure"] for row in rows_of(resumed, "tool.failed")} == {"shutdown"}
    assert (state.crashes, state.shared_deaths) == (0, 0)


async def test_a_killed_supervisor_takes_everything_along_and_the_next_start_resumes(bench: Bench) -> None:
    """Its children, one of them stopped, and the subprocesses of their tools."""
    async with app_of(bench) as app:
        async with commanded(bench) as command:
            task = await app.send("spawning")
            await until(lambda: bench.outside.count("spawning") == 1)
            await until(lambda: len(children_of(command.pid)) >= 6)  # the nursery, four workers, what the tool started
            family = children_of(command.pid)
            stop(bench.outside.of("spawning")[0].pid)
            command.kill()
            await command.wait()
            await until(lambda: all(is_gone(pid) for pid in family))
        (bench.home / "open").touch()
        async with commanded(bench):
            async with asyncio.timeout(HEARTBEAT_TIMEOUT_S / 2):  # the roster names the dead; no timeout is waited for
                assert await task.result() == "ok: spawning done"
            stored = await bench.sound(task, app.store)
            state = await bench.tasks.state(task.id)
    assert bench.outside.count("spawning") == 2
    assert [row.data["failure"] for row in rows_of(stored, "tool.failed")] == ["worker_lost"]
    assert (state.crashes, state.shared_deaths) == (0, 0)


async def test_with_the_nursery_killed_too_the_leash_ends_the_workers(bench: Bench) -> None:
    async with app_of(bench) as app, commanded(bench) as command:
        await app.send("spawning")
        await until(lambda: bench.outside.count("spawning") == 1)
        await until(lambda: len(children_of(command.pid)) >= 6)
        family = children_of(command.pid)
        command.send_signal(signal.SIGSTOP)  # it shall not act on its nursery's death
        with contextlib.suppress(ProcessLookupError):
            os.kill(family[0], signal.SIGKILL)
        command.kill()
        await command.wait()
        await until(lambda: all(is_gone(pid) for pid in family))
        assert state_of(command.pid) in {"", "Z"}
