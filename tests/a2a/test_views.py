"""Tasks that a server remembers: the same at every event as when they are read anew, and not without bound."""

import pytest

from perdure import tool
from perdure.a2a.caller import Caller
from perdure.a2a.tasks import TaskReader
from perdure.core import limits
from perdure.testing import call, say
from tests.temporal.bench import Bench, ended

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "found"


async def test_what_is_remembered_is_what_is_read_anew(bench: Bench) -> None:
    steps = [call("look", text=f"Let me look, {number}.") for number in range(3)]
    async with bench.app(bench.agent(*steps, say("done"), tools=[look])) as app:
        task = await app.send("go")
        last = (await ended(task)).number
        reader = TaskReader(app)
        found = await reader.find(task.id, Caller())
        for number in (*range(last + 1), *range(last, -1, -1), None):
            view = await reader.view(found, number)
            anew = await TaskReader(app).view(found, number)
            assert view.number == anew.number == (last if number is None else number)
            assert await reader.task(view) == await reader.task(anew)
            assert (view.state, view.calling) == (anew.state, anew.calling)


async def test_a_view_that_goes_on_changes_none_that_is_remembered(bench: Bench) -> None:
    async with bench.app(bench.agent(say("done"))) as app:
        task = await app.send("go")
        last = (await ended(task)).number
        reader = TaskReader(app)
        found = await reader.find(task.id, Caller())
        view = await reader.view(found, 2)
        for stored in await app.store.events_after(task.id, 2, last):
            view.take(stored)
        again = await reader.view(found, 2)
        assert await reader.task(again) == await reader.task(await TaskReader(app).view(found, 2))


async def test_old_views_make_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VIEWS_KEPT_MAX", 2)
    async with bench.app(bench.agent(say("done"))) as app:
        reader, last = TaskReader(app), 0
        for _ in range(4):
            task = await app.send("go")
            last = (await ended(task)).number
            await reader.view(await reader.find(task.id, Caller()))
        kept = reader._views
        assert (len(kept._kept), kept._events) == (2, 2 * last)
        monkeypatch.setattr(limits, "VIEWS_KEPT_EVENTS_MAX", 1)
        task = await app.send("go")
        await ended(task)
        await reader.view(await reader.find(task.id, Caller()))
        assert (list(kept._kept), kept._events) == ([task.id], last)
