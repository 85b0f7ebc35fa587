"""The `chaos` fixture, used as its users do: a project of its own, with an agent and tests beside it."""

from importlib.metadata import entry_points

import pytest

from perdure.app.chaos import Chaos
from perdure.core.errors import ConfigurationError

pytest_plugins = ["pytester"]

AGENT = '''
import asyncio
import os
from pathlib import Path

from perdure import Agent, Call, Check, tool
from perdure.testing import call, last_result, say, scripted

REFUNDS = Path(__file__).with_name("refunds")


def find(key):
    done = REFUNDS.exists() and key in REFUNDS.read_text().split()
    return Check.happened("paid") if done else Check.never()


@tool(effect="once", check=find, settle_s=0)
async def refund(call: Call) -> str:
    """Pay back."""
    with REFUNDS.open("a") as file:
        print(call.idempotency_key, file=file, flush=True)
    await asyncio.sleep(0.01)
    return "paid"


support = Agent(
    "support",
    model=scripted(
        call("ask_participant", {"question": "Sure?"}),
        call("refund"),
        lambda transcript: say(f"It is {last_result(transcript)}."),
    ),
    tools=[refund],
)
'''

TESTS = """
import pytest
from perdure.core.errors import ConfigurationError
from shop import REFUNDS


async def test_a_refund_is_paid_once(chaos):
    outcome = await chaos.kill_at("model.inside", "tool.after_effect:refund").run(
        "shop:support", "Refund", answer="yes"
    )
    assert (outcome.state, outcome.answer, outcome.broken) == ("completed", "It is paid.", ())
    assert (outcome.deaths, outcome.begun("refund")) == (2, 1)
    assert tuple(REFUNDS.read_text().split()) == outcome.keys("refund")
    assert [event.number for event in outcome.events] == list(range(1, len(outcome.events) + 1))


async def test_a_fault_that_nobody_reaches_proves_nothing(chaos):
    with pytest.raises(ConfigurationError, match="kill_at: no worker came to tool.begun:notify"):
        await chaos.kill_at("tool.begun:notify").run("shop:support", "Refund", answer="yes")
"""


@pytest.mark.slow
def test_a_project_with_an_agent(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop=AGENT, test_shop=TESTS)
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\npythonpath = .")
    told = pytester.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider", timeout=120)
    told.assert_outcomes(passed=2)


def test_it_is_there_wherever_perdure_is_installed() -> None:
    (found,) = entry_points(group="pytest11", name="perdure")
    assert found.value == "perdure.testing.pytest_plugin"


def test_the_fixture_is_the_plugins(chaos: Chaos) -> None:
    assert [str(fault) for fault in chaos.kill_at("tool.begun", "model.inside@2").faults] == [
        "tool.begun",
        "model.inside@2",
    ]


def test_what_is_no_point_is_refused(chaos: Chaos) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no point 'tool\.started'"):
        chaos.kill_at("tool.started")
    with pytest.raises(ConfigurationError, match="name a point"):
        chaos.kill_at()
