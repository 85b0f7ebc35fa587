"""Several processes on one store: races that one wins, kills that lose nothing that was acknowledged (P1, P3)."""

import asyncio
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import pytest

from perdure.store import open_store
from tests.store.building import batch, header, numbers, row, tool_entry

pytestmark = pytest.mark.slow  # real processes, or all forty conversations at once

WITHIN_S = 60
ROOT = Path(__file__).parents[2]


async def _start(url: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.store.racer", url, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )


async def _line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(WITHIN_S):
        return (await process.stdout.readline()).decode().strip()


async def test_of_two_processes_exactly_one_begins_a_once_call(store_url: str) -> None:
    keys = 40
    racers = [await _start(store_url, "begin", f"racer-{n}", str(keys)) for n in range(2)]
    assert [await _line(racer) for racer in racers] == ["ready", "ready"]
    store = await open_store(store_url)
    await store.write(batch("raced", row(1), header=header("raced")), 100)
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
    verdicts = [(await _line(racer)).split(",") for racer in racers]
    async with asyncio.timeout(WITHIN_S):
        assert [await racer.wait() for racer in racers] == [0, 0]
    for pair in zip(*verdicts, strict=True):
        assert Counter(pair) == Counter({"begin": 1, "in_doubt": 1})
    effects = await store.effects("raced")
    assert [len(effect.begun) for effect in effects] == [1] * keys
    await store.close()


async def test_what_was_acknowledged_survives_sigkill(store_url: str) -> None:
    acknowledged: list[int] = []
    for more in (3, 17, 8, 25):
        writer = await _start(store_url, "write", "killed")
        for _ in range(more):
            acknowledged.append(int(await _line(writer)))
        writer.kill()
        assert writer.stdout is not None
        acknowledged += [int(number) for number in (await writer.stdout.read()).split()]
        await writer.wait()
    if store_url.startswith("sqlite"):
        with sqlite3.connect(store_url.removeprefix("sqlite:///")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
    store = await open_store(store_url)
    kept = await numbers(store, "killed")
    assert kept == list(range(1, len(kept) + 1))
    assert set(acknowledged) <= set(kept)
    (last,) = await store.events_after("killed", len(kept) - 1, 1)
    transcript = await store.read_transcript("killed", len(kept), last.event.entries[0].chain)
    assert transcript == tuple(tool_entry(f"result {number}") for number in kept)
    effects = await store.effects("killed")
    # A row is kept with the `begun` that it travelled with; only a killed call can be without an outcome.
    assert [effect.turn for effect in effects] == kept
    assert {effect.turn for effect in effects if effect.outcome == "open"}.isdisjoint(acknowledged)
    assert len(kept) - len(acknowledged) <= 4
    await store.close()


async def test_a_process_that_leaves_takes_nothing_from_one_that_stays(store_url: str) -> None:
    """A second store that closed in this process must not have let go of the first one's hold on the file."""
    staying = await open_store(store_url)
    await staying.write(batch("raced", row(1), header=header("raced")), 100)
    await (await open_store(store_url)).close()
    for keys in (1, 2):
        leaving = await _start(store_url, "begin", "leaving", str(keys))
        assert await _line(leaving) == "ready"
        assert leaving.stdin is not None
        leaving.stdin.write(b"go\n")
        async with asyncio.timeout(WITHIN_S):
            assert await leaving.wait() == 0
        assert len(await staying.effects("raced")) == keys
    await staying.close()
