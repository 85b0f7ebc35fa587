"""A server's "no", which may come after its tool has run: what it means for an effect, and when a call begins anew."""

from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from perdure.core.artifacts import Asks
from perdure.core.errors import BegunError, ToolError
from perdure.core.ports import Check
from perdure.tools.mcp.transports import NOT_SENT
from tests.tools.mcp.scripted import Scripted
from tests.tools.mcp.shop import call

SURE = types.ElicitRequest(params=types.ElicitRequestFormParams(message="Pay 100?", requested_schema={}))
QUESTION = types.InputRequiredResult(input_requests={"sure": SURE}, request_state="s1")
PAID = types.CallToolResult(content=[types.TextContent(text="paid")])
FAILED = types.CallToolResult(content=[types.TextContent(text="no money")], is_error=True)
OUTPUT = MCPError(types.INVALID_PARAMS, "Output validation error")
STATE = MCPError(types.INVALID_PARAMS, "Invalid or expired requestState", {"reason": "invalid_request_state"})


async def test_a_refusal_after_an_answer_is_in_doubt_and_the_answer_is_used_once() -> None:
    server = Scripted(QUESTION, OUTPUT, QUESTION, PAID)
    pay = server.tool()
    asks = await pay.invoke({}, call())
    assert isinstance(asks, Asks)
    with pytest.raises(BegunError, match=r"says that it failed: .* Output validation error"):
        await pay.resume({}, call(attempt=2), asks.kept, "yes")
    assert len(server.sent) == 2, "it may have paid, and was not begun anew"


async def test_a_state_that_is_not_taken_back_begins_the_call_anew() -> None:
    server = Scripted(QUESTION, STATE, QUESTION, PAID)
    pay = server.tool()
    asks = await pay.invoke({}, call())
    assert isinstance(asks, Asks)
    assert await pay.resume({}, call(attempt=2), asks.kept, "yes") == "paid"
    assert len(server.sent) == 4


@pytest.mark.parametrize("said", [OUTPUT, FAILED])
async def test_a_failure_of_a_later_attempt_says_that_an_earlier_one_may_have_taken_effect(said: Any) -> None:
    pay = Scripted(said, said).tool("idempotent")
    earlier = "An earlier attempt of this call may have taken effect."
    with pytest.raises(ToolError) as first:
        await pay.invoke({}, call())
    assert earlier not in str(first.value)
    with pytest.raises(ToolError, match=earlier):
        await pay.invoke({}, call(attempt=2))


async def test_a_refusal_is_taken_at_its_word_where_the_rules_say_so() -> None:
    pay = Scripted(OUTPUT).tool(failed="did_not_happen")
    with pytest.raises(ToolError, match=r"refused it\. It failed: Output validation error"):
        await pay.invoke({}, call())


async def test_a_check_that_is_turned_away_is_asked_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    paused_s: list[float] = []

    async def pause(delay_s: float) -> None:
        paused_s.append(delay_s)

    monkeypatch.setattr("perdure.tools.mcp.mcp_tool.asyncio.sleep", pause)
    busy = MCPError(NOT_SENT, "it answers 429")
    found = types.CallToolResult(content=[], structured_content={"happened": False})
    assert await Scripted(*[busy] * 8, found).tool().check(call()) == Check.not_yet()
    assert paused_s[:3] == [0.2, 0.4, 0.8]
    assert paused_s[6:] == [10.0, 10.0]
