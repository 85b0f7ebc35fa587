"""The agent of the tests that kill workers, as a worker process loads it: `tests.tools.mcp.acting:agent`.

A task's first message names the tool of the shop that it calls, once.
"""

import os
from pathlib import Path

from pydantic import JsonValue

from perdure import Agent, RetryPolicy, ToolRules
from perdure.core.content import Entry, ToolEntry, UserEntry
from perdure.testing import call, replies, say, scripted
from perdure.testing.script import Step
from tests.tools.mcp.shop import Shop

ARGUMENTS: dict[str, dict[str, JsonValue]] = {
    "put": {"name": "a", "value": 1},
    "refund": {"order_id": "A"},
    "send_back": {"order_id": "A"},
}
FAST = RetryPolicy(attempts_max=3, first_ms=20, factor=1.0)
RULES = {"refund": ToolRules(check="find_refund", settle_s=0), "*": ToolRules(retry=FAST)}


def script(transcript: tuple[Entry, ...]) -> Step:
    first = transcript[0]
    if not replies(transcript):
        tool = first.message.text if isinstance(first, UserEntry) else ""
        return call(f"shop.{tool}", ARGUMENTS[tool])
    results = [entry.result for entry in transcript if isinstance(entry, ToolEntry)]
    return say(" | ".join(f"{result.status}: {result.text}" for result in results))


shop = Shop(Path(os.environ.get("PERDURE_TEST_SHOP", "/nonexistent")))
agent = Agent("clerk", model=scripted(script, script, script), tools=[shop.server(rules=RULES)])
