"""Workers that are killed in the middle of calls to an MCP server (P3, P4), judged by what the server wrote.

Each run has workers, a Temporal and a shop of its own; the server dies with its worker and is started with the next.
"""

import json
from pathlib import Path

import pytest

from perdure.app.chaos import Chaos
from tests.tools.mcp.shop import Shop, is_alive

pytestmark = pytest.mark.slow

AGENT = "tests.tools.mcp.acting:agent"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def chaos(tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Chaos:
    monkeypatch.setenv("PERDURE_TEST_SHOP", str(shop.folder))
    return Chaos(tmp_path / "chaos")


def effects(shop: Shop) -> list[str]:
    return [line["key"].partition("/")[2] for line in shop.world]


@pytest.mark.parametrize(
    ("point", "tool", "answer", "keys"),
    [
        ("tool.begun", "refund", "ok: refunded A", ["1/0/2"]),
        ("tool.after_effect", "refund", "ok: refunded A, as its check says", ["1/0"]),
        ("tool.after_effect", "put", 'ok: {"a": 1}', ["1/0", "1/0"]),
    ],
)
async def test_p3_a_worker_killed_in_a_call_has_no_second_effect(
    chaos: Chaos, shop: Shop, point: str, tool: str, answer: str, keys: list[str]
) -> None:
    outcome = await chaos.kill_at(f"{point}:shop.{tool}").run(AGENT, tool, folder=ROOT)
    assert (outcome.answer, outcome.broken, outcome.deaths) == (answer, (), 1)
    assert effects(shop) == keys
    assert not any(map(is_alive, shop.pids)), "every server has ended with its worker"


@pytest.mark.parametrize("point", ["tool.asked", "tool.before_begun"])
async def test_p8_a_question_survives_the_worker_that_heard_it(chaos: Chaos, shop: Shop, point: str) -> None:
    outcome = await chaos.kill_at(f"{point}:shop.send_back").run(AGENT, "send_back", answer="yes", folder=ROOT)
    assert (outcome.answer, outcome.broken, outcome.deaths) == ("ok: sent back A: yes", (), 1)
    assert effects(shop) == ["1/0"]
    asked = [event for event in outcome.events if event.kind == "help.requested"]
    assert len({event.help_id for event in asked}) == 2, json.dumps([event.text for event in asked])
