"""Killed within a fallback's call, at each of its points: the turn stays with it, and is answered once (P2, P3)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.app.chaos import Chaos

pytestmark = pytest.mark.slow

MODULE = "falling_back"

TOOLS = '''
from pathlib import Path

from perdure import Call, tool
from perdure.testing import call, fail, last_result, say, scripted

HERE = Path(__file__).parent


def note(name, what):
    with (HERE / name).open("a") as file:
        print(what, file=file, flush=True)


def asked(name, answer):
    def step(transcript):
        note("asked", name)
        return answer(transcript)

    return step


@tool(effect="once")
def pay(call: Call) -> str:
    """Pay."""
    note("paid", call.idempotency_key)
    return "paid"


down = asked("first", lambda transcript: fail("the provider is down", retryable=True))
first = scripted(down, down, name="first")
second = scripted(
    asked("second", lambda transcript: call("pay")),
    asked("second", lambda transcript: say(f"It is {last_result(transcript)}.")),
    name="second",
)
'''

AGENT = f"""
id = "falling-back"
model = "python:{MODULE}:first"
fallbacks = ["python:{MODULE}:second"]
tools = ["{MODULE}:pay"]
model_retry = {{ attempts_max = 2, first_ms = 20, factor = 1 }}
"""

POINTS = ("before_start", "started", "inside", "replied", "recorded")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / f"{MODULE}.py").write_text(TOOLS)
    (tmp_path / "agent.toml").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop(MODULE, None)


async def test_p2_killed_at_every_point_of_a_fallbacks_call(place: Path, chaos: Chaos) -> None:
    outcome = await chaos.kill_at(*(f"model.{point}:second" for point in POINTS)).run("agent.toml", "Pay.")
    assert (outcome.state, outcome.answer, outcome.broken) == ("completed", "It is paid.", ())
    assert outcome.deaths == len(POINTS)
    started = [event for event in outcome.events if event.kind == "model.started"]
    turns = [[(e.data["attempt"], e.data["model"]) for e in started if e.turn == turn] for turn in (1, 2)]
    assert turns[0] == [(1, "first"), (2, "first"), *((attempt, "second") for attempt in range(3, 9))]
    assert turns[1] == [(1, "first"), (2, "first"), (3, "second")], "the next turn begins with the first again"
    answered = [event.data["model"] for event in outcome.events if event.kind == "model.answered"]
    assert answered == ["second", "second"]
    # Three were cut before their answer was recorded; the recorded one is never asked for again.
    assert (place / "asked").read_text().split().count("second") == 3 + 1
    assert (place / "paid").read_text().split() == list(outcome.keys("pay"))
