"""An agent over the demo's orders server, as a worker process loads it: `tests.demo.orders_agent:agent`.

A task's first message names a server and its tool. Each name in `PERDURE_TEST_SERVERS` is a server of its own: one
named after a moment dies there, once for each tool; one whose name ends with `_blind` has no check.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from perdure import Agent, McpServer, RetryPolicy
from perdure.cli.demo.servers import dying
from perdure.cli.demo.sources import RULES
from perdure.cli.demo.world import BLENDER_ORDER, CUSTOMER
from perdure.core.content import Entry, ToolEntry, UserEntry
from perdure.testing import call, replies, say, scripted
from perdure.testing.script import Step

HEARTBEAT_S = 20.0
"""Long: the supervisor acts on a death, and a case that waits for a heartbeat is seen by its time."""

FAST = RetryPolicy(attempts_max=5, first_ms=50, factor=1.0)

TOOLS = {
    "list_open_orders": {"customer": CUSTOMER},
    "get_order": {"order_id": BLENDER_ORDER},
    "ship_replacement": {"order_id": BLENDER_ORDER, "address": "7 Harbour Lane"},
}


def script(transcript: tuple[Entry, ...]) -> Step:
    first = transcript[0]
    server, tool = first.message.text.split() if isinstance(first, UserEntry) else ("", "")
    if not replies(transcript):
        return call(f"{server}.{tool}", TOOLS[tool])
    results = [entry.result for entry in transcript if isinstance(entry, ToolEntry)]
    return say(" | ".join(f"{result.status}: {result.text}" for result in results))


def server_of(name: str, home: Path) -> McpServer:
    """Return one orders server; all of them serve the same world."""
    moment, _, blind = name.partition("_")
    fresh = {"heartbeat_timeout_s": HEARTBEAT_S, "retry": FAST, "settle_s": 0.0}
    rules = {tool: rule.model_copy(update=fresh | ({"check": None} if blind else {})) for tool, rule in RULES.items()}
    return McpServer(
        name,
        command=(sys.executable, "-P", "-m", "perdure.cli.demo.servers.orders", str(home / "world.db")),
        env={
            dying.DIE: ",".join(f"{moment}:{tool}" for tool in TOOLS),
            dying.ONCE: str(home / name),
        },
        tools=tuple(TOOLS),
        rules=rules,
    )


def orders_agent(agent_id: str, home: Path, servers: Sequence[str]) -> Agent:
    return Agent(
        agent_id,
        model=scripted(script, script, script),
        tools=[server_of(name, home) for name in servers],
        model_heartbeat_timeout_s=HEARTBEAT_S,
        model_retry=FAST,
    )


agent = orders_agent(
    os.environ.get("PERDURE_TEST_AGENT", "orders"),
    Path(os.environ.get("PERDURE_HOME", ".")),
    os.environ.get("PERDURE_TEST_SERVERS", "none").split(","),
)
