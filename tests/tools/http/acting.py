"""The agent of these crash tests, as a worker process loads it: `tests.tools.http.acting:agent`.

A task's first message names the operation that it calls, and what goes wrong with it at the service, if anything.
"""

import os

from perdure import Agent, OpenApiTools, RetryPolicy, ToolRules
from perdure.core.content import Entry, ToolEntry, UserEntry
from perdure.testing import call, replies, say, scripted
from perdure.testing.script import Step
from tests.tools.http.running import SHOP

HEARTBEAT_S = 20.0
"""Long: the supervisor acts on a death, and a case that waits for a heartbeat is seen by its time."""

PATIENT = RetryPolicy(attempts_max=100, first_ms=200, factor=1.0)
"""A service that died is started again within a few of these, and on a busy machine within many."""

FAST = RetryPolicy(attempts_max=3, first_ms=20, factor=1.0)


def ruled(**more: object) -> ToolRules:
    return ToolRules.model_validate({"heartbeat_timeout_s": HEARTBEAT_S, "retry": PATIENT, "timeout_s": 60, **more})


RULES = {"refund": ruled(check="close", settle_s=0), "*": ruled()}


def script(transcript: tuple[Entry, ...]) -> Step:
    first = transcript[0]
    words = first.message.text.split() if isinstance(first, UserEntry) else []
    if not replies(transcript):
        arguments = {"order_id": words[1], **({"X-Trouble": words[2]} if words[2:] else {})}
        return call(f"shop.{words[0]}", arguments)
    results = [entry.result for entry in transcript if isinstance(entry, ToolEntry)]
    return say(" | ".join(f"{result.status}: {result.text}" for result in results))


def acting(agent_id: str, service: str) -> Agent:
    return Agent(
        agent_id,
        model=scripted(script, script, script),
        tools=[OpenApiTools("shop", SHOP, base_url=service, rules=RULES)],
        model_heartbeat_timeout_s=HEARTBEAT_S,
        model_retry=FAST,
    )


agent = acting(
    os.environ.get("PERDURE_TEST_AGENT", "acting"), os.environ.get("PERDURE_TEST_SERVICE", "http://127.0.0.1:9")
)
