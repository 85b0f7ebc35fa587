"""What a server says of its work: it stands in the log of the task that it is about, or in none."""

import asyncio
from collections.abc import Awaitable, Callable

import mcp_types as types
import pytest

from perdure.core.mcp_limits import MCP_CUT_OFF_S
from perdure.core.tool_rules import ToolRules
from perdure.tools import notes
from perdure.tools.environment import Environment
from perdure.tools.mcp.mcp_tool import McpTool
from perdure.tools.mcp.reading import ReadResource
from tests.tools.mcp.scripted import Scripted
from tests.tools.mcp.shop import call

DONE = types.CallToolResult(content=[types.TextContent(text="done")])
READ = types.ReadResourceResult(contents=[types.TextResourceContents(uri="shop://a", text="x")])


class Held:
    """An answer that comes when a test says so."""

    def __init__(self, answer: types.Result) -> None:
        self._answer = answer
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self) -> types.Result:
        self.asked.set()
        await self.let_go.wait()
        return self._answer


async def noted(doing: Callable[[], Awaitable[object]]) -> tuple[str, ...]:
    said = notes.Notes()
    notes.take(said)
    await doing()
    return said.latest


def calling(tool: McpTool) -> "asyncio.Task[tuple[str, ...]]":
    return asyncio.create_task(noted(lambda: tool.invoke({}, call())))


async def test_a_word_goes_to_the_one_call_under_way() -> None:
    held = Held(DONE)
    server = Scripted(held)
    working = calling(server.tool())
    await held.asked.wait()
    server.live.heard("info: half")
    held.let_go.set()
    assert await working == ("info: half",)


async def test_a_word_while_another_task_reads_is_in_no_log() -> None:
    held, read = Held(DONE), Held(READ)
    server = Scripted(held, read)
    reader = ReadResource(server.connection, Environment(), ToolRules(), "", {"type": "object"})
    working = calling(server.tool())
    await held.asked.wait()
    reading = asyncio.create_task(reader.invoke({"uri": "shop://a"}, call()))
    await read.asked.wait()
    server.live.heard("info: opening the file of another")
    read.let_go.set()
    await reading
    server.live.heard("info: on with the work")
    held.let_go.set()
    assert await working == ("info: on with the work",)


async def test_a_word_after_another_call_was_cut_off_is_in_no_log_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, ahead_s = asyncio.get_running_loop(), 0.0
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + ahead_s)
    cut, held = Held(DONE), Held(DONE)
    server = Scripted(cut, held)
    stopped = calling(server.tool())
    await cut.asked.wait()
    stopped.cancel()
    await asyncio.wait({stopped})
    working = calling(server.tool())
    await held.asked.wait()
    server.live.heard("info: still at what was cut off")
    ahead_s = MCP_CUT_OFF_S
    over = asyncio.Event()
    loop.call_later(0.0, over.set)  # timers end in the order of their times: the period has ended first
    await over.wait()
    server.live.heard("info: on with the work")
    held.let_go.set()
    assert await working == ("info: on with the work",)
